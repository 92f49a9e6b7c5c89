"""Points of a sweep on a Dask cluster: each cluster worker does the work of a local one.

The job is sent as JSON, the files are returned. The source of the recipe and input
files must be readable there by the same path, and this package must be installed.
"""

from __future__ import annotations

import contextlib
import importlib
import tempfile
import uuid
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import asdict
from pathlib import Path
from typing import Any

from typing_extensions import override

from inspector.experiments.sweeps.engine import PoolRunner
from inspector.experiments.sweeps.grid import Point
from inspector.experiments.sweeps.results import POINTS, PointResult, Status, point_from
from inspector.experiments.sweeps.task import PointTask, SweepSettings
from inspector.files.digest import sha256_of
from inspector.jobs.output_folder import HIDDEN, FolderError, prepare_folder
from inspector.recipes.compile_job import CompileJob
from schema.objects.codec import from_json, to_json

EXTRA = "cluster"
_CONNECT_SECONDS = 10
_LOST = "the cluster lost the process that worked on it"


class ClusterError(Exception):
    """A cluster that cannot be used; one sentence."""


class ClusterRunner(PoolRunner[Mapping[str, Any]]):
    """Points on the workers of a cluster."""

    def __init__(self, address: str, folder: Path, settings: SweepSettings) -> None:
        """Connect.

        Args:
            address: of the scheduler, as tcp://host:8786
            folder: of the sweep, on this machine
            settings: the measurements of each point

        Raises: ClusterError without dask, or without a cluster at the address
        """
        try:
            self._dask = importlib.import_module("distributed")
        except ImportError as error:
            words = f"--cluster needs dask.distributed: pip install 'etscope[{EXTRA}]'"
            raise ClusterError(words) from error
        try:
            self._client: Any = self._dask.Client(
                address, timeout=_CONNECT_SECONDS, set_as_default=False
            )
        except (OSError, ValueError, TimeoutError) as error:
            raise ClusterError(f"no Dask cluster at {address}: {error}") from error
        self._folder, self._settings = folder, settings
        self._stop_name = f"etscope-{uuid.uuid4().hex}"
        super().__init__(self._client.get_executor(pure=False))

    @override
    def width(self) -> int:
        """Return two for each thread, so that none waits."""
        return 2 * max(sum(self._client.nthreads().values()), 1)

    @override
    def submit(self, point: Point, known: PointResult | None) -> Future[Mapping[str, Any]]:
        path = point.job.source.path
        request = {
            "number": point.number,
            "key": point.key,
            "changes": [list(pair) for pair in point.changes],
            "job": to_json(point.job),
            "sha256": sha256_of(path),
            "settings": asdict(self._settings),
            "stop": self._stop_name,
        }
        return self._executor.submit(point_on_worker, request)

    @override
    def stage(self, point: Point) -> str:
        return "on the cluster"

    def close(self) -> None:
        """Ask the workers to stop and disconnect from the cluster."""
        with contextlib.suppress(Exception):  # a cluster that is gone has stopped
            if self._futures:
                self._dask.Event(self._stop_name, client=self._client).set()
                self._executor.shutdown(wait=False)
        self._futures.clear()
        with contextlib.suppress(Exception):
            self._client.close()

    @override
    def taken(self, future: Future[Mapping[str, Any]], point: Point) -> tuple[PointResult, bool]:
        """Return the result of a point, its files in their place."""
        try:
            answer: Mapping[str, Any] = future.result()
        except Exception as error:  # noqa: BLE001 - whatever the cluster raises
            words = f"{_LOST}: {type(error).__name__}: {str(error).splitlines()[0]}"
            return _failed(point, words), True
        result = point_from(answer["result"], "the answer of the cluster")
        if result.status is Status.DONE:
            try:
                write_files(self._folder / POINTS / point.key, answer["files"])
            except (FolderError, OSError) as error:
                return _failed(point, str(error)), False
        return result, bool(answer["crashed"])


def _failed(point: Point, sentence: str) -> PointResult:
    changes = dict(point.changes)
    return PointResult(point.number, point.key, changes, Status.FAILED, sentence)


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files below a folder; they appear together.

    Raises: FolderError, OSError if the disk refuses
    """
    place = prepare_folder(folder, force=True)
    try:
        for name, data in files.items():
            path = place.working / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    except OSError:
        place.discard()
        raise
    place.commit()


def point_on_worker(request: Mapping[str, Any]) -> dict[str, Any]:
    """Do a point, on a worker of the cluster, and return its result and files.

    Args:
        request: as ``ClusterRunner.start`` makes it
    """
    job = from_json(request["job"], CompileJob, "job")
    changes = tuple((str(field), value) for field, value in request["changes"])
    point = Point(request["number"], changes, job, request["key"])
    problem = _source_problem(job.source.path, request["sha256"])
    if problem:
        return {"result": _failed(point, problem).content(), "files": {}, "crashed": False}
    stopped = _stopped(request["stop"])
    with tempfile.TemporaryDirectory(prefix=HIDDEN) as built:
        folder = Path(built) / point.key
        task = PointTask(point, folder, SweepSettings(**request["settings"]))
        result = task.run(stopped)
        files = {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in (folder.rglob("*") if result.status is Status.DONE else ())
            if path.is_file()
        }
    return {"result": result.content(), "files": files, "crashed": task.crashed}


def _source_problem(path: str, sha256: str) -> str:
    """Return why the source cannot be compiled on this machine, empty when it can."""
    import socket

    try:
        same = sha256_of(path) == sha256
    except OSError as error:
        return f"{path} cannot be read on {socket.gethostname()}: {error.strerror or error}"
    return "" if same else f"{path} is another file on {socket.gethostname()}"


def _stopped(name: str) -> Any:  # noqa: ANN401 - a function
    """Return a function that checks whether the sweep was ended."""
    dask = importlib.import_module("distributed")
    try:
        event = dask.Event(name)
    except ValueError:  # not inside of a task of a cluster
        return lambda: False
    return event.is_set
