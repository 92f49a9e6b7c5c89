"""The backends that run in this process: a file or package each, one line in the table."""

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
