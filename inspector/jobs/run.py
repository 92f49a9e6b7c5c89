"""A compile from start to end: a worker, a folder that appears at the end, one outcome."""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace
from pathlib import Path

from inspector.jobs.description import CompileJob, job_content
from inspector.jobs.messages import Ended, Message, Outcome
from inspector.jobs.output_folder import FolderError, OutputFolder, prepare_folder
from inspector.jobs.process import Worker


class CompileRun:
    """One compile in a worker; ask it from one thread, as often as you like."""

    def __init__(
        self,
        job: CompileJob,
        target: Path,
        *,
        force: bool = False,
        worker: Worker | None = None,
        timeout: float | None = None,
    ) -> None:
        """Start.

        Args:
            job: what to compile
            target: folder for the files
            force: replace files that exist in it
            worker: one that was started ahead and has no job yet
            timeout: seconds after which the job is ended

        Raises: FolderError if the folder cannot be used; then nothing was started
        """
        self.job = job
        self.target = target
        self.started = time.monotonic()
        self._until = None if timeout is None else self.started + timeout
        self._outcome: Outcome | None = None
        self._folder: OutputFolder = prepare_folder(target, force=force)
        self._worker: Worker | None = None
        try:
            self._worker = worker if worker is not None else Worker()
        except OSError as error:
            self._folder.discard()
            self._outcome = Outcome(Ended.NOT_STARTED, f"the worker cannot be started: {error}")
            return
        self._worker.send({"job": job_content(job), "folder": str(self._folder.working)})

    @property
    def outcome(self) -> Outcome | None:
        """Return how it ended, None while it runs. The files are in place when it finished."""
        if self._outcome is None and self._worker is not None:
            self._check_time()
            found = self._worker.outcome
            if found is not None:
                self._outcome = self._settled(found)
        return self._outcome

    def take(self, timeout: float = 0.0) -> list[Message]:
        """Return what was said since the last call, waiting for it if there is nothing yet.

        Args:
            timeout: seconds to wait at most
        """
        return self._worker.take(timeout) if self._worker is not None else []

    def cancel(self) -> None:
        """Ask the worker to end; the outcome comes soon after, whatever the user's code does."""
        if self._worker is not None:
            self._worker.stop()

    def close(self) -> None:
        """End the worker if it runs; leave nothing half-written."""
        if self._worker is not None:
            self._worker.close()
            _ = self.outcome
        self._folder.discard()

    def wait(self, timeout: float | None = None) -> Outcome | None:
        """Return the outcome, None if it has not come in time."""
        if self._worker is not None and self._outcome is None:
            self._worker.wait(timeout)
        return self.outcome

    def _check_time(self) -> None:
        if self._until is not None and time.monotonic() > self._until:
            self._until = None
            with contextlib.suppress(OSError):
                assert self._worker is not None
                self._worker.stop(Ended.TIMED_OUT)

    def _settled(self, found: Outcome) -> Outcome:
        if found.ended is not Ended.FINISHED:
            self._folder.discard()
            return found
        try:
            self._folder.commit()
        except FolderError as error:
            return Outcome(Ended.FAILED, str(error))
        return replace(found, result={**found.result, "folder": str(self.target)})
