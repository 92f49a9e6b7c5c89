"""Variants measured side by side for the compare view, and their errors, in workers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from devtools_app.jobs.follower import JobFollower, JobProgress
from devtools_app.state.run_form import RunForm, runnable
from devtools_app.state.state import OpenSession
from devtools_app.state.trusted_code import untrusted_source

if TYPE_CHECKING:  # the window is on the screen before anything of the inspector is loaded
    from inspector.compare.output_errors import OutputErrors
    from inspector.jobs.evaluate import EvalJob
    from inspector.jobs.executing import RunJob
    from inspector.jobs.measure import Measurement

NOT_COMPUTED = "errors of outputs are not computed"
_KEPT = 32  # measurements, and errors


def measured_jobs(shown: tuple[OpenSession, ...], form: RunForm) -> tuple[RunJob, ...]:
    """Return jobs for the programs of sessions; sessions without one are skipped.

    They run one method that all have, on the device that all their traces come from, else on that
    of the form; programs that share no method have no jobs.
    """
    from inspector.graph.methods import method_to_run

    method = method_to_run([one.session for one in shown], form.method)
    if not method:
        return ()
    form = replace(form, method=method)
    found = [what for one in shown if (what := runnable(one.id, one.session)) is not None]
    devices = {what.device for what in found if what.traces}
    if len(devices) == 1:
        form = replace(form, device=devices.pop())
    return tuple(form.job(what) for what in found)


def are_measurable(shown: tuple[OpenSession, ...], chosen: str) -> bool:
    """Return whether all sessions have a program, and a method in common or the chosen one.

    Asked with each state of the window: it makes no jobs, for which modules would be imported.
    """
    from inspector.graph.methods import method_to_run

    sessions = [one.session for one in shown]
    programs = all(one.program is not None or one.bundled is not None for one in sessions)
    return programs and bool(method_to_run(sessions, chosen))


def session_keys(shown: tuple[OpenSession, ...]) -> tuple[tuple[str, int], ...]:
    """Return id and revision of sessions: a measurement is valid for these only."""
    return tuple((one.id, one.revision) for one in shown)


def _runs_for(follower: JobFollower, shown: tuple[OpenSession, ...]) -> bool:
    found = follower.current
    return follower.running and found is not None and found.about == session_keys(shown)


class Measurements(QObject):
    """The measurements by session.

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

    def runs_for(self, shown: tuple[OpenSession, ...]) -> bool:
        """Return whether these sessions are being measured."""
        return _runs_for(self.follower, shown)

    def measure(self, shown: tuple[OpenSession, ...], form: RunForm) -> bool:
        """Measure sessions side by side; return whether all have a program and a method to run.

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


class OutputErrorRuns(QObject):
    """The errors of outputs by session, computed in the background.

    Attributes:
        follower: of the running or last computation
    """

    def __init__(self, follower: JobFollower, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.follower = follower
        self._known: dict[object, OutputErrors] = {}
        follower.ended.connect(self._keep)

    def known(self, shown: tuple[OpenSession, ...]) -> OutputErrors | None:
        """Return the errors of these sessions in this order, or None."""
        return self._known.get(session_keys(shown))

    def runs_for(self, shown: tuple[OpenSession, ...]) -> bool:
        """Return whether the errors of these sessions are being computed."""
        return _runs_for(self.follower, shown)

    def start(self, shown: tuple[OpenSession, ...], job: EvalJob) -> None:
        """Compute the errors of sessions, unless that runs or the code to run is not trusted."""
        from inspector.compare.output_errors import OutputErrors

        key = session_keys(shown)
        if key in self._known or self.runs_for(shown):
            return
        if source := untrusted_source(job.reference.source):
            words = f"the float program is that of {source}, whose code is not trusted yet"
            self._put(key, OutputErrors("", notes=(f"{NOT_COMPUTED}: {words}; Evaluate runs it",)))
            self.follower.changed.emit()
            return
        self.follower.start(job, about=key, replace_running=True)

    def end_others(self, shown: tuple[OpenSession, ...]) -> None:
        """End a computation of other sessions than these: their comparison is closed."""
        if self.follower.running and not self.runs_for(shown):
            self.follower.cancel()

    def _keep(self, progress: JobProgress) -> None:
        from inspector.compare.output_errors import OutputErrors
        from inspector.experiments.evaluate.comparing import output_errors
        from inspector.experiments.evaluate.report import evaluation_report

        if progress.error:
            found = OutputErrors("", notes=(f"{NOT_COMPUTED}: {progress.error.rstrip('.')}",))
            if progress.cancelling:
                return  # the comparison that shows them again computes them
        else:
            found = output_errors(evaluation_report(progress.state), "")
        self._put(progress.about, found)

    def _put(self, key: object, found: OutputErrors) -> None:
        self._known[key] = found
        while len(self._known) > _KEPT:
            self._known.pop(next(iter(self._known)))
