"""Measurements of a delegated net: python -m tests.bench.delegate_child make|beside FILE NET."""

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

from tests.bench.compile_nets import NETS

_SECONDS, _BLOCK, _SETTLING = 12.0, 12, 2


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("verb", choices=("make", "beside"))
    parser.add_argument("path", type=Path)
    parser.add_argument("net")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    if options.verb == "make":
        _make(options.path, options.net)
        answer: dict[str, Any] = {}
    else:
        inputs = pytree.tree_leaves(NETS[options.net]()[1])
        answer = {"seconds": _medians(_sides(options.path), inputs)}
    sys.stdout.write("\n" + json.dumps(answer) + "\n")
    return 0


def _make(path: Path, net: str) -> None:
    from compiler import to_edge_transform_and_lower
    from compiler.backends.xnnpack import XnnpackPartitioner

    module, inputs = NETS[net]()
    program = torch.export.export(module.eval(), inputs)
    manager = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    with path.open("wb") as stream:
        manager.to_executorch().write_to_file(stream)


def _sides(path: Path) -> dict[str, Callable[[list[Any]], Any]]:
    """Return what runs the net: the stock runtime, the real kernels twice, torch.

    All in one process: from one process to the next the same kernels differ by a third.
    """
    from executorch.extension.pybindings import portable_lib

    from runtime import EventTracer, Runtime

    def ours(engine: str, tracer: EventTracer | None = None) -> Callable[[list[Any]], Any]:
        program = Runtime.get().load_program(path, tracer=tracer)
        return program.load_method("forward", engine=engine).execute

    return {
        "stock": portable_lib._load_for_executorch(str(path)).forward,
        "native": ours("native"),
        "traced": ours("native", EventTracer()),
        "torch": ours("torch"),
    }


def _medians(sides: dict[str, Callable[[list[Any]], Any]], inputs: list[Any]) -> dict[str, float]:
    """Return the median of each side, run in blocks in turn; the first runs of a block settle."""
    taken: dict[str, list[float]] = {side: [] for side in sides}
    end = time.perf_counter() + _SECONDS
    while time.perf_counter() < end:
        for side, run in sides.items():
            for number in range(_BLOCK):
                start = time.perf_counter()
                run(inputs)
                if number >= _SETTLING:
                    taken[side].append(time.perf_counter() - start)
    return {side: statistics.median(times) for side, times in taken.items()}


if __name__ == "__main__":
    sys.exit(main())
