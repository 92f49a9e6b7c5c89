"""The built-in backends: a module or package each, and one line in the table."""

from __future__ import annotations

from collections.abc import Callable

from runtime.backends.demo import BackendWithCompilerDemo, ExecutorBackend
from runtime.backends.xnnpack import XnnpackBackend
from runtime.delegates.interface import BackendInterface

BACKENDS: dict[str, Callable[[], BackendInterface]] = {
    "BackendWithCompilerDemo": BackendWithCompilerDemo,
    "ExecutorBackend": ExecutorBackend,
    "XnnpackBackend": XnnpackBackend,
}


def run_native_kernels_here() -> None:
    """Allow the native kernels of backends to run in this process, for workers only.

    They are faster here than in a process of their own, and may crash it.
    """
    for backend in BACKENDS.values():
        backend().run_in_this_process()
