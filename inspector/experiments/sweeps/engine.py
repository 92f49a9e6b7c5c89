"""A running sweep: distributes points to workers, stores results as they arrive."""

from __future__ import annotations

import contextlib
import json
import shutil
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from queue import LifoQueue
from typing import Generic, Protocol, TypeVar

from typing_extensions import override

from inspector.experiments.sweeps.grid import Point
from inspector.experiments.sweeps.results import (
    POINTS,
    RESULTS,
    PointResult,
    Results,
    Status,
    point_from,
    results_text,
)
from inspector.experiments.sweeps.task import THREADS, PointTask, RunningPoint, SweepSettings
from inspector.files.written_folders import POINT
from inspector.jobs.compile_server import CompileServer
from inspector.jobs.output_folder import HIDDEN, FolderError, refused
from inspector.recipes.compile_job import CompileJob
from schema.errors import FormatError
from schema.objects.atomic_file import write_atomically

MOST_ATTEMPTS = 2  # of a point whose process is lost
_SAVE_SECONDS = 1.0  # the results are written this often while points come in
_POLL_SECONDS = 0.02


class Runner(Protocol):
    """Executes points."""

    def room(self) -> int:
        """Return how many more points can be begun."""
        ...

    def start(self, point: Point, known: PointResult | None) -> None:
        """Begin a point.

        Args:
            point: which
            known: results of an earlier attempt
        """
        ...

    def finished(self) -> list[tuple[PointResult, bool]]:
        """Return the points that ended since the last call, and whether a process was lost."""
        ...

    def at_work(self) -> list[str]:
        """Return a description of running work."""
        ...

    def close(self) -> None:
        """End running points."""
        ...


Answer = TypeVar("Answer")


class PoolRunner(Generic[Answer]):
    """Points as futures of an executor: of ``concurrent.futures`` here, of a cluster there."""

    def __init__(self, executor: Executor) -> None:
        """Take the executor of points."""
        self._executor = executor
        self._futures: dict[Future[Answer], Point] = {}

    def room(self) -> int:
        """Return how many more points can be begun."""
        return self.width() - len(self._futures)

    def start(self, point: Point, known: PointResult | None) -> None:
        """Begin a point."""
        self._futures[self.submit(point, known)] = point

    def finished(self) -> list[tuple[PointResult, bool]]:
        """Return the points that ended since the last call, after a short wait."""
        done = [future for future in self._futures if future.done()]
        if not done:  # a wait for futures fails where Ctrl+C comes between two of its locks
            time.sleep(_POLL_SECONDS)
        return [self.taken(future, self._futures.pop(future)) for future in done]

    def at_work(self) -> list[str]:
        """Return a description of running work."""
        return [f"{point.label}: {self.stage(point)}" for point in self._futures.values()]

    def width(self) -> int:
        """Return how many points can be under way at once."""
        raise NotImplementedError

    def submit(self, point: Point, known: PointResult | None) -> Future[Answer]:
        """Hand a point to the executor."""
        raise NotImplementedError

    def taken(self, future: Future[Answer], point: Point) -> tuple[PointResult, bool]:
        """Return the result of a point that has ended, and whether a process was lost."""
        raise NotImplementedError

    def stage(self, point: Point) -> str:
        """Return the current stage of a point."""
        raise NotImplementedError


class LocalRunner(PoolRunner[tuple[PointResult, bool]]):
    """Points on this machine: threads that wait for worker processes."""

    def __init__(self, folder: Path, settings: SweepSettings, workers: int) -> None:
        """Begin; processes are started with the points.

        Args:
            folder: of the sweep
            settings: the measurements of each point
            workers: how many points are worked on at once
        """
        super().__init__(ThreadPoolExecutor(workers, "sweep"))
        self._folder, self._settings = folder, settings
        self._workers = workers
        self._servers: LifoQueue[CompileServer] = LifoQueue()  # the last one has exported most
        for _ in range(workers):
            # each run has a process of its own: a spare one would take a second from the others
            self._servers.put(CompileServer(threads=THREADS, runs=False))
        self._tasks: dict[str, PointTask] = {}
        self._stopped = threading.Event()

    @override
    def width(self) -> int:
        return self._workers

    @override
    def submit(self, point: Point, known: PointResult | None) -> Future[tuple[PointResult, bool]]:
        return self._executor.submit(self._work, point, known)

    @override
    def taken(
        self, future: Future[tuple[PointResult, bool]], point: Point
    ) -> tuple[PointResult, bool]:
        return future.result()

    @override
    def stage(self, point: Point) -> str:
        task = self._tasks.get(point.key)
        return task.stage if task is not None else "start"

    def close(self) -> None:
        """End all processes."""
        self._stopped.set()
        self._executor.shutdown(cancel_futures=True)
        self._futures.clear()
        while not self._servers.empty():
            self._servers.get().close()
        for left in (self._folder / POINTS).glob(f"{HIDDEN}*"):  # of a point that had just begun
            shutil.rmtree(left, ignore_errors=True)

    def _work(self, point: Point, known: PointResult | None) -> tuple[PointResult, bool]:
        """Do a point; what its worker has exported for another one is not exported again."""
        server = self._servers.get()

        def compiling(job: CompileJob, folder: Path) -> RunningPoint:
            return server.start_compile(job, folder, force=True)

        try:
            folder = self._folder / POINTS / point.key
            task = PointTask(point, folder, self._settings, known, compiling)
            self._tasks[point.key] = task
            return task.run(self._stopped.is_set), task.crashed
        finally:
            self._tasks.pop(point.key, None)
            self._servers.put(server)


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a sweep.

    Attributes:
        recipe: file of the recipe
        fields: that are varied
        points: all of them
        objectives: metrics of the Pareto front
        settings: the measurements of each point
    """

    recipe: str
    fields: tuple[str, ...]
    points: tuple[Point, ...]
    objectives: tuple[str, ...]
    settings: SweepSettings


class Sweep:
    """A sweep; use it from one thread, and close it.

    Attributes:
        plan: of the sweep
        folder: for its files
    """

    def __init__(self, plan: Plan, folder: Path, runner: Runner, *, redo: bool = False) -> None:
        """Start, or resume an earlier one.

        Args:
            plan: of the sweep
            folder: for its files
            runner: executes points
            redo: whether finished points are done again

        Raises: FolderError if the folder cannot be written into
        """
        self.plan, self.folder = plan, folder
        self._runner = runner
        self._results = {one.key: _waiting(one) for one in plan.points}
        self._queue: deque[Point] = deque()
        self._saved = 0.0
        for point in plan.points:
            known = None if redo else kept_result(folder, point)
            if known is not None:
                self._results[point.key] = known
            if known is None or not plan.settings.met_by(known):
                self._queue.append(point)
        self._redo = redo
        self.save()

    @property
    def done(self) -> bool:
        """Return whether every point has ended."""
        return not self._queue and not self._runner.at_work()

    @property
    def left(self) -> int:
        """Return how many points have not ended."""
        return len(self._queue) + len(self._runner.at_work())

    @property
    def results(self) -> Results:
        """Return the results so far."""
        points = tuple(self._results[one.key] for one in self.plan.points)
        return Results(self.plan.recipe, self.plan.fields, points, self.plan.objectives)

    def at_work(self) -> list[str]:
        """Return a description of running work."""
        return self._runner.at_work()

    def step(self) -> list[PointResult]:
        """Start as many as fit and return the points that ended since the last call.

        Raises: FolderError if the results cannot be written; finished points are kept
        """
        while self._queue and self._runner.room() > 0:
            self._start(self._queue.popleft())
        ended = [self._note(result, crashed) for result, crashed in self._runner.finished()]
        found = [one for one in ended if one is not None]
        if found and (self.done or time.monotonic() - self._saved > _SAVE_SECONDS):
            self.save()
        return found

    def save(self) -> None:
        """Write the results.

        Raises: FolderError if the disk refuses; the former file stays
        """
        self._saved = time.monotonic()
        write_whole(self.folder / RESULTS, results_text(self.results))

    def close(self) -> None:
        """End running points; finished points stay."""
        self._runner.close()

    def _start(self, point: Point) -> None:
        known = self._results[point.key]
        attempts = known.attempts + 1
        self._results[point.key] = replace(known, attempts=attempts)
        if self._redo and attempts == 1:
            discard(self.folder, point)
        self._runner.start(point, known if known.metrics else None)

    def _note(self, result: PointResult, crashed: bool) -> PointResult | None:
        """Keep a result; a point whose process was lost is begun once more."""
        point = self.plan.points[result.number]
        attempts = self._results[point.key].attempts
        if crashed and attempts < MOST_ATTEMPTS:
            self._queue.appendleft(point)
            return None
        result = replace(result, attempts=attempts)
        if result.status is Status.DONE:
            try:
                text = json.dumps(result.content(), ensure_ascii=False) + "\n"
                write_whole(self.folder / POINTS / point.key / POINT, text)
            except FolderError as error:
                result = replace(result, status=Status.FAILED, sentence=str(error))
        self._results[point.key] = result
        return result


def _waiting(point: Point) -> PointResult:
    return PointResult(point.number, point.key, dict(point.changes))


def kept_result(folder: Path, point: Point) -> PointResult | None:
    """Return the result of a point in an earlier sweep, None if incomplete."""
    place = folder / POINTS / point.key / POINT
    try:
        found = point_from(json.loads(place.read_bytes()), str(place))
    except (OSError, ValueError, RecursionError, FormatError):
        return None
    there = all((place.parent / name).is_file() for name in found.files)
    if found.key != point.key or found.status is not Status.DONE or not there:
        return None
    return replace(found, number=point.number, changes=dict(point.changes), attempts=0)


def discard(folder: Path, point: Point) -> None:
    """Forget that a point was compiled; its files are replaced one by one."""
    from inspector.recipes.compile_job import REPORT

    for name in (POINT, REPORT):
        (folder / POINTS / point.key / name).unlink(missing_ok=True)


def write_whole(path: Path, text: str) -> None:
    """Write a file atomically.

    Raises: FolderError if the disk refuses; the former file stays
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, lambda stream: stream.write(text.encode("utf-8")))
    except OSError as error:
        raise refused(path, error) from error


def run_to_end(sweep: Sweep, report: Callable[[Sweep, Sequence[PointResult]], None]) -> Results:
    """Work until every point has ended; finished points stay, however this ends.

    Args:
        sweep: the sweep
        report: called after each step with what has ended

    Raises: FolderError if the results cannot be written
    """
    try:
        while not sweep.done:
            report(sweep, sweep.step())
    except BaseException:  # Ctrl+C among them
        sweep.close()
        with contextlib.suppress(FolderError):
            sweep.save()
        raise
    sweep.close()
    sweep.save()
    return sweep.results
