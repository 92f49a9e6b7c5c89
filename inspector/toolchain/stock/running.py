"""Runs one method on the package's runtime."""

from __future__ import annotations

import io
import time
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from inspector.toolchain.stock.package import StockError, part, part_or_none
from inspector.worker.exporter import timed_stage
from inspector.worker.libraries import load_libraries
from inspector.worker.passes import WARM_MS, Kinds, Passes, never, run_passes
from inspector.worker.resident import MemoryPhases, resident_bytes

Say = Callable[..., None]
_KERNELS = ("kernels.quantized", "extension.llm.custom_ops.custom_ops")  # more than portable ones


class _Loaded:
    """A method of a loaded program, whichever interface this release has for it."""

    def __init__(
        self,
        asked: Mapping[str, Any],
        notify: Say,
        *,
        traced: bool = False,
        debug_bytes: int = 0,
        phases: MemoryPhases | None = None,
    ) -> None:
        """Load a program.

        Args:
            asked: request
            notify: takes messages
            traced: whether its runs are recorded, which cannot be switched off
            debug_bytes: size of the buffer for the values that are logged, 0 to log none
            phases: take the memory of loading, None for not
        """
        self._binding = _binding(asked["libraries"])
        self._phases = phases
        self._method_name = str(asked["method"])
        self._traced, self._bytes = traced, debug_bytes
        self._data = asked["data"] or None
        self.load_ms = self.init_ms = 0.0
        if asked["threads"] and self.threads() != int(asked["threads"]):
            self._use_threads(int(asked["threads"]))
        self._program: Any = None
        self._method: Any = None
        if hasattr(self._binding, "_load_program"):
            self._load_in_two(str(asked["program"]), notify)
        else:
            self._load_at_once(str(asked["program"]), notify)

    def _load_in_two(self, path: str, notify: Say) -> None:
        more = {"data_path": self._data} if self._data else {}
        with timed_stage(notify, "load"), _phase(self._phases, "load"):
            start = time.perf_counter()
            self._program = self._binding._load_program(
                path, enable_etdump=self._traced, debug_buffer_size=self._bytes, **more
            )
            self.load_ms = _since(start)
        with timed_stage(notify, "prepare", self._method_name), _phase(self._phases, "prepare"):
            start = time.perf_counter()
            self._method = self._program.load_method(self._method_name)
            self.init_ms = _since(start)

    def _load_at_once(self, path: str, notify: Say) -> None:
        with timed_stage(notify, "load"), _phase(self._phases, "load"):
            start = time.perf_counter()
            self._program = self._binding._load_for_executorch(
                path, self._data, enable_etdump=self._traced, debug_buffer_size=self._bytes
            )
            self.load_ms = _since(start)

    def run(self, inputs: Sequence[Any]) -> tuple[float, Any]:
        """Run once; return milliseconds and a function that returns the outputs."""
        if self._method is None:
            start = time.perf_counter()
            found = self._program.run_method(self._method_name, tuple(inputs))
            return _since(start), lambda: found
        self._method.set_inputs(inputs)
        start = time.perf_counter()
        self._method.execute()
        return _since(start), self._method.get_outputs

    def has_trace(self) -> bool:
        """Return whether the runtime was built so that it can record."""
        return bool(self._program.has_etdump())

    def write_trace(self, trace: Path, buffer: Path | None) -> None:
        """Write events recorded since the last write."""
        self._program.write_etdump_result_to_file(str(trace), *([str(buffer)] if buffer else []))

    def threads(self) -> int:
        """Return how many threads the kernels use."""
        count = getattr(self._binding, "_threadpool_get_thread_count", torch.get_num_threads)
        return max(1, int(count()))

    def _use_threads(self, count: int) -> None:
        """Set the number of kernel threads, before anything is loaded.

        Delegates keep the thread pool that was there when they were loaded. A reset destroys it,
        and their next run then aborts or divides by a number that is gone.
        """
        reset = getattr(self._binding, "_unsafe_reset_threadpool", None)
        if reset is None:
            raise StockError("this executorch cannot set the number of threads")
        reset(count)


def _binding(libraries: Sequence[str]) -> Any:  # noqa: ANN401 - of the package
    """Return the interface of the runtime, with all kernels loaded."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the interface itself
        binding = part("extension.pybindings.portable_lib")
    for name in _KERNELS:
        part_or_none(name)
    load_libraries(libraries)
    return binding


def registered_backends() -> list[str]:
    """Return the backends that the package's runtime was built with; empty if it cannot tell."""
    with suppress(Exception):
        return list(_binding(())._get_registered_backend_names())
    return []


@contextmanager
def _phase(phases: MemoryPhases | None, name: str) -> Generator[None, None, None]:
    """Measure the peak of memory of a phase; without phases nothing is measured."""
    if phases is None:
        yield
        return
    phases.begin()
    yield
    phases.end(name)


def ran(asked: Mapping[str, Any], notify: Say) -> dict[str, Any]:
    """Run a method; write outputs and traces into a folder and return the measurements.

    Raises: StockError; errors of the package. Its runtime may abort the process
    """
    folder = Path(asked["folder"])
    inputs: list[Any] = torch.load(asked["inputs"], weights_only=True)
    if asked["threads"]:
        torch.set_num_threads(int(asked["threads"]))
    with timed_stage(notify, "load executorch"):
        _binding(asked["libraries"])
    idle, phases = resident_bytes(), MemoryPhases()
    loaded = _Loaded(asked, notify, phases=phases)
    held = resident_bytes()
    found = _measured(loaded, inputs, asked, notify, phases)
    memory = phases.report(str(asked["program"]), idle, int(asked.get("planned", 0)))
    failure = found.failure
    recorded = found.recorded
    if asked["debug_bytes"] and not failure and not found.passes.stopped:
        values = _Loaded(asked, notify, traced=True, debug_bytes=int(asked["debug_bytes"]))
        with timed_stage(notify, "log values", str(asked["method"])):
            values.run(inputs)
        if values.has_trace():
            failure = _written(values, folder / "values.etdp", folder / "values.debug")
            recorded = recorded or not failure
    elif asked["debug_bytes"] and failure:
        failure += "; values.etdp and values.debug are not written either"
    return {
        "load_ms": loaded.load_ms,
        "init_ms": loaded.init_ms,
        "first_run_ms": found.first_ms,
        "warmup_ms": found.passes.warmup,
        "steady": found.passes.steady,
        "run_ms": found.passes.bare,
        "traced_run_ms": found.passes.timed,
        "traced_warmup": found.passes.rehearsed,
        "stopped": found.passes.stopped,
        "wanted": found.passes.requested,
        "threads": loaded.threads(),
        "recorded": recorded,
        "failure": failure,
        "idle_bytes": idle,
        "loaded_bytes": held,
        "peak_bytes": phases.largest(),
        "memory": memory,
    }


@dataclass(frozen=True)
class _Runs:
    """Times of the runs, and whether their trace was written."""

    first_ms: float = 0.0
    passes: Passes = Passes()  # noqa: RUF009 - frozen
    recorded: bool = False
    failure: str = ""


def _measured(
    loaded: _Loaded,
    inputs: list[Any],
    asked: Mapping[str, Any],
    notify: Say,
    phases: MemoryPhases,
) -> _Runs:
    """Run for the first time, keep the outputs, warm up, and run with and without a trace.

    The memory of a steady run is that of one before the program is loaded again with a trace. Of
    programs that are not warmed up it is known without a trace only.
    """
    folder, count = Path(asked["folder"]), asked["runs"]
    if count == 0:  # it is only loaded
        return _Runs()
    with timed_stage(notify, "run", str(asked["method"])), _phase(phases, "first_run"):
        first_ms, outputs = loaded.run(inputs)
    _save([_plain(value) for value in outputs()], folder / "outputs.pt")
    if not asked["timed"]:
        return _Runs(first_ms)
    waiting = [phases]
    if asked["warmup"] != 0 and first_ms < WARM_MS:
        with _phase(waiting.pop(), "steady_run"):
            loaded.run(inputs)
    traced = _Loaded(asked, notify, traced=True) if asked["traced"] else None
    if traced is not None and not traced.has_trace():
        traced = None

    def bare() -> float:
        with _phase(waiting.pop() if waiting and traced is None else None, "steady_run"):
            return loaded.run(inputs)[0]

    def timed() -> float:
        assert traced is not None
        return traced.run(inputs)[0]

    stopped = Path(asked["stop"]).exists if "stop" in asked else never
    kinds = Kinds(bare, bare)
    if traced is not None:
        kinds = Kinds(bare, bare, timed, timed)
    passes = run_passes(kinds, (count, asked["warmup"]), first_ms, notify, stopped)
    if traced is None:
        return _Runs(first_ms, passes)
    failure = _written(traced, folder / "run.etdp", None)
    return _Runs(first_ms, passes, not failure, failure)


def _save(values: list[Any], path: Path) -> None:
    """Write values; the error of torch itself names no full disk.

    Raises: OSError that names the file
    """
    stream = io.BytesIO()
    torch.save(values, stream)
    try:
        path.write_bytes(stream.getvalue())
    except OSError as error:
        raise OSError(error.errno, error.strerror, path.name) from error


def _written(loaded: _Loaded, trace: Path, buffer: Path | None) -> str:
    """Write a trace; return why it could not be, empty when it was. The outputs are there."""
    try:
        loaded.write_trace(trace, buffer)
    except (OSError, RuntimeError) as error:
        for path in filter(None, (trace, buffer)):
            path.unlink(missing_ok=True)
        words = str(error).replace(f"{trace.parent}/", "").splitlines()
        lost = " and ".join(path.name for path in (trace, buffer) if path is not None)
        are = "is" if buffer is None else "are"
        return f"{lost} {are} missing: {words[0] if words else type(error).__name__}"
    return ""


def _plain(value: Any) -> Any:  # noqa: ANN401
    return value.clone() if isinstance(value, torch.Tensor) else value


def _since(start: float) -> float:
    return (time.perf_counter() - start) * 1e3
