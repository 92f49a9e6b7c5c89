"""The comparison of numbers that the window runs: started, watched and cancelled, in a worker."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from typing_extensions import override

from devtools_app.jobs.follower import Followed, Follower, Progress

if TYPE_CHECKING:  # the window is on the screen before anything of the inspector is loaded
    from inspector.jobs.gap import GapJob
    from inspector.jobs.run import JobRun
    from inspector.numerics.report import GapReport

KEPT_BYTES = 512 << 20  # of tensors for a closer look


@dataclass(frozen=True, slots=True)
class Gap(Progress):
    """A comparison as it stands.

    Attributes:
        job: what is compared
        report: what was found, None while it runs and when it failed
        error: why it did not finish, empty when nothing is wrong
        folder: where tensors are kept
    """

    job: GapJob
    report: GapReport | None = None
    error: str = ""
    folder: Path = Path()

    @property
    def done(self) -> int:
        """Return how many nodes were compared."""
        return self.counted.done if self.counted is not None else 0

    @property
    def total(self) -> int:
        """Return how many there are, 0 while that is not known."""
        return self.counted.total if self.counted is not None else 0


class GapRunner(Follower[Gap]):
    """Runs one comparison at a time; its tensors are there until the next or the end."""

    def start(self, job: GapJob) -> None:
        """Compare; a comparison before it is given up, with its tensors."""
        from inspector.jobs.messages import Ended, Outcome
        from inspector.jobs.run import JobRun

        self.shut_down()
        try:
            run = JobRun(replace(job, keep=KEPT_BYTES))
        except OSError as error:
            sentence = f"The comparison cannot be started: {error}."
            self._current = Gap(job, error=sentence, outcome=Outcome(Ended.FAILED, sentence))
            self.changed.emit()
            return
        self._follow(run, Gap(job, folder=run.folder))

    @override
    def _settled(self, run: Followed, current: Gap) -> Gap:
        from inspector.jobs.messages import Ended

        outcome = current.outcome  # the run keeps its tensors: it is closed by the next or the end
        wrong = outcome is not None and outcome.ended is not Ended.FINISHED
        sentence = outcome.sentence if wrong and outcome is not None else ""
        return replace(current, report=cast("JobRun", run).state, error=sentence)
