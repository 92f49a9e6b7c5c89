"""Benchmarks of XNNPACK delegates: both engines beside the stock runtime, on the same program."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.bench.child import ask_module
from tests.bench.result import Result

# net, most of the stock latency on the real kernels, and on torch's; None where nothing is asked
_NETS = (
    ("MobileNetV2", 1.05, 2.0),
    ("ResNet18", 1.05, 2.0),
    ("MobileNetV3-small", None, None),
)
_ROUNDS = 3


def delegates(folder: Path) -> Iterable[Result]:
    """One inference of a delegated net on both engines, and with a trace."""
    for net, native_limit, torch_limit in _NETS:
        path = folder / f"{net}-xnnpack.pte"
        if not path.exists():
            _child("make", path, net)
        taken = [_child("beside", path, net)["seconds"] for _ in range(_ROUNDS)]
        name = f"run delegated {net}, of stock's time"
        yield _part(f"{name}, real kernels", taken, ("native", "stock"), native_limit)
        yield _part(f"{name}, torch", taken, ("torch", "stock"), torch_limit)
        name = f"run delegated {net}, of the time without a trace"
        yield _part(name, taken, ("traced", "native"), 1.1)


def _part(
    name: str, taken: list[dict[str, float]], sides: tuple[str, str], limit: float | None
) -> Result:
    """Return how much one side takes of the time of another: the median of the processes."""
    parts = [round_[sides[0]] / round_[sides[1]] for round_ in taken]
    one, other = (1e3 * statistics.median(round_[side] for round_ in taken) for side in sides)
    detail = f"{sides[0]} {one:.2f} ms, {sides[1]} {other:.2f} ms"
    return Result(name, statistics.median(parts), "x", limit, detail=detail)


def _child(verb: str, path: Path, net: str) -> Any:
    return ask_module("tests.bench.delegate_child", verb, str(path), net)


DELEGATE_CASES = (delegates,)
