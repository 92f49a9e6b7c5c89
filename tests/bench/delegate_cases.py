"""Benchmarks of XNNPACK delegates: both engines beside the stock runtime, on the same program."""

from __future__ import annotations

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
_ROUNDS = 5
_SIDES = ("stock", "native", "traced", "torch")


def delegates(folder: Path) -> Iterable[Result]:
    """One inference of a delegated net on both engines, and with a trace."""
    for net, native_limit, torch_limit in _NETS:
        path = folder / f"{net}-xnnpack.pte"
        if not path.exists():
            _child("make", path, net)
        taken: dict[str, list[float]] = {side: [] for side in _SIDES}
        for _ in range(_ROUNDS):  # in turn, so that all see the same machine
            for side in _SIDES:
                taken[side].append(_child(side, path, net)["seconds"])
        # The best round: threads that wait for each other double their time on a busy machine.
        found = {side: min(times) for side, times in taken.items()}
        stock = found["stock"]
        detail = f"ours {1e3 * found['native']:.2f} ms, stock {1e3 * stock:.2f} ms"
        name = f"run delegated {net}, of stock's time"
        part = found["native"] / stock
        yield Result(f"{name}, real kernels", part, "x", native_limit, detail=detail)
        detail = f"ours {1e3 * found['torch']:.2f} ms"
        part = found["torch"] / stock
        yield Result(f"{name}, torch", part, "x", torch_limit, detail=detail)
        more = found["traced"] / found["native"]
        yield Result(f"run delegated {net}, of the time without a trace", more, "x", 1.1)


def _child(side: str, path: Path, net: str) -> Any:
    return ask_module("tests.bench.delegate_child", side, str(path), net)


DELEGATE_CASES = (delegates,)
