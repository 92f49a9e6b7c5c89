"""Runs one method on the package's runtime."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from inspector.toolchain.stock.package import StockError, part, part_or_none
from inspector.worker.exporter import told
from inspector.worker.libraries import load_libraries
from inspector.worker.resident import forget_peak, peak_bytes, resident_bytes

Say = Callable[..., None]
_KERNELS = ("kernels.quantized", "extension.llm.custom_ops.custom_ops")  # more than portable ones
_SAY_EVERY = 0.1  # seconds between two progress messages


class _Loaded:
    """A method of a loaded program, whichever interface this release has for it."""

    def __init__(self, asked: Mapping[str, Any], notify: Say) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the interface itself
            self._binding = part("extension.pybindings.portable_lib")
        for name in _KERNELS:
            part_or_none(name)
        load_libraries(asked["libraries"])
        self._method_name = str(asked["method"])
        self._traced, self._bytes = bool(asked["traced"]), int(asked["debug_bytes"])
        self._data = asked["data"] or None
        self.load_ms = self.init_ms = 0.0
        self._program: Any = None
        self._method: Any = None
        if hasattr(self._binding, "_load_program"):
            self._load_in_two(str(asked["program"]), notify)
        else:
            self._load_at_once(str(asked["program"]), notify)

    def _load_in_two(self, path: str, notify: Say) -> None:
        more = {"data_path": self._data} if self._data else {}
        with told(notify, "load"):
            start = time.perf_counter()
            self._program = self._binding._load_program(
                path, enable_etdump=self._traced, debug_buffer_size=self._bytes, **more
            )
            self.load_ms = _since(start)
        with told(notify, "prepare", self._method_name):
            start = time.perf_counter()
            self._method = self._program.load_method(self._method_name)
            self.init_ms = _since(start)

    def _load_at_once(self, path: str, notify: Say) -> None:
        with told(notify, "load"):
            start = time.perf_counter()
            self._program = self._binding._load_for_executorch(
                path, self._data, enable_etdump=self._traced, debug_buffer_size=self._bytes
            )
            self.load_ms = _since(start)

    def run(self, inputs: Sequence[Any]) -> tuple[float, Any]:
        """Run once; return milliseconds and how to get the outputs."""
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

    def use_threads(self, count: int) -> None:
        """Set the number of kernel threads."""
        reset = getattr(self._binding, "_unsafe_reset_threadpool", None)
        if reset is None:
            raise StockError("this executorch cannot set the number of threads")
        reset(count)


def ran(asked: Mapping[str, Any], notify: Say) -> dict[str, Any]:
    """Run a method; write outputs and trace into a folder and return the measurements.

    Raises: StockError; errors of the package. Its runtime may abort the process
    """
    folder = Path(asked["folder"])
    inputs: list[Any] = torch.load(asked["inputs"], weights_only=True)
    if asked["threads"]:
        torch.set_num_threads(int(asked["threads"]))
    with told(notify, "load executorch"):
        part("extension.pybindings.portable_lib")
    idle = resident_bytes()
    forget_peak()
    loaded = _Loaded(asked, notify)
    if asked["threads"]:
        loaded.use_threads(int(asked["threads"]))
    held = resident_bytes()
    _warm_up(loaded, inputs, asked, notify)
    times, outputs = _measured(loaded, inputs, int(asked["runs"]), notify)
    with told(notify, "write"):
        torch.save([_plain(value) for value in outputs()], folder / "outputs.pt")
        recorded = bool(asked["traced"]) and loaded.has_trace()
        failure = _written(loaded, folder, asked) if recorded else ""
    return {
        "load_ms": loaded.load_ms,
        "init_ms": loaded.init_ms,
        "run_ms": times,
        "threads": loaded.threads(),
        "recorded": recorded and not failure,
        "failure": failure,
        "idle_bytes": idle,
        "loaded_bytes": held,
        "peak_bytes": peak_bytes(),
    }


def _warm_up(loaded: _Loaded, inputs: list[Any], asked: Mapping[str, Any], notify: Say) -> None:
    """Run; its events are removed from the trace later, since recording cannot be paused."""
    count = int(asked["warmup"])
    if not count:
        return
    with told(notify, "warm up", str(asked["method"])):
        for number in range(count):
            loaded.run(inputs)
            notify("counted", done=number + 1, total=count)


def _measured(
    loaded: _Loaded, inputs: list[Any], count: int, notify: Say
) -> tuple[list[float], Callable[[], Any]]:
    times: list[float] = []
    outputs: Callable[[], Any] = list
    with told(notify, "run"):
        said = time.monotonic()
        for number in range(count):
            spent, outputs = loaded.run(inputs)
            times.append(spent)
            if time.monotonic() - said > _SAY_EVERY or number + 1 == count:
                said = time.monotonic()
                notify("counted", done=number + 1, total=count)
    return times, outputs


def _written(loaded: _Loaded, folder: Path, asked: Mapping[str, Any]) -> str:
    """Write the trace; return why it could not be, empty when it was. The outputs are there."""
    trace, buffer = folder / "run.etdp", folder / "run.debug"
    try:
        loaded.write_trace(trace, buffer if asked["debug_bytes"] else None)
    except (OSError, RuntimeError) as error:
        for path in (trace, buffer):
            path.unlink(missing_ok=True)
        words = str(error).replace(f"{folder}/", "").splitlines()
        return words[0] if words else type(error).__name__
    return ""


def _plain(value: Any) -> Any:  # noqa: ANN401
    return value.clone() if isinstance(value, torch.Tensor) else value


def _since(start: float) -> float:
    return (time.perf_counter() - start) * 1e3
