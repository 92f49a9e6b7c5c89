"""Several programs measured side by side: a worker, blocks of runs as they come, one outcome."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from inspector.jobs.executing import MeasureJob, RunJob, executing_content, run_from
from inspector.jobs.messages import Counted, Ended, Log, Measured, Message, Outcome, Refused, Stage
from inspector.jobs.process import EXECUTES, Worker
from inspector.jobs.run import JobRun

__all__ = ["MeasureJob", "MeasureRun", "Measurement", "ProgramTimes", "measurement_from"]


_SPARE = 2  # workers that may be lost while no program runs


@dataclass(frozen=True, slots=True)
class ProgramTimes:
    """The times of one program.

    Units: ms

    Attributes:
        job: how it was run
        blocks: times of each block, in the order measured; empty for a block that failed
        facts: method, threads, clock, backends, and which engine ran each partition
        failure: why it was left out, a sentence; empty when all blocks are there
        blame: usage, unreadable or failed: what the failure is due to
    """

    job: RunJob
    blocks: tuple[tuple[float, ...], ...] = ()
    facts: Mapping[str, Any] | None = None
    failure: str = ""
    blame: str = "failed"

    @property
    def median_ms(self) -> float | None:
        """Return the median of the medians of the blocks, None when nothing was measured."""
        medians = [statistics.median(block) for block in self.blocks if block]
        return statistics.median(medians) if medians else None

    @property
    def engines(self) -> tuple[str, ...]:
        """Return what ran the partitions, each engine once."""
        found = (self.facts or {}).get("partitions", ())
        return tuple(dict.fromkeys(str(one.get("engine", "")) for one in found))


@dataclass(frozen=True, slots=True)
class Measurement:
    """Programs that were measured side by side.

    Attributes:
        programs: their times, in the order of the job
        versions: of etscope and torch
    """

    programs: tuple[ProgramTimes, ...]
    versions: Mapping[str, str] | None = None

    def content(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        return asdict(self)

    def common(self, one: int, two: int) -> tuple[list[tuple[float, ...]], list[tuple[float, ...]]]:
        """Return the blocks that both programs have, as `judge` takes them."""
        here, there = self.programs[one].blocks, self.programs[two].blocks
        pairs = [(a, b) for a, b in zip(here, there, strict=False) if a and b]
        return [a for a, _ in pairs], [b for _, b in pairs]


def measurement_from(content: Mapping[str, Any]) -> Measurement:
    """Return the measurement in a JSON object that ``Measurement.content`` made."""
    programs = tuple(
        ProgramTimes(
            run_from(each["job"]),
            tuple(tuple(block) for block in each["blocks"]),
            each["facts"],
            each["failure"],
            each["blame"],
        )
        for each in content["programs"]
    )
    return Measurement(programs, content["versions"])


class MeasureRun:
    """One measurement; ask it from one thread, as often as you like.

    A program that takes its worker along is left out; another worker goes on with the others
    where the first one stopped. What was measured stays.

    Attributes:
        job: what is measured
    """

    def __init__(
        self, job: MeasureJob, *, worker: Worker | None = None, timeout: float | None = None
    ) -> None:
        """Start.

        Args:
            job: what to measure
            worker: one that executes, was started ahead and has no job yet
            timeout: seconds after which it is ended
        """
        self.job = job
        count = len(job.programs)
        self._blocks: list[dict[int, tuple[float, ...]]] = [{} for _ in range(count)]
        self._facts: list[Mapping[str, Any] | None] = [None] * count
        self._failures: list[Refused | None] = [None] * count
        self._versions: Mapping[str, str] = {}
        self._until = None if timeout is None else time.monotonic() + timeout
        self._numbers = list(range(count))  # of the programs the worker has
        self._begun: int | None = None
        self._messages: list[Message] = []
        self._cancelled = False
        self._spare = _SPARE
        self._outcome: Outcome | None = None
        self._running = self._start(job, worker)

    @property
    def measurement(self) -> Measurement:
        """Return what has been measured so far."""
        return Measurement(tuple(map(self._times, range(len(self.job.programs)))), self._versions)

    @property
    def outcome(self) -> Outcome | None:
        """Return how it ended, None while it goes on.

        It has finished when at least one program has all its blocks; the others say why not.
        """
        if self._outcome is None and self._running.outcome is not None:
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

    def cancel(self) -> None:
        """Ask the worker to end; the outcome comes soon after. What was measured stays."""
        self._cancelled = True
        self._running.cancel()

    def close(self) -> None:
        """End the worker if it runs."""
        self._cancelled = True
        self._running.close()
        _ = self.outcome

    def wait(self, timeout: float | None = None) -> Outcome | None:
        """Return the outcome, None if it has not come in time."""
        until = None if timeout is None else time.monotonic() + timeout
        while self.outcome is None:
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                break
            self._running.wait(left)
        return self._outcome

    # ---- the worker
    def _start(self, job: MeasureJob, worker: Worker | None) -> JobRun:
        left = None if self._until is None else max(self._until - time.monotonic(), 0.0)
        content = executing_content(job)
        return JobRun(content, None, kind=EXECUTES, worker=worker, timeout=left)

    def _read(self, timeout: float = 0.0) -> None:
        for message in self._running.take(timeout):
            if isinstance(message, Measured | Refused):
                self._note(message, self._numbers[message.program])
            elif isinstance(message, Counted):
                self._messages.append(self._progress())
            else:
                self._messages.append(message)

    def _note(self, message: Measured | Refused, number: int) -> None:
        self._begun = None
        if isinstance(message, Refused):
            failure = self._failures[number] = replace(message, program=number)
            self._messages.append(failure)
        elif not message.run_ms:
            self._begun = number
        else:
            self._blocks[number][message.block] = message.run_ms
            self._facts[number] = self._facts[number] or message.facts or None
            self._messages.append(replace(message, program=number))

    def _progress(self) -> Counted:
        done = sum(len(blocks) for blocks in self._blocks)
        lost = sum(
            self.job.blocks - len(blocks)
            for blocks, failure in zip(self._blocks, self._failures, strict=True)
            if failure is not None
        )
        return Counted(done + lost, self.job.blocks * len(self.job.programs))

    def _settle(self, found: Outcome) -> None:
        self._read()
        if found.ended is Ended.CRASHED and not self._cancelled:
            self._blame(found)
            if self._spare and self._go_on():
                return
        self._outcome = self._judged(found)

    def _blame(self, found: Outcome) -> None:
        """Leave out the program that ran when the worker ended; without one, try once more."""
        number, self._begun = self._begun, None
        self._messages.append(Log(found.details, library=True))
        if number is None:
            self._spare -= 1
            return
        path = self.job.programs[number].program
        failure = self._failures[number] = Refused(number, f"{path}: {found.sentence}")
        self._messages.append(failure)

    def _go_on(self) -> bool:
        """Start another worker for what is left; return whether there is something left."""
        left = [
            number
            for number, failure in enumerate(self._failures)
            if failure is None and len(self._blocks[number]) < self.job.blocks
        ]
        if not left:
            return False
        self._numbers = left
        self._messages.append(Stage("start"))
        job = replace(
            self.job,
            programs=tuple(self.job.programs[number] for number in left),
            first_block=tuple(max(self._blocks[number], default=-1) + 1 for number in left),
        )
        self._running.close()
        self._running = self._start(job, None)
        return True

    def _judged(self, found: Outcome) -> Outcome:
        if found.ended is Ended.FINISHED:
            self._versions = {key: str(value) for key, value in found.result.items()}
        whole = [len(blocks) == self.job.blocks for blocks in self._blocks]
        if any(whole) and found.ended in (Ended.FINISHED, Ended.CRASHED):
            return Outcome(Ended.FINISHED, result=self.measurement.content())
        first = next((failure for failure in self._failures if failure is not None), None)
        if first is not None and found.ended in (Ended.FINISHED, Ended.CRASHED):
            return replace(found, ended=Ended.FAILED, sentence=first.sentence, blame=first.blame)
        return found

    def _times(self, number: int) -> ProgramTimes:
        failure = self._failures[number]
        blocks = self._blocks[number]
        return ProgramTimes(
            self.job.programs[number],
            tuple(blocks.get(block, ()) for block in range(max(blocks, default=-1) + 1)),
            self._facts[number],
            failure.sentence if failure is not None else "",
            failure.blame if failure is not None else "failed",
        )
