"""Variants measured side by side for the compare view: interleaved, warm, in a worker."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from typing_extensions import override

from devtools_app.following import Followed, Follower, Progress

if TYPE_CHECKING:  # the window is on the screen before anything of the inspector is loaded
    from inspector.jobs.executing import MeasureJob
    from inspector.jobs.measure import Measurement, MeasureRun


@dataclass(frozen=True, slots=True)
class Measuring(Progress):
    """A measurement as it stands.

    Attributes:
        job: what is measured
        sessions: the sessions its programs are those of, in its order
        measurement: what was measured, None while it runs
    """

    job: MeasureJob
    sessions: tuple[tuple[str, int], ...]
    measurement: Measurement | None = None


class Measurer(Follower[Measuring]):
    """Runs one measurement at a time; a new one gives up the one before."""

    def start(self, job: MeasureJob, sessions: tuple[tuple[str, int], ...]) -> None:
        """Measure.

        Args:
            job: what to measure
            sessions: id and revision of the session of each program
        """
        from inspector.jobs.measure import MeasureRun

        self.shut_down()
        self._follow(MeasureRun(job), Measuring(job, sessions))

    @override
    def _settled(self, run: Followed, current: Measuring) -> Measuring:
        super()._settled(run, current)
        return replace(current, measurement=cast("MeasureRun", run).measurement)
