"""Which method of a record a block of events is a run of, by the record alone."""

from __future__ import annotations

from collections.abc import Mapping

from inspector.join import record_maps
from inspector.join.methods import block_method, is_execution
from inspector.join.node_index import base_operator, nodes_by_handle
from inspector.trace.blocks import Block
from inspector.trace.event_kinds import DELEGATE_CALL, KERNEL_PREFIX
from schema.etrecord import RecordFile
from schema.graph import GraphNode
from schema.program import ProgramFile


def method_of(block: Block, record: RecordFile | None, program: ProgramFile | None) -> str | None:
    """Return the method, None if it is ambiguous.

    A loading block belongs to no method. The program decides if there is one; else the
    record's only method, else the one method whose operators and delegate calls fit the events.
    """
    if not is_execution(block):
        return None
    if program is not None:
        return block_method(program, block)
    if record is None:
        return None
    only = record_maps.only_method(record)
    return only if only is not None else _by_events(block, record)


def _by_events(block: Block, record: RecordFile) -> str | None:
    events = [(block.instruction(event), block.event_name(event)) for event in _outer(block)]
    scores = {method: _score(events, record, method) for method in record.debug_handle_map or ()}
    best = max((score for score in scores.values() if score is not None), default=None)
    fitting = [method for method, score in scores.items() if score is not None and score == best]
    return fitting[0] if len(fitting) == 1 else None


def _outer(block: Block) -> list[int]:
    return [
        event
        for event in range(len(block))
        if block.layout.chain[event] >= 0 and block.delegate_id(event) is None
    ]


def _score(events: list[tuple[int | None, str]], record: RecordFile, method: str) -> int | None:
    """Return how many kernel events match the recorded operator, None for a contradiction."""
    called = {number for number, name in events if name == DELEGATE_CALL}
    if called != set(record_maps.delegates(record, method)):
        return None
    handles = record_maps.handles(record, method)
    graph = record_maps.edge_graph(record, method)
    nodes: Mapping[int, tuple[GraphNode, ...]] = {}
    if graph is not None:
        nodes = nodes_by_handle(graph)
    matched = 0
    for number, name in events:
        own = handles.get(number, ()) if number is not None else ()
        targets = {base_operator(node.target) for handle in own for node in nodes.get(handle, ())}
        if not name.startswith(KERNEL_PREFIX) or not targets:
            continue
        kernel = name.removeprefix(KERNEL_PREFIX).split(".")[0]
        if all(target.split("::")[-1] != kernel for target in targets):
            return None
        matched += 1
    return matched
