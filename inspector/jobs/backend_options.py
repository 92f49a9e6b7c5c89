"""Options of the backends of a run, as ``NAME:OPTION=VALUE`` of the user."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from schema.backends import BACKENDS, Backend
from schema.recipe.assignments import AssignmentError, assignment_error, parse_path

_FORM = "NAME:OPTION=VALUE"


class BackendOptionError(ValueError):
    """An option of another form, or of a backend that has none; one sentence."""


def with_options() -> tuple[Backend, ...]:
    """Return the backends that run here and have options of a run."""
    return tuple(one for one in BACKENDS.values() if one.executor and one.has_options)


def options_by_backend(words: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return id of a backend -> its options; backends that are not named have none.

    Raises: BackendOptionError
    """
    known = with_options()
    found: dict[str, dict[str, str]] = {one.id: {} for one in known}
    for word in words:
        try:
            (name, *option), value = parse_path(word, _FORM, ":")
            if not value:
                raise assignment_error(word, _FORM, "no VALUE")
        except AssignmentError as error:
            raise BackendOptionError(str(error)) from error
        found[_backend(name, known).id][":".join(option)] = value
    return found


def _backend(name: str, known: Sequence[Backend]) -> Backend:
    for one in known:
        if name.lower() in (one.id.lower(), one.name.lower()):
            return one
    there = ", ".join(one.name for one in known)
    raise BackendOptionError(f"{name} has no options of a run; backends that have: {there}")
