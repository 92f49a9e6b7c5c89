"""Benchmarks of payloads that torch interprets, beside the eager module they were compiled from."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch

from runtime import Runtime
from tests.bench.result import Result

_FOLDER = Path(__file__).resolve().parents[1] / "data" / "backends"
# payload, most of the eager time
_PAYLOADS = (
    ("vulkan_conv", 3.0),
    ("vulkan_attention", 3.0),
    ("native_conv", 3.0),
    ("native_attention", 3.0),
    ("mps_convs", 3.0),
    ("tosa_conv", 3.0),
    ("tosa_attention", 3.0),
    ("tosa_quantized_int8", None),
    ("tosa_attention_int8", None),
    ("vgf_conv", 3.0),
    ("vulkan_quantized_int8", None),
    ("coreml_conv", 3.0),
    ("coreml_attention", 3.0),
    ("coreml_attention_fp16", None),
    ("coreml_quantized_int8", None),
)
_RUNS = 300


def interpreted(folder: Path) -> Iterable[Result]:
    """One inference of a payload of a vendor's compiler, one thread, of torch's eager time."""
    del folder
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for name, limit in _PAYLOADS:
            module, inputs = _network(name.split("_")[1])
            with torch.no_grad():
                eager = _fastest(lambda module=module, inputs=inputs: module(*inputs))
            method = Runtime().load_program(_FOLDER / f"{name}.pte").load_method("forward")
            own = _fastest(lambda method=method, inputs=inputs: _once(method, inputs))
            detail = f"payload {1e6 * own:.0f} us, eager {1e6 * eager:.0f} us"
            yield Result(
                f"interpret {name}, of eager's time", own / eager, "x", limit, detail=detail
            )
    finally:
        torch.set_num_threads(threads)


def _network(name: str) -> Any:
    spec = importlib.util.spec_from_file_location("payload_nets", _FOLDER / "nets.py")
    assert spec is not None
    assert spec.loader is not None
    nets = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(nets)
    return nets.network(name)


def _once(method: Any, inputs: Any) -> None:
    method.set_inputs(inputs)
    method.run()


def _fastest(run: Callable[[], object]) -> float:
    best = float("inf")
    for number in range(_RUNS):
        start = time.thread_time()
        run()
        spent = time.thread_time() - start
        best = min(best, spent) if number > _RUNS // 10 else best
    return best


PAYLOAD_CASES = (interpreted,)
