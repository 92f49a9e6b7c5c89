"""A comparison of a run with its recorded program, as a job for a worker."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from inspector.jobs.messages import Ended, Outcome
from inspector.jobs.output_folder import HIDDEN
from inspector.jobs.process import COMPARES, Worker
from inspector.jobs.run import JobRun
from inspector.numerics.report import GapReport, report_from

REPORT = "gap.json"


@dataclass(frozen=True, slots=True)
class GapJob:
    """What to compare.

    Attributes:
        files: of one session
        method: only this one; empty for all
        reference: edge, exported, or the name of a recorded graph; empty for the best there is
        relative: share of the largest magnitude that is no difference; None for one by type
        absolute: added to it
        inputs: file of torch.save with the inputs of the runs; empty for those in the files
        runs: only these numbers of each block; empty for all
        keep: bytes of tensors to keep for a closer look
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


def gap_content(job: GapJob) -> dict[str, Any]:
    """Return a job as a JSON object."""
    return asdict(job)


def gap_from(content: Mapping[str, Any]) -> GapJob:
    """Return the job in a JSON object that ``gap_content`` made."""
    found: dict[str, Any] = {**content, "files": tuple(content["files"])}
    found["runs"] = tuple(content["runs"])
    found["libraries"] = tuple(content.get("libraries", ()))
    return GapJob(**found)


class Scratch:
    """A folder of the system's that lives until nobody looks at it any more."""

    def __init__(self) -> None:
        """Make the folder.

        Raises: OSError if there is no room for it
        """
        self._folder = Path(tempfile.mkdtemp(prefix=HIDDEN))

    @property
    def working(self) -> Path:
        """Return the folder."""
        return self._folder

    def commit(self) -> None:
        """Leave everything where it is."""

    def discard(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def where(self) -> dict[str, str]:
        """Return the place as a member of the job's result."""
        return {"folder": str(self._folder)}


class GapRun(JobRun):
    """One comparison in a worker; its folder is there until it is closed.

    Attributes:
        job: what is compared
        folder: where the report and the tensors are
        report: what was found, None while it has not finished
    """

    def __init__(
        self, job: GapJob, *, worker: Worker | None = None, timeout: float | None = None
    ) -> None:
        """Start.

        Args:
            job: what to compare
            worker: one of its kind that was started ahead and has no job yet
            timeout: seconds after which the job is ended

        Raises: OSError if there is no room for its folder
        """
        self.job = job
        place = Scratch()
        self.folder = place.working
        content = gap_content(job)
        self.report: GapReport | None = None
        super().__init__(content, place, kind=COMPARES, worker=worker, timeout=timeout)

    def _settled(self, found: Outcome) -> Outcome:
        outcome = super()._settled(found)
        if outcome.ended is Ended.FINISHED:
            try:
                text = (self.folder / REPORT).read_text("utf-8")
                self.report = report_from(json.loads(text))
            except (OSError, ValueError, KeyError, TypeError) as error:
                return Outcome(Ended.FAILED, f"the worker left no report: {error}")
        return outcome
