"""Benchmarks of the compiler: known nets beside the stock compiler, chains, peak memory."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.bench.child import ask_module
from tests.bench.result import Result

_MODELS = ("MobileNetV2", "MobileNetV3-small", "ResNet18", "GPT-2")
_CHAINS = (1_000, 10_000, 50_000)


def lowering(_folder: Path) -> Iterable[Result]:
    """Lowering and emission, verified and with a record, in fresh and in warm processes."""
    for model in _MODELS:
        stock, ours = _measure(model, "stock"), _measure(model, "ours")
        for when, compiled, saved in (("first", 10.0, 3.0), ("warm", 25.0, 8.0)):
            theirs, mine = stock[when], ours[when]
            detail = f"edge {mine[0]:.3f}, emit {mine[1]:.3f}, save {mine[2]:.3f} s; stock "
            detail += ", ".join(f"{seconds:.2f}" for seconds in theirs)
            ratio = sum(theirs[:2]) / sum(mine[:2])
            yield Result(f"compile {model}, {when}", ratio, "x", compiled, True, detail)
            ratio = sum(theirs) / sum(mine)
            yield Result(f"compile and save {model}, {when}", ratio, "x", saved, True, detail)
        limit = 2.2 * ours["weights_mib"] + 500
        detail = f"weights {ours['weights_mib']:.0f} MiB, {ours['before_mib']:.0f} MiB before; "
        detail += f"stock {stock['peak_mib']:.0f} MiB"
        yield Result(f"peak memory of {model}", ours["peak_mib"], "MiB", limit, detail=detail)


def delegating(_folder: Path) -> Iterable[Result]:
    """Lowering with XNNPACK and emission, fresh and warm, and the size of the program."""
    for model in _MODELS:
        stock, ours = (_measure(model, side, xnnpack=True) for side in ("stock", "ours"))
        for when, limit in (("first", 10.0), ("warm", 20.0)):
            theirs, mine = stock[when], ours[when]
            detail = f"lower {mine[0]:.3f}, emit {mine[1]:.3f} s; stock "
            detail += ", ".join(f"{seconds:.2f}" for seconds in theirs[:2])
            ratio = sum(theirs[:2]) / sum(mine[:2])
            yield Result(f"XNNPACK lowering of {model}, {when}", ratio, "x", limit, True, detail)
        sizes = [one["program_bytes"] for one in (ours, stock)]
        detail = f"{sizes[0]:,} bytes, stock {sizes[1]:,}"
        name = f"size of {model} with XNNPACK, against the stock program"
        yield Result(name, sizes[0] / sizes[1], "x", 1.0, detail=detail)


def growth(_folder: Path) -> Iterable[Result]:
    """Time for each node of a chain, against that of the shortest chain."""
    seconds = {length: _measure(str(length), "ours", warm=1)["warm"] for length in _CHAINS}
    each = {length: sum(parts[:2]) / length for length, parts in seconds.items()}
    for length in _CHAINS[1:]:
        detail = f"{1e6 * each[length]:.0f} us a node, {sum(seconds[length][:2]):.2f} s"
        name = f"chain of {length:,} nodes, time a node against {_CHAINS[0]:,}"
        yield Result(name, each[length] / each[_CHAINS[0]], "x", 1.2, detail=detail)


def _measure(model: str, side: str, warm: int = 3, *, xnnpack: bool = False) -> Any:
    how = ["--warm", str(warm), *(["--xnnpack"] if xnnpack else [])]
    return ask_module("tests.bench.compile_child", model, side, *how)


COMPILE_CASES = (lowering, delegating, growth)
