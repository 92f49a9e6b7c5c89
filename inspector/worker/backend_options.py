"""Sets the options of the backends of a run."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.jobs.backend_options import BackendOptionError, options_by_backend
from inspector.worker.exporter import AnswerError
from runtime import Runtime


def set_backend_options(words: Sequence[str]) -> None:
    """Set the options of all backends for what is loaded from now on; others lose theirs.

    For workers that do nothing else: packages of vendors may be imported into them.

    Raises: AnswerError for a word of another form, or a backend that cannot run here
    """
    try:
        given = options_by_backend(words)
    except BackendOptionError as error:
        raise AnswerError(str(error)) from error
    registry = Runtime.get().backend_registry
    for name, options in given.items():
        if options or name in registry.registered_backend_names:
            registry.backend(name).set_options(options)
