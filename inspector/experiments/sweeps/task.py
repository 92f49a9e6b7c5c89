"""One running point of a sweep: compiled, run and compared in worker processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from inspector.experiments.evaluate.report import FIGURES, evaluation_report
from inspector.experiments.evaluate.request import (
    EvalRequest,
    EvalRequestError,
    evaluation_job,
)
from inspector.experiments.gates.evidence import Evidence, MissingError, static_value
from inspector.experiments.gates.gap_values import gap_value
from inspector.experiments.gates.requirement import EVAL
from inspector.experiments.sweeps.grid import Point
from inspector.experiments.sweeps.results import STATIC, PointResult, Status
from inspector.files.load import load_session
from inspector.files.session import Session, SessionOptions
from inspector.graph.methods import session_methods
from inspector.graph.operator_libraries import needed_libraries
from inspector.jobs.executing import BUFFER, INPUTS, MADE_INPUTS, VALUES, RunJob
from inspector.jobs.gap import GapJob
from inspector.jobs.messages import Ended, Message, Outcome, StageProgress
from inspector.jobs.output_folder import FolderError
from inspector.jobs.process import Worker
from inspector.jobs.run import JobRun
from inspector.jobs.table import COMPARES, COMPILES, EXECUTES
from inspector.numerics.report import GapReport
from inspector.recipes.compile_job import PROGRAM, RECORD, CompileJob
from inspector.recipes.compile_job import REPORT as COMPILE_REPORT
from inspector.trace.run_times import RunTimes, run_times
from schema.errors import FormatError

WARMUP = 3  # runs before those that are measured
_POLL_SECONDS = 0.1
GAP_METRIC = "gap.max_abs"
EVALUATION = "eval"  # folder of an evaluation on a data set
_EVALUATED = ("data", "metric", "samples", "method")  # settings that its results depend on
_STATISTIC = "mean of the steady runs"  # earlier versions had a median with tracing
RUN, NUMBERS = "run", "numbers"  # folders of runs: for their times, for their values
THREADS = 1  # of each worker: points run side by side
_KNOWN_UNIT = SessionOptions(time_scale_assumed=False)  # our own runtime writes nanoseconds


class RunningPoint(Protocol):
    """A job in a worker."""

    @property
    def outcome(self) -> Outcome | None:
        """Return how it ended, None while it runs."""
        ...

    def take(self, timeout: float = 0.0) -> list[Message]:
        """Return the messages since the last call."""
        ...

    def close(self) -> None:
        """End it if it runs."""
        ...


Compiler = Callable[[CompileJob, Path], RunningPoint]


@dataclass(frozen=True, slots=True)
class SweepSettings:
    """The measurements of each point beside compiling it.

    Attributes:
        runs: how often it is run for its latency, 0 for not at all
        gap: whether its numbers are compared with those of the recorded program
        inputs: random, ones, zeros, or a file of tensors
        timeout: seconds after which a job of a point is ended, None for never
        device: that it is run on, empty for this machine
        data: data set that it is evaluated on, empty for none
        metric: of the user, on that data set
        samples: most samples of it
        method: that is evaluated; empty for ``forward``, else the first that takes inputs
    """

    runs: int = 0
    gap: bool = False
    inputs: str = MADE_INPUTS[0]
    timeout: float | None = None
    device: str = ""
    data: str = ""
    metric: str = ""
    samples: int | None = None
    method: str = ""

    def content(self) -> dict[str, Any]:
        """Return what the results depend on, as a JSON object."""
        own = {"runs": self.runs, "gap": self.gap, "inputs": self.inputs, "statistic": _STATISTIC}
        own |= {"device": self.device} if self.device else {}
        return {**own, **self._evaluation()}

    def _evaluation(self) -> dict[str, Any]:
        if not self.data:
            return {}
        own = {"data": self.data, "metric": self.metric, "samples": self.samples}
        return {**own, **({"method": self.method} if self.method else {})}

    def evaluated_by(self, found: PointResult) -> bool:
        """Return whether a result has the requested evaluation."""
        if not self.data:
            return True
        own = self._evaluation()
        same = all(found.settings.get(name) == own.get(name) for name in _EVALUATED)
        return same and any(name.startswith(EVAL) for name in found.metrics)

    def timed_by(self, found: PointResult) -> bool:
        """Return whether a result has the requested times."""
        if not self.runs:
            return True
        names = ("runs", "inputs", "statistic")
        same = all(found.settings.get(name) == self.content()[name] for name in names)
        return same and self._on_same_device(found) and found.metrics.get("latency") is not None

    def compared_by(self, found: PointResult) -> bool:
        """Return whether a result has the requested gap."""
        same = found.settings.get("inputs") == self.inputs and self._on_same_device(found)
        return not self.gap or (same and found.metrics.get(GAP_METRIC) is not None)

    def _on_same_device(self, found: PointResult) -> bool:
        return found.settings.get("device", "") == self.device

    def met_by(self, found: PointResult) -> bool:
        """Return whether a result has all that is requested."""
        whole = self.timed_by(found) and self.compared_by(found) and self.evaluated_by(found)
        return found.status is Status.DONE and whole


def compile_alone(job: CompileJob, folder: Path) -> RunningPoint:
    """Compile in a worker of its own.

    Raises: FolderError, OSError
    """
    worker = Worker(COMPILES, threads=THREADS)
    return JobRun(job, folder, force=True, worker=worker)


class PointTask:
    """A running point; use it from one thread.

    Attributes:
        point: which
        stage: current activity
        result: None while it runs
        crashed: whether it failed because a process was lost, so that another try may do
    """

    def __init__(
        self,
        point: Point,
        folder: Path,
        settings: SweepSettings,
        known: PointResult | None = None,
        compiler: Compiler = compile_alone,
    ) -> None:
        """Start.

        Args:
            point: which
            folder: for its files
            settings: measurements beside compiling
            known: results of an earlier attempt, whose parts are not done again
            compiler: starts a compile
        """
        self.point = point
        self.stage = "start"
        self.result: PointResult | None = None
        self.crashed = False
        self._folder = folder
        self._settings = settings
        self._compiler = compiler
        self._metrics: dict[str, float | None] = dict(known.metrics) if known else {}
        self._seconds: dict[str, float] = dict(known.seconds) if known else {}
        self._noise = known.noise if known else ""
        self._known = known
        self._what, self._since = "compile", time.monotonic()
        self._running: RunningPoint | None = None
        self._steps = self._work()
        self._advance(None)

    def poll(self, timeout: float = 0.0) -> PointResult | None:
        """Return the result once it is there, waiting for news a little."""
        if self.result is not None or self._running is None:
            return self.result
        for message in self._running.take(timeout):
            if isinstance(message, StageProgress) and message.seconds is None:
                self.stage = f"{self._what}: {message.stage}"
        outcome = self._running.outcome
        limit = self._settings.timeout
        if outcome is None and limit is not None and time.monotonic() - self._since > limit:
            self._running.close()
            self._fail(f"stopped: timed out in {self.stage}")
        elif outcome is not None:
            self._running.close()
            if outcome.ended is Ended.FINISHED:
                self._advance(outcome)
            else:
                self.crashed = outcome.ended in (Ended.CRASHED, Ended.NOT_STARTED)
                self._fail(outcome.sentence)
        return self.result

    def run(self, stopped: Callable[[], bool]) -> PointResult:
        """Return the result, waiting for it until the point is stopped; nothing runs afterwards.

        Args:
            stopped: whether to end it
        """
        try:
            while self.poll(_POLL_SECONDS) is None and not stopped():
                pass
        finally:
            self.close()
        return self.result or self._made(Status.FAILED, sentence="stopped")

    def close(self) -> None:
        """End running points; finished points stay."""
        if self._running is not None:
            self._running.close()
        self._steps.close()

    # ---- one after the other
    def _advance(self, outcome: Outcome | None) -> None:
        """Go on with the next job; what files and disks refuse fails the point alone."""
        if outcome is not None:
            self._seconds[self._what] += time.monotonic() - self._since
        try:
            self._running = self._steps.send(outcome)
            self._since = time.monotonic()
        except StopIteration:
            self._finish()
        except (
            FolderError,
            FormatError,
            OSError,
            MissingError,
            PointError,
            EvalRequestError,
        ) as error:
            self._fail(str(error))

    def _work(self) -> Generator[RunningPoint, Any, None]:
        if not (self._folder / COMPILE_REPORT).is_file():
            self._begin("compile")
            yield self._compiler(self.point.job, self._folder)
        session = self._session()
        evidence = Evidence(session, str(self._folder))
        self._metrics |= {name: static_value(name, evidence).value for name in STATIC}
        known = self._known or PointResult(0, "", {})
        if not self._settings.timed_by(known):
            yield from self._timed(session)
        if not self._settings.compared_by(known):
            yield from self._compared(session)
        if not self._settings.evaluated_by(known):
            yield from self._evaluated(session)

    def _timed(self, session: Session) -> Generator[RunningPoint, Any, None]:
        found: list[RunTimes] = []
        self._begin("run")
        for method in session_methods(session):
            folder = self._folder / _named(RUN, method, session)
            job = RunJob(
                **self._run_fields(session, method), runs=self._settings.runs, warmup=WARMUP
            )
            outcome: Outcome = yield self._run(job, folder)
            report = outcome.result
            times = run_times(report["run_ms"] or report["traced_run_ms"])
            if times is None:
                raise PointError(f"the runs of {method} have no times")
            found.append(times)
        slowest = max(found, key=lambda one: one.mean)
        self._metrics["latency"], self._noise = slowest.mean, slowest.noise

    def _compared(self, session: Session) -> Generator[RunningPoint, Any, None]:
        reports: list[GapReport] = []
        for method in session_methods(session):
            folder = self._folder / _named(NUMBERS, method, session)
            self._begin("values")
            job = RunJob(
                **self._run_fields(session, method), debug_level="intermediate", timed=False
            )
            outcome = yield self._run(job, folder)
            failure = outcome.result["trace"]["failure"]
            if failure:
                raise PointError(failure)
            self._begin("gap")
            files = (*_paths(session), str(folder / VALUES), str(folder / BUFFER))
            worker = Worker(COMPARES, threads=THREADS)
            libraries = needed_libraries(self.point.job, session)
            job = GapJob(files, method, inputs=str(folder / INPUTS), libraries=libraries)
            comparing = JobRun(job, worker=worker)
            yield comparing
            reports += [comparing.state] if comparing.state is not None else []
        runs = tuple(run for report in reports for run in report.runs)
        notes = tuple(note for report in reports for note in report.notes)
        evidence = Evidence(session, str(self._folder), gap=GapReport(runs, notes))
        self._metrics[GAP_METRIC] = gap_value(GAP_METRIC, evidence).value

    def _evaluated(self, session: Session) -> Generator[RunningPoint, Any, None]:
        asked = self._settings
        self._begin("eval")
        libraries = needed_libraries(self.point.job, session)
        request = EvalRequest(asked.data, asked.metric, asked.samples)
        how = RunJob("", method=asked.method, threads=THREADS, libraries=libraries)
        job = evaluation_job([session], request, how)
        worker = Worker(EXECUTES, threads=THREADS)
        running = JobRun(job, self._folder / EVALUATION, worker=worker)
        yield running
        report = evaluation_report(running.state, asked.samples)
        (found,) = report.variants
        if wrong := report.sentence or found.sentence:
            raise PointError(wrong)
        names = (*FIGURES, *found.metrics)
        self._metrics |= {f"{EVAL}{name}": found.figure(name) for name in names}

    def _run_fields(self, session: Session, method: str) -> dict[str, Any]:
        return {
            "program": str(self._folder / PROGRAM),
            "method": method,
            "inputs": self._settings.inputs,
            "record": str(self._folder / RECORD),
            "data_files": tuple(str(path) for path in sorted(self._folder.glob("*.ptd"))),
            "libraries": needed_libraries(self.point.job, session),
            "threads": THREADS,
            "device": self._settings.device,
        }

    def _run(self, job: RunJob, folder: Path) -> JobRun:
        worker = Worker(EXECUTES, threads=THREADS)
        return JobRun(job, folder, force=True, worker=worker)

    def _session(self) -> Session:
        paths = [self._folder / PROGRAM, self._folder / RECORD, *self._folder.glob("*.ptd")]
        return load_session([str(path) for path in paths], _KNOWN_UNIT, strict=True)

    # ---- what came of it
    def _begin(self, what: str) -> None:
        self._what = self.stage = what
        self._seconds[what] = 0.0

    def _finish(self) -> None:
        files = sorted(
            path.relative_to(self._folder).as_posix()
            for path in self._folder.rglob("*")
            if path.is_file() and path.stat().st_size and path.suffix in _OPENED
        )
        self.result = self._made(Status.DONE, files=tuple(files))

    def _fail(self, sentence: str) -> None:
        self._running = None
        self.result = self._made(Status.FAILED, sentence=sentence)

    def _made(self, status: Status, **more: Any) -> PointResult:  # noqa: ANN401 - fields
        return PointResult(
            number=self.point.number,
            key=self.point.key,
            changes=dict(self.point.changes),
            status=status,
            metrics=_finite(self._metrics),
            seconds={what: round(spent, 3) for what, spent in self._seconds.items() if spent},
            settings=self._settings.content(),
            noise=self._noise,
            **more,
        )


_OPENED = (".pte", ".ptd", ".etrecord", ".etdp", ".debug")


class PointError(Exception):
    """A failed point; one sentence with the reason."""


def _named(folder: str, method: str, session: Session) -> str:
    """Return the name of a folder of runs; with the index of the method where there are several."""
    methods = session_methods(session)
    return folder if len(methods) == 1 else f"{folder}-{methods.index(method)}"


def _paths(session: Session) -> list[str]:
    return [file.path for file in session.files]


def _finite(metrics: Mapping[str, float | None]) -> dict[str, float | None]:
    """Return metrics without those that are infinite, which JSON cannot hold."""
    limit = float("inf")
    return {
        name: value if value is not None and abs(value) < limit else None
        for name, value in metrics.items()
    }
