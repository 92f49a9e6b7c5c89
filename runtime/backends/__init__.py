"""The built-in backends: a module or package each, and one line in the table."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from runtime.delegates.interface import BackendInterface

_CLASSES = {
    "BackendWithCompilerDemo": "demo.BackendWithCompilerDemo",
    "ExecutorBackend": "demo.ExecutorBackend",
    "XnnpackBackend": "xnnpack.XnnpackBackend",
}


def _class(path: str) -> Callable[[], BackendInterface]:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(f"runtime.backends.{module}"), name)


# Imported at once and not at first use: a worker that waits for a job has loaded them before it.
BACKENDS = {backend_id: _class(path) for backend_id, path in _CLASSES.items()}


def run_native_kernels_here() -> None:
    """Allow the native kernels of backends to run in this process, for workers only.

    They are faster here than in a process of their own, and may crash it.
    """
    for backend in BACKENDS.values():
        backend().run_in_this_process()
