"""Variants measured side by side for the compare view: interleaved, warm, in a worker."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from devtools_app.jobs.follower import JobFollower, JobProgress
from devtools_app.state.run_form import RunForm, runnable
from devtools_app.state.state import OpenSession

if TYPE_CHECKING:  # the window is on the screen before anything of the inspector is loaded
    from inspector.jobs.executing import RunJob
    from inspector.jobs.measure import Measurement

_KEPT = 32  # measurements


def measured_jobs(shown: tuple[OpenSession, ...], form: RunForm) -> tuple[RunJob, ...]:
    """Return jobs for the programs of sessions; sessions without one are skipped.

    They run on the device that all their traces come from, else on that of the form.
    """
    found = [what for one in shown if (what := runnable(one.id, one.session)) is not None]
    devices = {what.device for what in found if what.traces}
    if len(devices) == 1:
        form = replace(form, device=devices.pop())
    return tuple(form.job(what) for what in found)


def session_keys(shown: tuple[OpenSession, ...]) -> tuple[tuple[str, int], ...]:
    """Return id and revision of sessions: a measurement is valid for these only."""
    return tuple((one.id, one.revision) for one in shown)


class Measurements(QObject):
    """The measurements by the sessions they are of.

    Attributes:
        follower: of the running or last measurement
    """

    def __init__(self, follower: JobFollower, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.follower = follower
        self._known: dict[object, Measurement] = {}
        follower.ended.connect(self._keep)

    def known(self, shown: tuple[OpenSession, ...]) -> Measurement | None:
        """Return the last measurement of these sessions in this order, or None."""
        return self._known.get(session_keys(shown))

    def measures(self, shown: tuple[OpenSession, ...]) -> bool:
        """Return whether these sessions are being measured."""
        found = self.follower.current
        return self.follower.running and found is not None and found.about == session_keys(shown)

    def measure(self, shown: tuple[OpenSession, ...], form: RunForm) -> bool:
        """Measure sessions side by side; return whether all of them have a program to run.

        A running measurement is ended.
        """
        from inspector.jobs.executing import MeasureJob

        jobs = measured_jobs(shown, form)
        if len(jobs) != len(shown) or len(jobs) < 2:
            return False
        job = MeasureJob(jobs)
        self.follower.start(job, about=session_keys(shown), replace_running=True)
        return True

    def _keep(self, progress: JobProgress) -> None:
        self._known.pop(progress.about, None)
        self._known[progress.about] = progress.state
        while len(self._known) > _KEPT:
            self._known.pop(next(iter(self._known)))
