"""Runs the comparisons and evaluations that gates lack, one after the other."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from devtools_app.jobs.evaluating import PreparedEvaluation, prepared
from devtools_app.jobs.follower import JobFollower, JobProgress
from devtools_app.jobs.latest import Latest
from devtools_app.state.run_form import runnable
from devtools_app.state.state import Gaps, OpenSession
from devtools_app.state.transitions import with_gaps
from devtools_app.viewmodels.gate_plan import GateStep, StepKind
from inspector.jobs.executing import trace_files
from inspector.jobs.gap import GapJob
from inspector.jobs.messages import Ended
from inspector.units import format_elapsed

if TYPE_CHECKING:
    from devtools_app.jobs.window_jobs import WindowJobs
    from devtools_app.state.store import Store
    from inspector.experiments.evaluate.request import EvalRequest

_KEPT_BYTES = 512 << 20  # of tensors for a closer look in the view of the gap
_RUNS = "values for gates"  # of their own: their traces are compared, not opened


class GateEvidence(QObject):
    """Supplies the missing inputs of gates; results are in the state or among the evaluations.

    Signals:
        changed(): a step began, progressed or ended

    Attributes:
        problems: the inputs that could not be computed, and why
    """

    changed = Signal()

    def __init__(self, jobs: WindowJobs, store: Store, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._jobs, self._store = jobs, store
        self._followers = {
            StepKind.LOG: jobs[_RUNS],
            StepKind.COMPARE: jobs["gap"],
            StepKind.EVALUATE: jobs["evaluate"],
        }
        self._waiting: deque[GateStep] = deque()
        self._step: GateStep | None = None
        self._job: object = None  # of the step, to tell it from what other views start
        self._session: OpenSession | None = None
        self._logged: dict[str, tuple[str, ...]] = {}
        self._request: EvalRequest | None = None
        self._unconfirmed: tuple[EvalRequest | None, PreparedEvaluation] | None = None
        self._preparing = Latest("evaluation for gates", self)
        self._preparing.ready.connect(self._prepared)
        self._preparing.failed.connect(lambda error: self._fail(f"not evaluated: {error}"))
        self.problems: list[str] = []
        for follower in self._followers.values():
            follower.changed.connect(self._progressed)
            follower.ended.connect(self._ended)
            follower.dropped.connect(self._dropped)

    @property
    def running(self) -> bool:
        """Return whether a step is running."""
        return self._step is not None

    @property
    def words(self) -> str:
        """Return the current activity, empty if idle."""
        if self._step is None:
            return ""
        found = self._follower.current
        own = found is not None and found.job is self._job and self._job is not None
        far = f" · {format_elapsed(found.seconds)}" if own and found is not None else ""
        left = f" · {len(self._waiting)} more to do" if self._waiting else ""
        return f"{self._step.activity}{far}{left}"

    def start(self, steps: Sequence[GateStep], request: EvalRequest | None) -> None:
        """Do steps; those of a data set need a request for it."""
        self.problems.clear()
        self._logged.clear()
        self._waiting = deque(steps)
        self._request = request
        self._next()

    def cancel(self) -> None:
        """End the step that runs and leave out the others."""
        self._waiting.clear()
        follower = self._follower if self._step is not None else None
        if self._preparing.busy:
            self._preparing.cancel()
            self._next()
        elif follower is not None:
            follower.cancel()

    def shut_down(self) -> None:
        """Stop preparing; the jobs themselves end with the window."""
        self._waiting.clear()
        self._step = self._job = None
        self._preparing.close()

    @property
    def _follower(self) -> JobFollower:
        assert self._step is not None
        return self._followers[self._step.kind]

    def _next(self) -> None:
        self._step = self._job = None
        while self._waiting:
            step = self._step = self._waiting.popleft()
            problem = self._begin(step)
            if not problem:
                break
            self._refuse(step, problem)
            self._step = self._job = None
        self.changed.emit()

    def _begin(self, step: GateStep) -> str:
        """Start a step; return why it cannot be started."""
        sessions = tuple(one for one in self._store.state.sessions if one.id in step.sessions)
        if not sessions:
            return "it is closed"
        if step.kind is StepKind.EVALUATE:
            return self._prepare(sessions)
        self._session = sessions[0]
        return self._log(sessions[0]) if step.kind is StepKind.LOG else self._compare(sessions[0])

    def _log(self, one: OpenSession) -> str:
        what = runnable(one.id, one.session)
        if what is None:
            return "it has no program to run"
        form = self._jobs.run_form.logging_values(what)
        self._job = replace(form.job(what), sweep_threads=False, timed=False)
        return self._follower.start(self._job, form.target(what), about=one)

    def _compare(self, one: OpenSession) -> str:
        what = runnable(one.id, one.session)
        files = tuple(file.path for file in one.session.files if not file.error)
        files = self._logged.get(one.id, files)
        libraries = self._jobs.run_form.loaded(what) if what is not None else ()
        self._job = GapJob(files, keep=_KEPT_BYTES, libraries=libraries)
        return self._follower.start(self._job, about=one)

    def _prepare(self, sessions: tuple[OpenSession, ...]) -> str:
        request, waiting = self._request, self._unconfirmed
        self._unconfirmed = None
        if request is None:
            return "a data set is needed"
        if self._follower.running:
            return "an evaluation runs already: cancel it first"
        if waiting is not None and (waiting[0], waiting[1].sessions) == (request, sessions):
            return self._evaluate(waiting[1])
        options = self._jobs.run_form.backend_options
        self._preparing.submit(lambda _token: prepared(request, sessions, options))
        return ""

    def _prepared(self, found: PreparedEvaluation | str) -> None:
        if isinstance(found, str):
            self._fail(found)
        elif found.untrusted:
            self._unconfirmed = (self._request, found)
            self._fail(
                f"the float program is that of {found.untrusted}: press Compute again to run its"
                " code"
            )
        elif problem := self._evaluate(found):
            self._fail(problem)

    def _evaluate(self, found: PreparedEvaluation) -> str:
        self._job = found.job
        return found.start(self._follower)

    # -- what comes of a step --------------------------------------------------------------

    def _progressed(self) -> None:
        if self._step is not None:
            self.changed.emit()

    def _dropped(self, progress: JobProgress) -> None:
        if self._is_own(progress):
            self._fail("it was ended by a newer one")

    def _ended(self, progress: JobProgress) -> None:
        step = self._step
        if step is None or not self._is_own(progress):
            return
        outcome = progress.outcome
        if outcome is not None and outcome.ended is Ended.CANCELLED:
            self._waiting.clear()
        problem = progress.error
        if not problem and step.kind is StepKind.LOG:
            problem = self._keep_trace(progress)
        elif not problem and step.kind is StepKind.COMPARE:
            problem = self._keep_gap(progress)
        if problem:
            self._fail(problem)
        else:
            self._next()

    def _is_own(self, progress: JobProgress) -> bool:
        return self._job is not None and progress.job is self._job

    def _keep_trace(self, progress: JobProgress) -> str:
        """Keep the files of a run that logged values, for the step that compares them."""
        one = self._session
        what = runnable(one.id, one.session) if one is not None else None
        if what is None or progress.outcome is None:
            return "it has no program to run"
        files = trace_files(progress.target, progress.outcome.result)
        self._logged[what.session] = (*what.others, *files)
        return "" if files else "the run wrote no trace"

    def _keep_gap(self, progress: JobProgress) -> str:
        report, one, state = progress.state, self._session, self._store.state
        if report is None or not report.runs:
            return " ".join(report.notes if report is not None else ()) or "no run was compared"
        if one is None or not any(each is one for each in state.sessions):
            return "it was closed or read again meanwhile"
        self._store.put(with_gaps(state, Gaps(one, tuple(report.runs))))
        return ""

    def _fail(self, problem: str) -> None:
        if self._step is not None:
            self._refuse(self._step, problem)
        self._next()

    def _refuse(self, step: GateStep, problem: str) -> None:
        """Note why a step failed, and leave out the one that needs its result."""
        self.problems.append(f"{', '.join(step.names)}: {problem.rstrip('.')}")
        if step.kind is StepKind.LOG:
            needs = StepKind.COMPARE, step.sessions
            left = (one for one in self._waiting if (one.kind, one.sessions) != needs)
            self._waiting = deque(left)
