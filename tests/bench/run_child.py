"""One measurement of the runtime in a process of its own: python -m tests.bench.run_child."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

from runtime import EventTracer, Runtime
from schema.program import model as m
from tests.bench.child import peak_mib
from tests.bench.compile_nets import NETS
from tests.runtime.one_op import Builder, encoded

_SUMS, _SECONDS, _MOST = 10_000, 3.0, 50


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("side", choices=sorted(_SIDES))
    parser.add_argument("path", type=Path)
    parser.add_argument("net")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    sys.stdout.write("\n" + json.dumps(_SIDES[options.side](options.path, options.net)) + "\n")
    return 0


def _make(path: Path, net: str) -> Any:
    from compiler import to_edge

    module, inputs = NETS[net]()
    program = to_edge(torch.export.export(module.eval(), inputs)).to_executorch()
    with path.open("wb") as stream:
        program.write_to_file(stream)
    return {}


def _ours(path: Path, net: str) -> Any:
    before = peak_mib()
    torch.manual_seed(0)
    module, inputs = NETS[net]()
    method = Runtime.get().load_program(path).load_method("forward")
    flat = pytree.tree_leaves(inputs)
    method.execute(flat)
    (found,) = method.execute(flat)
    grown = peak_mib() - before - _weights_mib(module)
    with torch.no_grad():
        eager = module.eval()
        wanted = pytree.tree_leaves(eager(*inputs))[0]
        ours, theirs = _side_by_side(lambda: method.execute(flat), lambda: eager(*inputs))
    gap = float((found - wanted).abs().max() / wanted.abs().max())
    return {
        "ours": ours,
        "eager": theirs,
        "gap": gap,
        "threads": torch.get_num_threads(),
        "grown_mib": grown,
    }


def _weights_mib(module: torch.nn.Module) -> float:
    return sum(p.numel() * p.element_size() for p in module.parameters()) / (1 << 20)


def _side_by_side(one: Callable[[], Any], other: Callable[[], Any]) -> tuple[float, float]:
    """Return the median seconds of two things, run in turn so that both see the same machine."""
    samples: list[tuple[float, float]] = []
    end = time.perf_counter() + _SECONDS
    while len(samples) < 5 or (time.perf_counter() < end and len(samples) < _MOST):
        samples.append((_seconds(one), _seconds(other)))
    first, second = zip(*samples, strict=True)
    return statistics.median(first), statistics.median(second)


def _seconds(act: Callable[[], Any]) -> float:
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


def _stock(path: Path, net: str) -> Any:
    from executorch.extension.pybindings import portable_lib

    inputs = pytree.tree_leaves(NETS[net]()[1])
    before = peak_mib()
    module = portable_lib._load_for_executorch(str(path))
    taken = [_seconds(lambda: module.forward(inputs)) for _ in range(2)]
    return {"stock": min(taken), "grown_mib": peak_mib() - before}


def _dispatch(_path: Path, _net: str) -> Any:
    data = encoded(sums(_SUMS))
    start = time.perf_counter()
    method = Runtime.get().load_program(data).load_method("forward")
    load = time.perf_counter() - start
    inputs = [torch.zeros(1), torch.ones(1)]
    method.execute(inputs)
    (found,) = method.execute(inputs)
    assert found.item() == _SUMS
    plain = min(_seconds(lambda: method.execute(inputs)) for _ in range(10))
    method.tracer = EventTracer()
    traced = min(_seconds(lambda: method.execute(inputs)) for _ in range(10))
    return {"load": load, "plain": 1e6 * plain / _SUMS, "traced": 1e6 * traced / _SUMS}


def sums(count: int) -> m.ExecutionPlan:
    """Return a plan of sums of one element one after the other, in two slots."""
    build = Builder()
    last, one, alpha = build.input(torch.ones(1)), build.input(torch.ones(1)), build.value(1)
    slots = [build.values[build.tensor(torch.float32, (1,))].val for _ in range(2)]
    calls: list[m.KernelCall] = []
    for number in range(count):
        slot = slots[number % 2]
        assert slot is not None
        out = build.add(slot)
        calls.append(m.KernelCall(0, (last, one, alpha, out, out)))
        last = out
    return build.plan(calls, [last], ["aten::add.out"])


def _load(path: Path, net: str) -> Any:
    tokens = torch.randint(0, 50257, (1, 64))
    del net
    before = peak_mib()
    start = time.perf_counter()
    method = Runtime.get().load_program(path).load_method("forward")
    taken, loaded = time.perf_counter() - start, peak_mib() - before
    for _ in range(2):
        method.execute([tokens])
    return {"load": taken, "loaded_mib": loaded, "run_mib": peak_mib() - before}


_SIDES = {"make": _make, "ours": _ours, "stock": _stock, "dispatch": _dispatch, "load": _load}

if __name__ == "__main__":
    sys.exit(main())
