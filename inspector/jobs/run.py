"""A job from start to end: a worker or several, files that appear at the end, one outcome."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from inspector.jobs.messages import STOP, Ended, Message, Outcome
from inspector.jobs.output_file import prepare_file
from inspector.jobs.output_folder import FolderError, Scratch, prepare_folder
from inspector.jobs.process import Worker
from inspector.jobs.supervisor import Setup
from inspector.jobs.table import JobKind, Writes, kind_of
from inspector.units import format_estimate
from schema.objects.codec import ContentError, to_json

_SLICE_SECONDS = 0.1  # a cancel from another thread is noticed after at most that
_STOP_SECONDS = 10.0  # for the run in progress and the files of a job that keeps partial results


class JobPlace(Protocol):
    """Destination of the files of a job."""

    @property
    def working(self) -> Path:
        """Return the folder they are written into first."""
        ...

    def commit(self) -> None:
        """Move them to their place; raises FolderError."""
        ...

    def discard(self) -> None:
        """Remove the working folder."""
        ...

    def where(self) -> dict[str, str]:
        """Return the place as a member of the job's result."""
        ...


class Connection(Protocol):
    """The executor of a job: a process, or a request to a shared process."""

    @property
    def pid(self) -> int:
        """Return the id of the process."""
        ...

    @property
    def outcome(self) -> Outcome | None:
        """Return the outcome, None while it runs."""
        ...

    def send(self, request: dict[str, Any]) -> None:
        """Hand over the job, and commands afterwards."""
        ...

    def take(self, timeout: float = 0.0) -> list[Message]:
        """Return the messages since the last call."""
        ...

    def stop(self, ended: Ended = Ended.CANCELLED) -> None:
        """Request its end; returns immediately."""
        ...

    def wait(self, timeout: float | None = None) -> Outcome | None:
        """Return the outcome, None after a timeout."""
        ...

    def when_released(self, action: Callable[[], object]) -> None:
        """Call back when the folder of the job is no longer written."""
        ...

    def close(self) -> None:
        """End it if it still runs."""
        ...


class JobRun:
    """One job; poll it from one thread.

    Attributes:
        job: the request
        kind: its line in the table of jobs
        started: by ``time.monotonic``
        result: of a finished job: the value that ``JobKind.result`` names, else a
            mapping
    """

    def __init__(
        self,
        job: Any,  # noqa: ANN401 - any request in the table of jobs
        target: Path | None = None,
        *,
        force: bool = False,
        worker: Connection | None = None,
        timeout: float | None = None,
        **options: Any,  # noqa: ANN401 - JSON
    ) -> None:
        """Start.

        Args:
            job: the request
            target: folder or file for the job's files; None if it writes none
            force: replace existing files
            worker: idle worker of its kind, started ahead
            timeout: seconds after which the job is ended; partial results are requested first of
                one that keeps them
            options: for the worker, in addition to the request

        Raises: FolderError if the target cannot be used, before anything is started
        """
        self.job = job
        self.kind = kind_of(job)
        self.started = time.monotonic()
        self.result: Any = None
        self._timeout = timeout
        self._until = None if timeout is None else self.started + timeout
        self._lock = threading.RLock()
        self._outcome: Outcome | None = None
        self._messages: list[Message] = []
        self._cancelled = False
        self._worker: Connection | None = None
        self._place = _place(self.kind, target, force=force)
        folder = None if self._place is None else self._place.working
        try:
            self._supervisor = self.kind.supervise(job, Setup(target, force, folder, options))
        except BaseException:
            self._discard()
            raise
        self._start(worker)

    @property
    def state(self) -> Any:  # noqa: ANN401 - each supervisor has its own
        """Return the state of the supervisor, None for a job without one."""
        return getattr(self._supervisor, "state", None)

    @property
    def pid(self) -> int:
        """Return the id of the worker's process, 0 if it could not be started."""
        return self._worker.pid if self._worker is not None else 0

    @property
    def scratch(self) -> Path | None:
        """Return the temporary folder, deleted by ``close``; None for jobs without one."""
        if self._place is None or self.kind.writes is not Writes.SCRATCH:
            return None
        return self._place.working

    @property
    def outcome(self) -> Outcome | None:
        """Return the outcome, None while it runs. On success the files are in place."""
        with self._lock:
            if self._outcome is None and self._worker is not None:
                self._check_time()
                found = self._worker.outcome
                if found is not None:
                    self._read()
                    self._settle(found)
            return self._outcome

    def take(self, timeout: float = 0.0) -> list[Message]:
        """Return the messages since the last call, waiting for the first one.

        Args:
            timeout: longest wait in seconds
        """
        if not self._messages:
            self._read(timeout)
        if self._worker is not None and self._worker.outcome is not None:
            _ = self.outcome
        with self._lock:
            found, self._messages = self._messages, []
            return found

    def send(self, command: dict[str, Any]) -> bool:
        """Send a command to a job that accepts some; return whether it waited for one."""
        runs = self._worker is not None and self._worker.outcome is None
        if not runs or not self._supervisor.may_send(command):
            return False
        assert self._worker is not None
        self._worker.send(command)
        return True

    def cancel(self) -> None:
        """Request the worker to end; the outcome follows soon. The state is kept."""
        self._cancelled = True
        if self._worker is not None:
            self._worker.stop()

    def close(self) -> None:
        """End the worker if it runs; remove partial files."""
        self._cancelled = True
        if self._worker is not None:
            self._worker.close()
            _ = self.outcome
        self._discard()

    def wait(self, timeout: float | None = None) -> Outcome | None:
        """Return the outcome, None after a timeout."""
        until = None if timeout is None else time.monotonic() + timeout
        while self.outcome is None:
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                break
            assert self._worker is not None
            if self.kind.supervisor:  # its state is stored as it arrives
                self._read(_SLICE_SECONDS if left is None else min(left, _SLICE_SECONDS))
            else:
                self._worker.wait(left if self._until is None else _sooner(left, self._until))
        return self._outcome

    # ---- the worker
    def _start(self, worker: Connection | None) -> None:
        try:
            self._worker = worker if worker is not None else Worker(self.kind.worker)
        except OSError as error:
            self._discard()
            self._outcome = _not_started(error)
            return
        job, options = self._supervisor.request()
        request = {"kind": self.kind.name, "job": to_json(job), "options": dict(options)}
        request["folder"] = "" if self._place is None else str(self._place.working)
        try:
            self._worker.send(request)
        except OSError as error:  # a warm worker is started by the request
            self._discard()
            self._outcome = _not_started(error)

    def _read(self, timeout: float = 0.0) -> None:
        if self._worker is None:
            return
        listener = self._worker.take(timeout)
        with self._lock:
            for message in listener:
                try:
                    noted = self._supervisor.note(message)
                except FolderError as error:
                    self._fail(str(error))
                    return
                self._messages += [noted] if noted is not None else []

    def _check_time(self) -> None:
        if self._until is not None and time.monotonic() > self._until:
            if self.send(dict(STOP)):
                self._until = time.monotonic() + _STOP_SECONDS
                return
            self._until = None
            with contextlib.suppress(OSError):
                assert self._worker is not None
                self._worker.stop(Ended.TIMED_OUT)

    def _settle(self, found: Outcome) -> None:
        """Handle the end of the worker: the end of the job, unless another worker continues."""
        if self._outcome is not None:
            return
        if found.ended is Ended.TIMED_OUT and self._timeout is not None:
            words = Ended.TIMED_OUT.value
            limit = f"{words} after {format_estimate(self._timeout)}"
            found = replace(found, sentence=found.sentence.replace(words, limit, 1))
        try:
            ended = self._supervisor.ended(found, cancelled=self._cancelled)
        except FolderError as error:
            ended = Outcome(Ended.FAILED, str(error))
        self._messages += self._supervisor.added
        self._supervisor.added.clear()
        if ended is not None:
            self._outcome = self._committed(ended)
            return
        assert self._worker is not None
        self._worker.close()
        if self.kind.writes is Writes.WORK:  # leftovers of the lost worker are useless
            self._discard()
            self._place = Scratch()
        self._start(None)

    def _committed(self, found: Outcome) -> Outcome:
        finished = found.ended is Ended.FINISHED
        if not finished or self.kind.writes is Writes.WORK:
            self._discard()
        if not finished:
            return found
        try:
            self.result = self.kind.read_result(found.result)
            if self._place is not None and self.kind.writes is not Writes.WORK:
                self._place.commit()
                return replace(found, result={**found.result, **self._place.where()})
        except (FolderError, ContentError) as error:
            self._discard()
            return Outcome(Ended.FAILED, str(error))
        return found

    def _fail(self, sentence: str) -> None:
        self._outcome = Outcome(Ended.FAILED, sentence)
        assert self._worker is not None
        self._worker.close()
        self._discard()

    def _discard(self) -> None:
        if self._place is None:
            return
        if self._worker is None:
            self._place.discard()
        else:
            self._worker.when_released(self._place.discard)


def _not_started(error: OSError) -> Outcome:
    return Outcome(Ended.NOT_STARTED, f"the worker cannot be started: {error}")


def _sooner(left: float | None, until: float) -> float:
    """Return the seconds to wait: at most until the timeout of the job."""
    own = max(until - time.monotonic(), 0.0) + 0.01
    return own if left is None else min(left, own)


def _place(kind: JobKind, target: Path | None, *, force: bool) -> JobPlace | None:
    if kind.writes in (Writes.SCRATCH, Writes.WORK):
        return Scratch()
    if target is None or kind.writes is Writes.NOTHING:
        return None
    if kind.writes is Writes.FILE:
        return prepare_file(target, force=force)
    return prepare_folder(target, force=force, owned=kind.owned)


def finished(job: object, failed: Callable[[str], Exception]) -> JobRun:
    """Return a job that has ended, waiting for it.

    Args:
        job: the request
        failed: creates the error to raise for a job that did not finish, from its sentence
    """
    running = JobRun(job)
    try:
        outcome = running.wait()
    finally:
        running.close()
    if outcome is None or outcome.ended is not Ended.FINISHED:
        raise failed("cancelled" if outcome is None else outcome.sentence)
    return running
