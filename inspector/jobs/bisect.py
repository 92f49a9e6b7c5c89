"""A bisection as a job: workers that try programs, and a state on disk that outlives them."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from inspector.experiments.bisect.trials import STATE, Node, State, Trial, read_state, trial_from
from inspector.jobs.gap import Scratch
from inspector.jobs.messages import Ended, Found, Message, Outcome, Tried, Trying
from inspector.jobs.output_folder import FolderError
from inspector.jobs.process import BISECTS
from inspector.jobs.run import JobRun
from inspector.recipes.compile_job import CompileJob, job_content, job_from
from schema.objects.atomic_file import write_atomically

_MOST_CRASHES = 5


@dataclass(frozen=True, slots=True)
class BisectJob:
    """What to bisect.

    Attributes:
        compile: the program, and how it is made
        bound: what is wanted, as text
        method: only its nodes, and what is run; empty for ``forward`` or the only one
        inputs: file of tensors; empty for the inputs it was exported with
        engine: what runs delegates whose backend has several engines
        runs: that are measured for a latency
        threads: of torch, 0 for as many as it takes by itself
    """

    compile: CompileJob
    bound: str
    method: str = ""
    inputs: str = ""
    engine: str = "auto"
    runs: int = 20
    threads: int = 0


def bisect_content(job: BisectJob) -> dict[str, Any]:
    """Return a job as a JSON object."""
    return {**asdict(job), "compile": job_content(job.compile)}


def bisect_from(content: Mapping[str, Any]) -> BisectJob:
    """Return the job in a JSON object that ``bisect_content`` made."""
    found: dict[str, Any] = {**content, "compile": job_from(content["compile"])}
    return BisectJob(**found)


def key_of(job: BisectJob) -> str:
    """Return what a bisection is about; trials of one with another key are of no use to it."""
    return json.dumps(bisect_content(job), sort_keys=True, ensure_ascii=False)


class BisectRun:
    """A bisection; ask it from one thread, as often as you like.

    Every trial is in the state file as soon as it is made. A program that takes the worker along
    counts as one that does not help, and another worker goes on.

    Attributes:
        job: what is bisected
        state: so far
    """

    def __init__(
        self,
        job: BisectJob,
        folder: Path,
        *,
        fresh: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Start, or go on where the state in a folder ends.

        Args:
            job: what to bisect
            folder: for the state; made if it is not there
            fresh: begin anew whatever is there
            timeout: seconds after which it is ended

        Raises: StateError, FolderError if the folder holds another bisection or cannot be used
        """
        self.job = job
        self._path = folder / STATE
        self.state = State(key_of(job))
        self._resume(fresh=fresh)
        self._until = None if timeout is None else time.monotonic() + timeout
        self._messages: list[Message] = []
        self._trying: Trying | None = None
        self._crashes = 0
        self._cancelled = False
        self._outcome: Outcome | None = None
        self._save()
        self._running = self._start()

    def _resume(self, *, fresh: bool) -> None:
        found = None if fresh else read_state(self._path)
        if found is None:
            return
        if found.key != self.state.key:
            raise FolderError(
                f"{self._path} is of another bisection; --force begins anew", usage=True
            )
        self.state = found

    def _start(self) -> JobRun:
        how = {
            "candidates": [asdict(one) for one in self.state.candidates],
            "trials": [asdict(one) for one in self.state.trials],
        }
        left = None if self._until is None else max(self._until - time.monotonic(), 0.01)
        content = bisect_content(self.job)
        return JobRun(content, Scratch(), kind=BISECTS, timeout=left, how=how)

    @property
    def outcome(self) -> Outcome | None:
        """Return how it ended, None while it goes on."""
        if self._outcome is None and self._running.outcome is not None:
            self._read(0.0)
            self._settle(self._running.outcome)
        return self._outcome

    def take(self, timeout: float = 0.0) -> list[Message]:
        """Return what was said since the last call, waiting for it if there is nothing yet.

        Args:
            timeout: seconds to wait at most
        """
        self._read(timeout)
        _ = self.outcome
        found, self._messages = self._messages, []
        return found

    def wait(self) -> Outcome:
        """Return the outcome when there is one."""
        while self.outcome is None:
            self._read(0.1)
        assert self._outcome is not None
        return self._outcome

    def cancel(self) -> None:
        """Ask the worker to end; the outcome comes soon after. What was tried stays."""
        self._cancelled = True
        self._running.cancel()

    def close(self) -> None:
        """End the worker if it runs; what it has said is kept."""
        self._cancelled = True
        self._running.close()
        self._read(0.0)
        _ = self.outcome
        _remove(self._running)

    def _read(self, timeout: float) -> None:
        for message in self._running.take(timeout):
            self._messages.append(message)
            if isinstance(message, Trying):
                self._trying = message
            elif isinstance(message, Tried):
                self._keep(trial_from(message.trial))
            elif isinstance(message, Found):
                nodes = tuple(Node(**one) for one in message.nodes)
                if nodes != self.state.candidates:  # the program is another one by now
                    self.state = State(self.state.key, nodes)
                    self._save()

    def _keep(self, trial: Trial) -> None:
        self._trying = None
        self.state = replace(self.state, trials=(*self.state.trials, trial))
        self._save()

    def _settle(self, found: Outcome) -> None:
        again = found.ended is Ended.CRASHED and self._trying is not None and not self._cancelled
        if again and self._crashes < _MOST_CRASHES:
            assert self._trying is not None
            self._crashes += 1
            trial = Trial(self._trying.removed, None, False, found.sentence)
            self._keep(trial)
            self._messages.append(Tried(asdict(trial)))
            _remove(self._running)
            self._running = self._start()
            return
        self._outcome = found

    def _save(self) -> None:
        """Write the state, whole or not at all.

        Raises: FolderError if the disk refuses
        """
        text = self.state.text.encode("utf-8")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self._path, lambda stream: stream.write(text))
        except OSError as error:
            raise FolderError(
                f"{self._path} cannot be written: {error.strerror or error}"
            ) from error


def _remove(running: JobRun) -> None:
    """Remove the scratch folder of a worker that has ended."""
    running.close()
