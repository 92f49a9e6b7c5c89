"""Memory plans as Chrome traces: a thread a step, a bar a live tensor, bytes in place of time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from inspector.files.session import Session
from inspector.join.node_index import base_operator
from inspector.memory.plan import Arena, PlannedValue, analyse_memory
from inspector.profile.join_index import JoinIndex, join_index


@dataclass(frozen=True, slots=True)
class Allocation:
    """A tensor with a place.

    Attributes:
        name: node or value of the tensor
        operator: that computes it
        memory_id: 1-based index of the planned buffer
        offset: byte offset in the arena
        nbytes: length
        module: path of its module, empty when unknown
        source: traceback, the string ``None`` when unknown
    """

    name: str
    operator: str
    memory_id: int
    offset: int
    nbytes: int
    module: str = ""
    source: str = "None"


def planned_steps(session: Session, method: str) -> list[list[Allocation]]:
    """Return the live tensors at each instruction; those that share storage are one.

    A step is an instruction.

    Raises: ValueError for a session without a program; KeyError for an unknown method
    """
    program = session.program
    if program is None:
        raise ValueError("the session has no program, and so no memory plan")
    found = analyse_memory(program, method)
    joined = join_index(session, method) if session.record is not None else None
    live: list[list[Allocation]] = [[] for _ in range(max(found.instruction_count, 1))]
    for arena in found.arenas:
        for members in _storages(arena):
            first = min(value.first for value in members)
            if first < 0:
                continue  # planned, but no instruction touches it
            allocation = _allocation(arena, members, joined)
            for step in range(first, max(value.last for value in members) + 1):
                live[step].append(allocation)
    return live


def memory_trace(
    steps: Sequence[Sequence[Allocation]], *, offsets: bool = False, metadata: bool = True
) -> dict[str, Any]:
    """Return a trace that chrome://tracing and Perfetto show.

    pid is the arena, tid the step, the bar's start the offset (or the bytes before it) and its
    length the bytes of the tensor.

    Args:
        steps: live tensors at each
        offsets: place bars at their offset; else one behind the other
        metadata: operator, module, source and bytes of each
    """
    events = [
        _event(step, allocation.offset if offsets else start, allocation, metadata)
        for step, allocations in enumerate(steps)
        for start, allocation in _stacked(allocations)
    ]
    return {"traceEvents": events}


def _stacked(allocations: Iterable[Allocation]) -> Iterator[tuple[int, Allocation]]:
    start = 0
    for allocation in allocations:
        yield start, allocation
        start += allocation.nbytes


def _event(step: int, start: int, allocation: Allocation, with_metadata: bool) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    if with_metadata:
        facts = {
            "op_name": allocation.operator,
            "Memory ID": allocation.memory_id,
            "fqn": allocation.module,
            "source": allocation.source,
            "bytes": allocation.nbytes,
        }
    return {
        "name": allocation.name,
        "cat": "memory_allocation",
        "ph": "X",
        "ts": start,
        "dur": allocation.nbytes,
        "pid": int(allocation.memory_id),
        "tid": step,
        "args": facts,
    }


def _storages(arena: Arena) -> Iterable[list[PlannedValue]]:
    found: dict[int, list[PlannedValue]] = {}
    for value in sorted(arena.values, key=lambda value: (value.first, value.value)):
        found.setdefault(value.storage, []).append(value)
    return found.values()


def _allocation(arena: Arena, members: list[PlannedValue], joined: JoinIndex | None) -> Allocation:
    offset = min(value.offset for value in members)
    nbytes = max(value.offset + value.nbytes for value in members) - offset
    maker = next((value for value in members if value.made_by is not None), members[0])
    name, operator, module, source = maker.name, maker.operator or maker.role, "", "None"
    if joined is not None and joined.graph is not None and maker.made_by is not None:
        names = joined.instruction_nodes.get(maker.made_by, ())
        nodes = [joined.graph.nodes[joined.graph.by_name[name]].node for name in names]
        # Nodes that one operator of the model became share a handle: the kernel's own is meant.
        own = [node for node in nodes if base_operator(node.target) == base_operator(operator)]
        if len(own) == 1:
            node = own[0]
            name, module = node.name, node.module_path
            source = node.stack_trace or source
    return Allocation(name, operator, arena.mem_id, offset, nbytes, module, source)
