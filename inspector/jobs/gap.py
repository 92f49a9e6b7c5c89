"""A comparison of a run with its recorded program, as a job for a worker."""

from __future__ import annotations

import json
from dataclasses import dataclass

from typing_extensions import override

from inspector.jobs.messages import Ended, Outcome
from inspector.jobs.supervisor import Setup, Supervisor
from inspector.numerics.report import GapReport, report_from

REPORT = "gap.json"


@dataclass(frozen=True, slots=True)
class GapJob:
    """A request for a numeric comparison.

    Attributes:
        files: of one session
        method: only this one; empty for all
        reference: edge, exported, float (the program before it was quantized), or the name of a
            recorded graph; empty for the best available
        relative: relative tolerance, of the largest magnitude; None for a default by dtype
        absolute: added to it
        inputs: torch.save file with the inputs of the runs; empty for those in the files
        runs: only these run indices of each block; empty for all
        keep: bytes of tensors to keep for inspection
        libraries: files that register operators with torch, which the recorded program calls
    """

    files: tuple[str, ...]
    method: str = ""
    reference: str = ""
    relative: float | None = None
    absolute: float = 0.0
    inputs: str = ""
    runs: tuple[int, ...] = ()
    keep: int = 0
    libraries: tuple[str, ...] = ()


class GapSupervisor(Supervisor[GapReport | None]):
    """Reads the report of a comparison; its folder is there until the job is closed."""

    def __init__(self, job: GapJob, setup: Setup) -> None:
        super().__init__(job, setup)
        self.state = None

    @override
    def ended(self, outcome: Outcome, *, cancelled: bool) -> Outcome:
        if outcome.ended is not Ended.FINISHED:
            return outcome
        assert self.setup.folder is not None
        try:
            text = (self.setup.folder / REPORT).read_text("utf-8")
            self.state = report_from(json.loads(text))
        except (OSError, ValueError) as error:
            return Outcome(Ended.FAILED, f"the worker wrote no report: {error}")
        return outcome
