"""One side of a comparison in a process of its own: python -m tests.bench.compile_child."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import torch

from tests.bench.child import peak_mib
from tests.bench.compile_nets import NETS, chain


class _Nowhere:
    """Takes bytes and keeps none: both compilers may then write from where the bytes are.

    Attributes:
        written: bytes of the last program
    """

    written = 0

    def __init__(self) -> None:
        type(self).written = 0

    def write(self, data: Any) -> int:
        type(self).written += len(data)
        return len(data)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", help="a net, or the length of a chain")
    parser.add_argument("side", choices=("ours", "stock"))
    parser.add_argument("--warm", type=int, default=3)
    parser.add_argument("--xnnpack", action="store_true", help="delegate to XNNPACK")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    program, weights = _program(options.model)
    to_edge = _lowering(options.side, xnnpack=options.xnnpack)
    before = peak_mib()
    first = _once(to_edge, program)
    grown = peak_mib()
    warm = [_once(to_edge, program) for _ in range(options.warm)] or [first]
    answer = {
        "first": first,
        "warm": [statistics.median(column) for column in zip(*warm, strict=True)],
        "weights_mib": weights,
        "before_mib": before,
        "peak_mib": grown,
        "program_bytes": _Nowhere.written,
    }
    sys.stdout.write("\n" + json.dumps(answer) + "\n")
    return 0


def _lowering(side: str, *, xnnpack: bool) -> Any:
    """Return what lowers a program on one side, with a partitioner if asked."""
    if not xnnpack:
        if side == "ours":
            from compiler import to_edge
        else:
            from executorch.exir import to_edge
        return to_edge
    if side == "ours":
        from compiler import to_edge_transform_and_lower as lower
        from compiler.backends.xnnpack import XnnpackPartitioner as Partitioner
    else:
        from executorch.backends.xnnpack.partition.xnnpack_partitioner import (
            XnnpackPartitioner as Partitioner,
        )
        from executorch.exir import to_edge_transform_and_lower as lower

    def lowered(program: Any, **options: Any) -> Any:
        return lower(program, partitioner=[Partitioner()], **options)

    return lowered


def _program(model: str) -> tuple[Any, float]:
    torch.manual_seed(0)
    if model.isdecimal():
        return chain(int(model)), 0.0
    net, inputs = NETS[model]()
    size = sum(p.numel() * p.element_size() for p in net.state_dict().values())
    return torch.export.export(net.eval(), inputs), size / (1 << 20)


def _once(to_edge: Any, program: Any) -> tuple[float, float, float]:
    """Return seconds of lowering, of emission, and of writing program and record to disk."""
    start = time.perf_counter()
    edge = to_edge(program, generate_etrecord=True)
    lowered = time.perf_counter()
    made = edge.to_executorch()
    made.write_to_file(_Nowhere())
    emitted = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        with (Path(folder) / "model.pte").open("wb") as stream:
            made.write_to_file(stream)
        made.get_etrecord().save(str(Path(folder) / "model.etrecord"))
        saved = time.perf_counter()
    os.sync()  # a gigabyte of GPT-2 would be written to the disk during the next round
    return lowered - start, emitted - lowered, saved - emitted


if __name__ == "__main__":
    sys.exit(main())
