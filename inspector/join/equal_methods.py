"""Methods of one program with equal instructions, which a run cannot distinguish.

Prefill and decode of one module are an example: which of them ran is unknown, but every event
belongs to
the same operator and instruction in both.
"""

from __future__ import annotations

from collections.abc import Callable

from inspector.files.payloads import delegate_payload
from inspector.join import record_maps
from inspector.join.kernels import kernels_against
from inspector.join.methods import is_execution, match_methods
from inspector.trace.blocks import Block
from schema.etrecord import RecordFile
from schema.program import ProgramFile, instructions
from schema.program import model as m


def alike_method(program: ProgramFile, record: RecordFile | None, block: Block) -> str | None:
    """Return one of the methods a block may have run if all of them are equal, else None."""
    if not is_execution(block):
        return None
    fitting = [
        match.method
        for match in match_methods(program, block)
        if not match.mismatch and not kernels_against(program, program.plan(match.method), block)[1]
    ]
    if not fitting or any(not _same(program, record, fitting[0], name) for name in fitting[1:]):
        return None
    return fitting[0]


def _same(program: ProgramFile, record: RecordFile | None, one: str, other: str) -> bool:
    first, second = program.plan(one), program.plan(other)
    if first.operators != second.operators or _steps(first) != _steps(second):
        return False
    if _inside(program, first) != _inside(program, second):
        return False
    if record is None:
        return True
    maps: tuple[Callable[[RecordFile, str], object], ...] = (
        record_maps.handles,
        record_maps.delegates,
        _nodes,
    )
    return all(read(record, one) == read(record, other) for read in maps)


def _steps(plan: m.ExecutionPlan) -> list[m.InstructionArgs]:
    return [instruction.instr_args for _, _, instruction in instructions(plan)]


def _inside(program: ProgramFile, plan: m.ExecutionPlan) -> list[tuple[str, list[str]]]:
    found: list[tuple[str, list[str]]] = []
    for index, delegate in enumerate(plan.delegates):
        graph = delegate_payload(program, plan, index).graph
        found.append((delegate.id, [node.target for node in graph.calls()] if graph else []))
    return found


def _nodes(record: RecordFile, method: str) -> list[tuple[str, str, int | None]]:
    graph = record_maps.edge_graph(record, method)
    nodes = graph.nodes if graph is not None else ()
    return [(node.name, node.target, node.debug_handle) for node in nodes]
