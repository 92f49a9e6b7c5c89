"""A job from start to end: a worker, files that appear at the end, one outcome."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from inspector.jobs.executing import (
    BUFFER,
    BundleJob,
    ExecutingJob,
    RunJob,
    StepJob,
    executing_content,
)
from inspector.jobs.guard import AUTO
from inspector.jobs.messages import Ended, Message, Outcome
from inspector.jobs.output_file import prepare_file
from inspector.jobs.output_folder import FolderError, prepare_folder
from inspector.jobs.process import COMPILES, EXECUTES, Worker
from inspector.recipes.compile_job import CompileJob, job_content


class Place(Protocol):
    """Where the files of a job go."""

    @property
    def working(self) -> Path:
        """Return the folder they are written into first."""
        ...

    def commit(self) -> None:
        """Move them to their place; raises FolderError."""
        ...

    def discard(self) -> None:
        """Remove what is still in the working folder."""
        ...

    def where(self) -> dict[str, str]:
        """Return the place as a member of the job's result."""
        ...


class JobRun:
    """One job in a worker; ask it from one thread, as often as you like."""

    def __init__(
        self,
        content: dict[str, Any],
        place: Place | None,
        *,
        kind: str = COMPILES,
        worker: Worker | None = None,
        timeout: float | None = None,
        how: Mapping[str, Any] | None = None,
    ) -> None:
        """Start.

        Args:
            content: the job as a JSON object
            place: for its files; None where it makes none
            kind: of worker
            worker: one of this kind that was started ahead and has no job yet
            timeout: seconds after which the job is ended
            how: what else the worker is told, which is no part of the job
        """
        self.started = time.monotonic()
        self._until = None if timeout is None else self.started + timeout
        self._outcome: Outcome | None = None
        self._place = place
        self._worker: Worker | None = None
        try:
            self._worker = worker if worker is not None else Worker(kind)
        except OSError as error:
            self._discard()
            self._outcome = Outcome(Ended.NOT_STARTED, f"the worker cannot be started: {error}")
            return
        folder = "" if place is None else str(place.working)
        self._worker.send({"job": content, "folder": folder, **(how or {})})

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
        """Ask the worker to end; the outcome comes soon after, whatever it is busy with."""
        if self._worker is not None:
            self._worker.stop()

    def close(self) -> None:
        """End the worker if it runs; leave nothing half-written."""
        if self._worker is not None:
            self._worker.close()
            _ = self.outcome
        self._discard()

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
        if found.ended is not Ended.FINISHED or self._place is None:
            self._discard()
            return found
        try:
            self._place.commit()
        except FolderError as error:
            return Outcome(Ended.FAILED, str(error))
        return replace(found, result={**found.result, **self._place.where()})

    def _discard(self) -> None:
        if self._place is not None:
            self._place.discard()


class CompileRun(JobRun):
    """One compile in a worker.

    Attributes:
        job: what is compiled
        target: folder for the files
    """

    def __init__(  # noqa: PLR0913 - as other runs, and how
        self,
        job: CompileJob,
        target: Path,
        *,
        force: bool = False,
        worker: Worker | None = None,
        timeout: float | None = None,
        guard: str = AUTO,
        stages: bool = False,
    ) -> None:
        """Start.

        Args:
            job: what to compile
            target: folder for the files
            force: replace files that exist in it
            worker: one that was started ahead and has no job yet
            timeout: seconds after which the job is ended
            guard: when partitions are loaded, and what is done about those that are refused
            stages: write the graph that each stage leaves, too

        Raises: FolderError if the folder cannot be used; then nothing was started
        """
        self.job = job
        self.target = target
        place = prepare_folder(target, force=force)
        how = {"guard": guard, "stages": stages}
        super().__init__(job_content(job), place, worker=worker, timeout=timeout, how=how)


class ExecutingRun(JobRun):
    """One run, verification or bundling in a worker.

    Attributes:
        job: what is done
    """

    def __init__(
        self,
        job: ExecutingJob,
        target: Path | None = None,
        *,
        force: bool = False,
        worker: Worker | None = None,
        timeout: float | None = None,
    ) -> None:
        """Start.

        Args:
            job: what to do
            target: folder of a run, file of a bundling or of values; nothing for a verification
            force: replace what exists there
            worker: one that was started ahead and has no job yet
            timeout: seconds after which the job is ended

        Raises: FolderError if the target cannot be used; then nothing was started
        """
        self.job = job
        place = _place(job, target, force=force)
        content = executing_content(job)
        super().__init__(content, place, kind=EXECUTES, worker=worker, timeout=timeout)


def _place(job: ExecutingJob, target: Path | None, *, force: bool) -> Place | None:
    if target is None:
        return None
    if isinstance(job, RunJob):
        return prepare_folder(target, force=force, owned=(BUFFER,))
    is_file = isinstance(job, (BundleJob, StepJob))
    return prepare_file(target, force=force) if is_file else None
