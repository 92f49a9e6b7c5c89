"""The built-in backends: a folder or module each; `schema.backends` has their traits."""

from __future__ import annotations

from collections.abc import Callable

from runtime.delegates.interface import BackendInterface
from schema.backends import BACKENDS, resolve


def built_in_backends() -> dict[str, Callable[[], BackendInterface]]:
    """Return the classes of the backends that can run, by id."""
    found = sorted(one.id for one in BACKENDS.values() if one.executor)
    return {backend_id: resolve(BACKENDS[backend_id].executor) for backend_id in found}


# Imported eagerly: a worker process has then loaded them before its job arrives.
built_in_backends()
