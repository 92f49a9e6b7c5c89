"""A worker started ahead of time, since importing torch takes seconds."""

from __future__ import annotations

import contextlib
import threading

from inspector.jobs.process import Worker


class SpareWorker:
    """At most one worker without a job; use it from any thread."""

    def __init__(self, kind: str) -> None:
        """Initialize without starting a process.

        Args:
            kind: of worker
        """
        self._kind = kind
        self._lock = threading.Lock()
        self._worker: Worker | None = None
        self._closed = False

    @property
    def pid(self) -> int | None:
        """Return the id of the worker's process, None if not running."""
        with self._lock:
            return None if self._worker is None else self._worker.pid

    @property
    def ready(self) -> bool:
        """Return whether it runs and has imported its libraries."""
        with self._lock:
            worker = self._worker
        return worker is not None and worker.ready is not None and worker.outcome is None

    def start(self) -> None:
        """Start one unless it runs; a failure is reported by the job itself."""
        with self._lock:
            if self._closed or (self._worker is not None and self._worker.outcome is None):
                return
            with contextlib.suppress(OSError):
                self._worker = Worker(self._kind)

    def take(self) -> Worker | None:
        """Return the worker and give up ownership, None if it does not run."""
        with self._lock:
            worker, self._worker = self._worker, None
        return worker if worker is not None and worker.outcome is None else None

    def close(self) -> None:
        """End it, and start no further one."""
        with self._lock:
            self._closed = True
            worker, self._worker = self._worker, None
        if worker is not None:
            worker.close()
