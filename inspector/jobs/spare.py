"""A worker that is there before it is wanted: loading torch takes seconds."""

from __future__ import annotations

import contextlib
import threading

from inspector.jobs.process import Worker


class SpareWorker:
    """At most one worker without a job; use it from any thread."""

    def __init__(self, kind: str) -> None:
        """Start nothing yet.

        Args:
            kind: of worker
        """
        self._kind = kind
        self._lock = threading.Lock()
        self._worker: Worker | None = None
        self._closed = False

    @property
    def pid(self) -> int | None:
        """Return the id of the worker's process, None while there is none."""
        with self._lock:
            return None if self._worker is None else self._worker.pid

    @property
    def ready(self) -> bool:
        """Return whether there is one that has loaded all it needs."""
        with self._lock:
            worker = self._worker
        return worker is not None and worker.ready is not None and worker.outcome is None

    def start(self) -> None:
        """Start one unless there is one; a failure is reported by the job itself."""
        with self._lock:
            if self._closed or (self._worker is not None and self._worker.outcome is None):
                return
            with contextlib.suppress(OSError):
                self._worker = Worker(self._kind)

    def take(self) -> Worker | None:
        """Return it for a job of its own, None if there is none that lives."""
        with self._lock:
            worker, self._worker = self._worker, None
        return worker if worker is not None and worker.outcome is None else None

    def close(self) -> None:
        """End it, and start none any more."""
        with self._lock:
            self._closed = True
            worker, self._worker = self._worker, None
        if worker is not None:
            worker.close()
