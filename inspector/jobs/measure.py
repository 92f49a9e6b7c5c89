"""Several programs measured side by side: a worker, blocks of runs as they arrive, one outcome."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

import msgspec
from typing_extensions import override

from inspector.jobs.executing import MeasureJob, RunJob
from inspector.jobs.messages import (
    Counted,
    Ended,
    Log,
    Measured,
    Message,
    Outcome,
    Refused,
    StageProgress,
)
from inspector.jobs.supervisor import Setup, Supervisor
from inspector.trace.run_times import median
from schema.objects.codec import to_json

_SPARE = 2  # workers that may be lost while no program runs


@dataclass(frozen=True, slots=True)
class ProgramTimes:
    """The times of one program.

    Units: ms

    Attributes:
        job: how it was run
        blocks: times of each block, in the order measured; empty for a block that failed
        facts: method, threads, clock, backends, and the engine of each partition
        failure: why it was excluded, a sentence; empty if all blocks exist
        blame: usage, unreadable or failed: cause of the failure
    """

    job: RunJob
    blocks: tuple[tuple[float, ...], ...] = ()
    facts: Mapping[str, Any] | None = None
    failure: str = ""
    blame: str = "failed"

    @property
    def median_ms(self) -> float | None:
        """Return the median of the medians of the blocks, None if nothing was measured."""
        medians = [median(block) for block in self.blocks if block]
        return median(medians) if medians else None

    @property
    def fastest_ms(self) -> float | None:
        """Return the typical fastest run of a block, which verdicts weigh; None if unmeasured."""
        fastest = [math.log(min(block)) for block in self.blocks if block and min(block) > 0]
        return math.exp(median(fastest)) if fastest else None

    @property
    def engines(self) -> tuple[str, ...]:
        """Return the distinct engines of the partitions."""
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
        return to_json(self)

    def fastest_runs(self) -> tuple[tuple[float | None, ...], ...]:
        """Return the fastest run of each program in each block, which verdicts weigh, in ms."""
        sides = [[min(block, default=None) for block in one.blocks] for one in self.programs]
        return tuple(zip_longest(*sides))

    def common(self, one: int, two: int) -> tuple[list[tuple[float, ...]], list[tuple[float, ...]]]:
        """Return the blocks of both programs in the form for `judge`."""
        here, there = self.programs[one].blocks, self.programs[two].blocks
        pairs = [(a, b) for a, b in zip(here, there, strict=False) if a and b]
        return [a for a, _ in pairs], [b for _, b in pairs]


class MeasureSupervisor(Supervisor[Measurement]):
    """Stores the blocks of a measurement; its state is the result so far.

    A program that crashes its worker is excluded; another worker continues with the others. The job
    succeeds if at least one program has all its blocks; the others
    have a reason.
    """

    def __init__(self, job: MeasureJob, setup: Setup) -> None:
        super().__init__(job, setup)
        count = len(job.programs)
        self._blocks: list[dict[int, tuple[float, ...]]] = [{} for _ in range(count)]
        self._facts: list[Mapping[str, Any] | None] = [None] * count
        self._failures: list[Refused | None] = [None] * count
        self._versions: Mapping[str, str] = {}
        self._indices = list(range(count))  # of the programs the worker has
        self._begun: int | None = None
        self._spare = _SPARE
        self._next = job

    @property
    def state(self) -> Measurement:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Return the measurements so far."""
        return Measurement(tuple(map(self._times, range(len(self.job.programs)))), self._versions)

    @override
    def request(self) -> tuple[MeasureJob, Mapping[str, Any]]:
        return self._next, self.setup.options

    @override
    def note(self, message: Message) -> Message | None:
        if isinstance(message, Measured | Refused):
            return self._keep(message, self._indices[message.program])
        return self._progress() if isinstance(message, Counted) else message

    @override
    def ended(self, outcome: Outcome, *, cancelled: bool) -> Outcome | None:
        if outcome.ended is Ended.CRASHED and not cancelled:
            self._blame(outcome)
            if self._spare and self._go_on():
                return None
        return self._judged(outcome)

    def _keep(self, message: Measured | Refused, index: int) -> Message | None:
        self._begun = None
        if isinstance(message, Refused):
            failure = self._failures[index] = msgspec.structs.replace(message, program=index)
            return failure
        if not message.run_ms:
            self._begun = index
            return None
        self._blocks[index][message.block] = message.run_ms
        self._facts[index] = self._facts[index] or message.facts or None
        return msgspec.structs.replace(message, program=index)

    def _progress(self) -> Counted:
        done = sum(len(blocks) for blocks in self._blocks)
        lost = sum(
            self.job.blocks - len(blocks)
            for blocks, failure in zip(self._blocks, self._failures, strict=True)
            if failure is not None
        )
        return Counted(done + lost, self.job.blocks * len(self.job.programs))

    def _blame(self, found: Outcome) -> None:
        """Exclude the program that ran when the worker ended; without one, retry once."""
        index, self._begun = self._begun, None
        self.added.append(Log(found.details, library=True))
        if index is None:
            self._spare -= 1
            return
        path = self.job.programs[index].program
        failure = self._failures[index] = Refused(index, f"{path}: {found.sentence}")
        self.added.append(failure)

    def _go_on(self) -> bool:
        """Prepare another worker for the remaining programs; return whether there are any."""
        left = [
            index
            for index, failure in enumerate(self._failures)
            if failure is None and len(self._blocks[index]) < self.job.blocks
        ]
        if not left:
            return False
        self._indices = left
        self.added.append(StageProgress("start"))
        self._next = replace(
            self.job,
            programs=tuple(self.job.programs[index] for index in left),
            first_block=tuple(max(self._blocks[index], default=-1) + 1 for index in left),
        )
        return True

    def _judged(self, found: Outcome) -> Outcome:
        if found.ended is Ended.FINISHED:
            self._versions = {key: str(value) for key, value in found.result.items()}
        whole = [len(blocks) == self.job.blocks for blocks in self._blocks]
        if any(whole) and found.ended in (Ended.FINISHED, Ended.CRASHED):
            return Outcome(Ended.FINISHED, result=self.state.content())
        first = next((failure for failure in self._failures if failure is not None), None)
        if first is not None and found.ended in (Ended.FINISHED, Ended.CRASHED):
            return replace(found, ended=Ended.FAILED, sentence=first.sentence, blame=first.blame)
        return found

    def _times(self, index: int) -> ProgramTimes:
        failure = self._failures[index]
        blocks = self._blocks[index]
        return ProgramTimes(
            self.job.programs[index],
            tuple(blocks.get(block, ()) for block in range(max(blocks, default=-1) + 1)),
            self._facts[index],
            failure.sentence if failure is not None else "",
            failure.blame if failure is not None else "failed",
        )
