"""Variants measured side by side for the compare view: interleaved, warm, in a worker."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QObject
from typing_extensions import override

from devtools_app.dialogs.run_form import RunForm, runnable
from devtools_app.jobs.follower import Followed, Follower, Progress
from devtools_app.state.state import OpenSession

if TYPE_CHECKING:  # the window is on the screen before anything of the inspector is loaded
    from inspector.jobs.executing import MeasureJob, RunJob
    from inspector.jobs.measure import Measurement
    from inspector.jobs.run import JobRun

_KEPT = 32  # measurements


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
    """Runs one measurement at a time; a new one gives up the one before.

    What was measured is remembered for as long as the sessions are the same.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._known: dict[tuple[tuple[str, int], ...], Measurement] = {}

    def known(self, shown: tuple[OpenSession, ...]) -> Measurement | None:
        """Return the last measurement of these sessions in this order, None when there is none."""
        return self._known.get(session_keys(shown))

    def measures(self, shown: tuple[OpenSession, ...]) -> bool:
        """Return whether these sessions are being measured."""
        found = self.current
        return self.running and found is not None and found.sessions == session_keys(shown)

    def measure(self, shown: tuple[OpenSession, ...], form: RunForm) -> bool:
        """Measure sessions side by side; return whether all of them have a program to run."""
        from inspector.jobs.executing import MeasureJob

        jobs = measured_jobs(shown, form)
        if len(jobs) != len(shown) or len(jobs) < 2:
            return False
        self.start(MeasureJob(jobs), session_keys(shown))
        return True

    def start(self, job: MeasureJob, sessions: tuple[tuple[str, int], ...]) -> None:
        """Measure.

        Args:
            job: what to measure
            sessions: id and revision of the session of each program
        """
        from inspector.jobs.run import JobRun

        self.shut_down()
        self._follow(JobRun(job), Measuring(job, sessions))

    @override
    def _settled(self, run: Followed, current: Measuring) -> Measuring:
        super()._settled(run, current)
        found = cast("JobRun", run).state
        self._known.pop(current.sessions, None)
        self._known[current.sessions] = found
        while len(self._known) > _KEPT:
            self._known.pop(next(iter(self._known)))
        return replace(current, measurement=found)
