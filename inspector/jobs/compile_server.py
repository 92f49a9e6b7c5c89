"""Repeated previews and compiles with one warm worker for the recipes of one source.

The worker caches exported, quantized and lowered programs. The next request repeats only the stages
after
the first change; the result is byte for byte that of a new worker.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from inspector.jobs.guard import AUTO
from inspector.jobs.messages import Ended, Outcome
from inspector.jobs.preview import Preview, PreviewJob, SuggestJob
from inspector.jobs.run import JobRun
from inspector.jobs.spare import SpareWorker
from inspector.jobs.suggestions import Suggestions
from inspector.jobs.table import EXECUTES
from inspector.jobs.warm_worker import Turn, WarmWorker
from inspector.recipes.compile_job import CompileJob
from inspector.toolchain.table import toolchain_named

_ELSEWHERE = Outcome(
    Ended.FAILED,
    "delegation by another toolchain is only known after compiling; previews show our compiler",
    blame="usage",
)
_NEWER = Outcome(Ended.CANCELLED, "replaced by a newer request")
_CLOSED = Outcome(Ended.CANCELLED, "cancelled: the compile server was closed")


class CompileServerError(Exception):
    """A request without a result; one sentence.

    Attributes:
        outcome: of the job; None after a timeout
    """

    def __init__(self, outcome: Outcome | None) -> None:
        self.outcome = outcome
        super().__init__(outcome.sentence if outcome is not None else "timed out")


class CompileServer:
    """Previews, suggestions and compiles of recipes; thread-safe.

    A new preview replaces one that is pending, and so does a new compile. A
    worker that dies is replaced at the next request.

    Attributes:
        runner: a started worker for running the compiled program
    """

    def __init__(self, *, threads: int = 0, runs: bool = True) -> None:
        """Initialize without starting a process.

        Args:
            threads: of the worker, 0 for the default of its libraries
            runs: whether ``runner`` will run what is compiled, and is started ahead for it
        """
        self._threads, self._runs = threads, runs
        self._lock = threading.RLock()
        self._worker: WarmWorker | None = None
        self._key: Any = None
        self._closed = False
        self._turns: dict[str, Turn] = {}  # the newest of each kind
        self.runner = SpareWorker(EXECUTES)

    @property
    def pid(self) -> int | None:
        """Return the id of the worker's process, None if not running."""
        with self._lock:
            return None if self._worker is None else self._worker.pid

    def start(self, job: CompileJob) -> None:
        """Start a worker for the source of a job ahead of the first request.

        Raises: OSError if it cannot be started
        """
        with self._lock:
            if not self._closed:
                self._warm(job)

    def start_preview(self, job: CompileJob) -> JobRun:
        """Request a preview of the delegation; the result is a ``Preview``."""
        return self._started(PreviewJob(job), job)

    def start_suggestions(self, job: CompileJob) -> JobRun:
        """Request changes of a job that reduce boundaries; the result is ``Suggestions``."""
        return self._started(SuggestJob(job), job)

    def start_compile(
        self,
        job: CompileJob,
        folder: Path,
        *,
        force: bool = False,
        guard: str = AUTO,
        stages: bool = False,
    ) -> JobRun:
        """Compile into a folder, which is written atomically.

        Args:
            job: to compile; one of another toolchain gets a separate worker
            folder: for the files
            force: replace existing files
            guard: when partitions are test-loaded, and how refused ones are handled
            stages: also write the graph after each stage

        Raises: FolderError if the folder cannot be used
        """
        if not toolchain_named(job.toolchain).is_warm:
            return JobRun(job, folder, force=force, guard=guard)
        return self._started(job, job, folder, force=force, guard=guard, stages=stages)

    def preview(self, job: CompileJob, timeout: float | None = None) -> Preview:
        """Return a preview of the delegation.

        Raises: CompileServerError with the reason
        """
        return self._answer(self.start_preview(job), timeout)

    def suggestions(self, job: CompileJob, timeout: float | None = None) -> Suggestions:
        """Return changes that reduce boundaries, the best first; each was tried.

        Raises: CompileServerError with the reason
        """
        return self._answer(self.start_suggestions(job), timeout)

    def _answer(self, run: JobRun, timeout: float | None) -> Any:  # noqa: ANN401
        outcome = run.wait(timeout)
        if outcome is None or outcome.ended is not Ended.FINISHED:
            run.cancel()
            raise CompileServerError(outcome)
        return run.result

    def compile(
        self,
        job: CompileJob,
        folder: Path,
        *,
        force: bool = False,
        guard: str = AUTO,
        timeout: float | None = None,
    ) -> Outcome:
        """Compile into a folder and return how it ended.

        Raises: FolderError as ``start_compile``; CompileServerError after a timeout
        """
        run = self.start_compile(job, folder, force=force, guard=guard)
        try:
            outcome = run.wait(timeout)
        finally:
            run.close()
        if outcome is None:
            raise CompileServerError(None)
        return outcome

    def close(self) -> None:
        """End the workers, and start no further ones: later requests are cancelled."""
        self.runner.close()
        with self._lock:
            self._closed = True
            worker, self._worker, self._key = self._worker, None, None
        if worker is not None:
            worker.close()

    def _started(
        self,
        request: object,
        job: CompileJob,
        folder: Path | None = None,
        **options: Any,  # noqa: ANN401 - of JobRun, and JSON
    ) -> JobRun:
        """Send a request; an unanswered one of the same kind is cancelled."""
        turn = Turn(job, lambda turn: self._warm(turn.job).ask(turn))
        if not toolchain_named(job.toolchain).is_warm:
            turn.give_up(_ELSEWHERE)
            return JobRun(request, worker=turn)
        with self._lock:
            if self._closed:
                turn.give_up(_CLOSED)
                return JobRun(request, worker=turn)
            run = JobRun(request, folder, worker=turn, **options)
            older = self._turns.get(run.kind.name)
            if older is not None:
                older.give_up(_NEWER)
            self._turns[run.kind.name] = turn
        return run

    def _warm(self, job: CompileJob) -> WarmWorker:
        """Return the worker for the source of a job; caches of another source are useless."""
        key = job.source, job.python, job.methods
        worker = self._worker
        if worker is not None and (self._key != key or worker.outcome is not None):
            worker.close()
            worker = None
        if worker is None:
            worker = WarmWorker(self._stale, threads=self._threads)
            self._worker, self._key = worker, key
        elif self._runs:  # a follow-up is expected: the compiled program will be run
            self.runner.start()
        return worker

    def _stale(self, worker: WarmWorker, waiting: list[Turn]) -> None:
        """Move requests to a new worker, since the source has changed.

        Called on the worker's thread.
        """
        with self._lock:
            if self._worker is worker:
                self._worker = None
            for turn in waiting:
                if self._closed:
                    turn.answered(_CLOSED)
                    continue
                try:
                    self._warm(turn.job).ask(turn)
                except OSError as error:
                    words = f"the worker cannot be started: {error}"
                    turn.answered(Outcome(Ended.NOT_STARTED, words))
