"""Variants measured side by side for the compare view: interleaved, warm, in a worker."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from typing_extensions import override

from devtools_app.following import Followed, Follower, Progress
from devtools_app.run_form import RunForm, runnable
from devtools_app.state import OpenSession

if TYPE_CHECKING:  # the window is on the screen before anything of the inspector is loaded
    from inspector.jobs.executing import MeasureJob, RunJob
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


def measured_jobs(shown: tuple[OpenSession, ...], form: RunForm) -> tuple[RunJob, ...]:
    """Return how the programs of sessions are run side by side; those without one are left out."""
    found = (runnable(one.id, one.session) for one in shown)
    return tuple(form.job(what) for what in found if what is not None)


def session_keys(shown: tuple[OpenSession, ...]) -> tuple[tuple[str, int], ...]:
    """Return what tells whether a measurement is one of these sessions as they are now."""
    return tuple((one.id, one.revision) for one in shown)


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
