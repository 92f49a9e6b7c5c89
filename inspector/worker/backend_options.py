"""Options of the backends of a run, as ``NAME:OPTION=VALUE`` of the user."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.worker.exporter import AnswerError
from runtime import Runtime
from schema.backends import BACKENDS, Backend


def set_backend_options(words: Sequence[str]) -> None:
    """Set the options of all backends for what is loaded from now on; others lose theirs.

    For workers that do nothing else: packages of vendors may be imported into them.

    Raises: AnswerError for a word of another form, or a backend that cannot run here
    """
    known = [one for one in BACKENDS.values() if one.executor and one.has_options]
    given: dict[str, dict[str, str]] = {one.id: {} for one in known}
    for word in words:
        name, _, setting = word.partition(":")
        option, _, value = setting.partition("=")
        if not (name and option and value):
            raise AnswerError(f"{word!r} is not NAME:OPTION=VALUE")
        given[_backend(name, known).id][option] = value
    registry = Runtime.get().backend_registry
    for name, options in given.items():
        if options or name in registry.registered_backend_names:
            registry.backend(name).set_options(options)


def _backend(name: str, known: Sequence[Backend]) -> Backend:
    for one in known:
        if name.lower() in (one.id.lower(), one.name.lower()):
            return one
    there = ", ".join(one.name for one in known)
    raise AnswerError(f"{name} has no options of a run; backends that have: {there}")
