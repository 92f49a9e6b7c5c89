"""The compiled program behind a session, lowered again by stock ExecuTorch from its record.

Delegation numbers and memory traces of the stock tool need the program manager, an object that
no file holds. The record holds the exported program, and lowering it again gives the manager
back; whether it is the same program is checked against the .pte and reported. One thing is lost
on the way: graph inputs are called arg_0, arg_1, … here, and by the names of the model's own
parameters in the `stock.json` that recipes wrote while the manager was alive.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.devtools import parse_etrecord
from executorch.exir import to_edge, to_edge_transform_and_lower
from executorch.exir._serialize._program import deserialize_pte_binary
from executorch.util.activation_memory_profiler import generate_memory_trace

from tests.oracle.records import delegation_facts, node_list

Lowering = Callable[[Any], Any]


def rebuilt_facts(etrecord: Path, program: Path) -> dict[str, Any]:
    """Lower the recorded program the way the .pte was made and return the stock analyses."""
    wanted = _shape(program.read_bytes())
    for name, lowering in _lowerings(program).items():
        # Lowering changes the program that it is given, so each try parses the record anew.
        edge = lowering(parse_etrecord(str(etrecord)).exported_program)
        facts = edge_facts(edge)
        manager = edge.to_executorch()
        if _shape(manager.buffer) == wanted:
            return {"same_program": True, "lowering": name, **facts, **manager_facts(manager)}
    return {"same_program": False}


def edge_facts(edge: Any) -> dict[str, Any]:
    """Return delegation and graphs, by method, of a lowered program before to_executorch.

    This is the graph that the documentation hands to get_delegation_info; to_executorch changes
    it in place, so it must be asked before.
    """
    graphs = {name: edge.exported_program(name).graph_module for name in sorted(edge.methods)}
    return {
        "delegation": {name: delegation_facts(graph) for name, graph in graphs.items()},
        "edge_nodes": {name: node_list(graph) for name, graph in graphs.items()},
    }


def manager_facts(manager: Any) -> dict[str, Any]:
    """Return delegation, graphs and memory traces, by method, of an ExecutorchProgramManager."""
    methods = sorted(manager.methods)
    graphs = {name: manager.exported_program(name).graph_module for name in methods}
    return {
        "executorch_delegation": {name: delegation_facts(graphs[name]) for name in methods},
        "executorch_nodes": {name: node_list(graphs[name]) for name in methods},
        "memory_trace": {
            name: {
                "offsets": memory_trace(manager, name, True),
                "stacked": memory_trace(manager, name, False),
            }
            for name in methods
        },
    }


def memory_trace(manager: Any, method: str, enable_memory_offsets: bool) -> Any:
    """Return the stock memory trace of one method, or the sentence it refuses with."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        try:
            generate_memory_trace(manager, str(path), enable_memory_offsets, method)
        except ValueError as error:
            return {"error": str(error)}
        return json.loads(path.read_text(encoding="ascii"))["traceEvents"]


def _lowerings(program: Path) -> dict[str, Lowering]:
    plans = deserialize_pte_binary(program.read_bytes()).program.execution_plan
    if any(delegate.id == "XnnpackBackend" for plan in plans for delegate in plan.delegates):
        return {
            "to_edge_transform_and_lower": lambda exported: to_edge_transform_and_lower(
                exported, partitioner=[XnnpackPartitioner()]
            )
        }
    return {"to_edge": to_edge, "to_edge_transform_and_lower": to_edge_transform_and_lower}


def _shape(buffer: bytes) -> Any:
    """Return what two compiles of one program share: requires_grad is lost in a record."""
    plans = deserialize_pte_binary(buffer).program.execution_plan
    for plan in plans:
        for value in plan.values:
            if hasattr(value.val, "requires_grad"):
                value.val.requires_grad = False
        for delegate in plan.delegates:
            delegate.processed = None  # payloads hold pointers to data segments
    return plans
