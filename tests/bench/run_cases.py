"""Benchmarks of the runtime: known nets beside the stock runtime and eager, dispatch, loading."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.bench.child import ask_module
from tests.bench.result import Result

# net, times the stock runtime's speed at least, eager's time at most
_NETS = (
    ("MobileNetV2", 40.0, 1.1),
    ("ResNet18", 40.0, 1.1),
    ("MobileNetV3-small", 40.0, 1.2),
    ("GPT-2", 100.0, 1.1),
)


def inference(folder: Path) -> Iterable[Result]:
    """One inference of portable programs against the stock runtime and eager, and peak memory."""
    for net, stock_limit, eager_limit in _NETS:
        path = _program(folder, net)
        ours, stock = _child("ours", path, net), _child("stock", path, net)
        mine, eager, theirs = ours["ours"], ours["eager"], stock["stock"]
        detail = f"ours {1e3 * mine:.2f} ms, stock {1e3 * theirs:.0f} ms, gap {ours['gap']:.1e}"
        yield Result(f"run {net}, times stock", theirs / mine, "x", stock_limit, True, detail)
        detail = f"eager {1e3 * eager:.2f} ms on {ours['threads']} threads"
        yield Result(f"run {net}, of eager's time", mine / eager, "x", eager_limit, detail=detail)
        detail = f"stock {stock['grown_mib']:.0f} MiB, file {path.stat().st_size / 2**20:.0f} MiB"
        yield Result(f"run {net}, memory above idle", ours["grown_mib"], "MiB", detail=detail)


def dispatch(_folder: Path) -> Iterable[Result]:
    """What each of ten thousand sums of one element costs, without and with a trace."""
    found = _child("dispatch", Path(), "")
    name = "instruction of 10,000 sums of 1 element"
    detail = f"loaded in {found['load']:.2f} s"
    yield Result(name, found["plain"], "us", 2.0, detail=detail)
    detail = f"{found['traced']:.2f} us with a trace"
    more = found["traced"] - found["plain"]
    yield Result("profiling, an instruction", more, "us", 3.0, detail=detail)


def loading(folder: Path) -> Iterable[Result]:
    """A program of 500 MB loaded, and then run."""
    path = _program(folder, "GPT-2")
    size = path.stat().st_size / (1 << 20)
    found = _child("load", path, "GPT-2")
    detail = f"{size:.0f} MiB"
    yield Result("load a program of 500 MB", found["load"], "s", 0.3, detail=detail)
    detail = f"{found['loaded_mib']:.0f} MiB above an idle process"
    grown = found["loaded_mib"] / size
    yield Result(
        "memory of a loaded program of 500 MB, of its size", grown, "x", 1.2, detail=detail
    )
    detail = f"{found['run_mib']:.0f} MiB above an idle process"
    yield Result("memory after two runs, of its size", found["run_mib"] / size, "x", detail=detail)


def _program(folder: Path, net: str) -> Path:
    path = folder / f"{net}.pte"
    if not path.exists():
        _child("make", path, net)
    return path


def _child(side: str, path: Path, net: str) -> Any:
    return ask_module("tests.bench.run_child", side, str(path), net)


RUN_CASES = (inference, dispatch, loading)
