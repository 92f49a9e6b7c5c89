"""One measurement of a delegated net: python -m tests.bench.delegate_child SIDE FILE NET."""

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

_SECONDS, _MOST = 2.0, 100


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("side", choices=("make", "stock", "native", "traced", "torch"))
    parser.add_argument("path", type=Path)
    parser.add_argument("net")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    if options.side == "make":
        _make(options.path, options.net)
        answer: dict[str, Any] = {}
    else:
        inputs = pytree.tree_leaves(NETS[options.net]()[1])
        run = _stock(options.path) if options.side == "stock" else _ours(options)
        answer = {"seconds": _median(lambda: run(inputs))}
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


def _stock(path: Path) -> Callable[[list[Any]], Any]:
    from executorch.extension.pybindings import portable_lib

    return portable_lib._load_for_executorch(str(path)).forward


def _ours(options: argparse.Namespace) -> Callable[[list[Any]], Any]:
    from runtime import EventTracer, Runtime
    from runtime.backends.xnnpack.engines import run_kernels_here

    run_kernels_here()
    engine = "torch" if options.side == "torch" else "native"
    tracer = EventTracer() if options.side == "traced" else None
    program = Runtime.get().load_program(options.path, tracer=tracer)
    return program.load_method("forward", engine=engine).execute


def _median(act: Callable[[], Any]) -> float:
    for _ in range(3):
        act()
    samples: list[float] = []
    end = time.perf_counter() + _SECONDS
    while len(samples) < 5 or (time.perf_counter() < end and len(samples) < _MOST):
        start = time.perf_counter()
        act()
        samples.append(time.perf_counter() - start)
    return statistics.median(samples)


if __name__ == "__main__":
    sys.exit(main())
