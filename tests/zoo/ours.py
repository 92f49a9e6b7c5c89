"""One architecture, compiled and run here in four ways: python -m tests.zoo.ours NAME FOLDER.

The folder then has the program of each way, and `ours.json`.
"""

from __future__ import annotations

import json
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

from compiler import to_edge_transform_and_lower
from compiler.backends.xnnpack import XnnpackPartitioner
from compiler.backends.xnnpack.quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)
from inspector import get_delegation_info
from inspector.memory.plan import analyse_memory
from runtime import Runtime
from schema.program import decode
from tests.zoo.models import make

ENGINES = {"portable": ("torch",), "float": ("torch", "native")}
QUANTIZED_ENGINES = ("torch", "native")
WAYS = ("portable", "float", "dynamic", "static")


@dataclass(frozen=True)
class Case:
    """What is compiled in one way: a module, its inputs, and what it gives in eager mode."""

    way: str
    module: nn.Module
    inputs: tuple[Tensor, ...]
    folder: Path

    def eager(self) -> list[Tensor]:
        found = self.module(*self.inputs)
        return [found] if isinstance(found, Tensor) else list(found)


def main() -> int:
    name, folder = sys.argv[1], Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    model, inputs = make(name)
    torch.save(inputs, folder / "inputs.pt")
    found: dict[str, Any] = {}
    for way in WAYS:
        try:
            case = Case(way, prepared(way, model, inputs), inputs, folder)
            found[way] = measured(case)
        except Exception as error:  # noqa: BLE001  any error is what is found
            traceback.print_exc()
            found[way] = {"error": described(error)}
    (folder / "ours.json").write_text(json.dumps(found, indent=1))
    return 0


def described(error: Exception) -> str:
    """Return the class of an error and its first line with words."""
    lines = [line.strip() for line in str(error).splitlines()]
    return f"{type(error).__name__}: {next(filter(None, lines), '')}"[:300]


def prepared(way: str, model: nn.Module, inputs: tuple[Tensor, ...]) -> nn.Module:
    """Return the module of a way: the network, or its copy quantized by export."""
    if way in ("portable", "float"):
        return model
    config = get_symmetric_quantization_config(is_per_channel=True, is_dynamic=way == "dynamic")
    module = torch.export.export(model, inputs, strict=False).module()
    observed = prepare_pt2e(module, XNNPACKQuantizer().set_global(config))
    observed(*inputs)
    return convert_pt2e(observed)


def measured(case: Case) -> dict[str, Any]:
    """Compile, run on each engine and analyse one way."""
    exported = torch.export.export(case.module, case.inputs, strict=False)
    partitioner = [] if case.way == "portable" else [XnnpackPartitioner()]
    edge = to_edge_transform_and_lower(exported, partitioner=partitioner)
    info = get_delegation_info(edge.exported_program().graph_module)
    program = edge.to_executorch()
    target = case.folder / case.way
    target.mkdir(exist_ok=True)
    (target / "model.pte").write_bytes(program.buffer)
    expected = case.eager()
    torch.save(expected, case.folder / f"{case.way}.eager.pt")
    found: dict[str, Any] = {
        "bytes": len(program.buffer),
        "delegation": delegation(info),
        "memory": memory(program.buffer),
        "error_of": {},
    }
    for engine in ENGINES.get(case.way, QUANTIZED_ENGINES):
        method = Runtime.get().load_program(program.buffer).load_method("forward", engine=engine)
        outputs = method.execute(list(case.inputs))
        torch.save(outputs, case.folder / f"{case.way}.{engine}.pt")
        found["error_of"][engine] = distance(outputs, expected)
    return found


def delegation(info: Any) -> list[int]:
    """Return partitions, delegated nodes and the others."""
    counts = ("num_delegated_subgraphs", "num_delegated_nodes", "num_non_delegated_nodes")
    return [int(getattr(info, count)) for count in counts]


def distance(outputs: list[Any], expected: list[Tensor]) -> float:
    """Return the largest difference as a part of the largest expected value, over all outputs."""
    worst = 0.0
    for one, other in zip(outputs, expected, strict=True):
        span = float(other.double().abs().max())
        worst = max(worst, float((one.double() - other.double()).abs().max()) / (span or 1.0))
    return worst


def memory(data: bytes) -> dict[str, Any]:
    """Return least, peak and planned bytes; in no arena can a plan be smaller than the other two.

    The least bytes round each storage up to 16, a plan need not round the last.
    """
    plan = analyse_memory(decode(data), "forward")
    rows = [(one.lower_bound_bytes, one.peak_bytes, one.planned_bytes) for one in plan.arenas]
    broken = [row for row in rows if row[1] > row[2] or row[0] > -(-row[2] // 16) * 16]
    least, peak, planned = (sum(column) for column in zip(*rows, strict=True)) if rows else (0,) * 3
    return {"least": least, "peak": peak, "planned": planned, "broken": broken}


if __name__ == "__main__":
    sys.exit(main())
