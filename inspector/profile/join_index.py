"""Index of the relations in a method between nodes, instructions, events and values.

Built once per method; look-ups are dictionary reads. Nodes are those of the compiled model graph.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from inspector.files.session import Session
from inspector.graph.model_graph import ModelGraph, model_graph
from inspector.join import record_maps
from inspector.join.delegate_owner import calls_of_nodes
from inspector.join.int_maps import NONE, CodedMap, GroupMap, IntMap, RunMap, run_map
from inspector.join.link_codes import LinkCodes, link_codes
from inspector.join.links import Link, link_block, order_matches, unmapped_matches
from inspector.join.node_index import nodes_by_handle
from inspector.join.operands import Operands, delegate_output_counts, plan_operands
from inspector.trace.blocks import Block
from inspector.trace.event_kinds import inside_delegates
from inspector.trace.group_keys import pack, ranks
from inspector.trace.timed_blocks import timed_blocks
from schema.graph import GraphNode
from schema.objects.identity_cache import identity_cache
from schema.program import instructions
from schema.program import model as m


@dataclass(frozen=True, slots=True)
class Related:
    """Everything related to one item.

    Attributes:
        nodes: names in the compiled model graph, the most exact first
        instructions: indices over all chains
        events: rows of the profile
        values: indices in the plan's value table that its instructions write
        reads: indices they read
        delegates: indices in the plan's delegates
    """

    nodes: tuple[str, ...] = ()
    instructions: tuple[int, ...] = ()
    events: tuple[int, ...] = ()
    values: tuple[int, ...] = ()
    reads: tuple[int, ...] = ()
    delegates: tuple[int, ...] = ()


NOTHING = Related()
Ints = NDArray[np.int64]
_SPARSE = 8  # instructions for each that has nodes, beyond which a sequence of all is a waste


@dataclass(frozen=True, slots=True, eq=False)
class JoinIndex:
    """The look-ups of one method.

    Attributes:
        graph: the compiled model graph, None without a program and a record
        node_instructions: node name -> instructions
        instruction_nodes: instruction -> node names
        instruction_events: instruction -> profile rows
        node_events: node name -> profile rows of its own (inside delegates)
        event_instruction: profile row -> instruction
        event_nodes: profile row -> node names
        operands: what each instruction reads and writes, empty without a program
    """

    graph: ModelGraph | None
    node_instructions: Mapping[str, tuple[int, ...]]
    instruction_nodes: Mapping[int, tuple[str, ...]]
    instruction_events: Mapping[int, tuple[int, ...]]
    node_events: Mapping[str, tuple[int, ...]]
    event_instruction: Mapping[int, int]
    event_nodes: Mapping[int, tuple[str, ...]]
    operands: tuple[Operands, ...]

    def of_node(self, name: str) -> Related:
        """Return everything related to a node."""
        steps = self.node_instructions.get(name, ())
        own = self.node_events.get(name, ())
        return self._made((name,), steps, own or self._events(steps))

    def of_instruction(self, number: int) -> Related:
        """Return everything related to an instruction."""
        return self._made(
            self.instruction_nodes.get(number, ()), (number,), self._events((number,))
        )

    def of_event(self, row: int) -> Related:
        """Return everything related to a row of the profile."""
        step = self.event_instruction.get(row)
        steps = () if step is None else (step,)
        return self._made(self.event_nodes.get(row, ()), steps, (row,))

    def of_value(self, value: int) -> Related:
        """Return everything related to a value: instructions that write it, else readers."""
        writers = [n for n, touched in enumerate(self.operands) if value in touched.writes]
        readers = [n for n, touched in enumerate(self.operands) if value in touched.reads]
        steps = tuple(writers or readers)
        found = self._made(self._nodes(steps), steps, self._events(steps))
        return Related(found.nodes, steps, found.events, (value,), (), found.delegates)

    def of_delegate(self, index: int) -> Related:
        """Return everything related to a delegate."""
        nodes = self.graph.nodes if self.graph is not None else ()
        names = tuple(node.name for node in nodes if node.delegate == index)
        steps = tuple(
            dict.fromkeys(step for name in names for step in self.node_instructions.get(name, ()))
        )
        found = self._made(names, steps, self._events(steps))
        return Related(names, steps, found.events, found.values, found.reads, (index,))

    def _nodes(self, steps: Iterable[int]) -> tuple[str, ...]:
        names = (name for step in steps for name in self.instruction_nodes.get(step, ()))
        return tuple(dict.fromkeys(names))

    def _events(self, steps: Iterable[int]) -> tuple[int, ...]:
        rows = (row for step in steps for row in self.instruction_events.get(step, ()))
        return tuple(dict.fromkeys(rows))

    def _made(
        self, nodes: tuple[str, ...], steps: tuple[int, ...], events: tuple[int, ...]
    ) -> Related:
        touched = [self.operands[step] for step in steps if 0 <= step < len(self.operands)]
        graph = self.graph
        owners = (
            ()
            if graph is None
            else tuple(
                graph.nodes[graph.by_name[name]].delegate for name in nodes if name in graph.by_name
            )
        )
        return Related(
            nodes,
            steps,
            events,
            tuple(dict.fromkeys(value for pair in touched for value in pair.writes)),
            tuple(dict.fromkeys(value for pair in touched for value in pair.reads)),
            tuple(dict.fromkeys(owner for owner in owners if owner is not None)),
        )


@identity_cache
def join_index(session: Session, method: str) -> JoinIndex:
    """Return the look-ups of a method."""
    graph = model_graph(session, method)
    by_step = _instruction_nodes(session, method, graph)
    events = _events(session, method, graph, by_step)
    operands: tuple[Operands, ...] = ()
    program = session.program
    if program is not None and method in session.methods:
        plan = program.plan(method)
        operands = plan_operands(plan, delegate_output_counts(program, plan))
    return JoinIndex(
        graph,
        StepsOfNodes(graph.by_name, by_step) if graph is not None else {},
        _in_sequence(by_step),
        GroupMap(events.steps, events.rows),
        events.own(),
        IntMap(events.rows, events.steps),
        CodedMap(events.rows, events.codes, events.names),
        operands,
    )


class StepsOfNodes(Mapping[str, tuple[int, ...]]):
    """The instructions of the nodes that have some, without objects for each node.

    Args:
        by_name: node -> its number
        by_step: instruction -> nodes
    """

    def __init__(self, by_name: Mapping[str, int], by_step: Mapping[int, Sequence[str]]) -> None:
        pairs = [(by_name[name], step) for step, names in by_step.items() for name in names]
        table = np.reshape(np.array(pairs, np.int64), (-1, 2))
        table = table[np.argsort(table[:, 0], kind="stable")]
        starts = np.searchsorted(table[:, 0], np.arange(len(by_name) + 1))
        self._steps = RunMap(starts.tolist(), array("q", table[:, 1].tolist()))
        self._by_name = by_name

    @override
    def __getitem__(self, key: str) -> tuple[int, ...]:
        steps = self._steps[self._by_name[key]]
        if not steps:
            raise KeyError(key)
        return steps

    @override
    def __iter__(self) -> Iterator[str]:
        return (name for name, number in self._by_name.items() if self._steps[number])

    @override
    def __len__(self) -> int:
        return sum(1 for _ in self)


def _in_sequence(by_step: Mapping[int, tuple[str, ...]]) -> Mapping[int, tuple[str, ...]]:
    """Return instruction -> nodes in one sequence; damaged records may name any instruction."""
    count = max(by_step, default=-1) + 1
    if count > _SPARSE * len(by_step) or min(by_step, default=0) < 0:
        return by_step
    return run_map(by_step.get(step, ()) for step in range(count))


def _instruction_nodes(
    session: Session, method: str, graph: ModelGraph | None
) -> dict[int, tuple[str, ...]]:
    if graph is None:
        return {}
    if graph.source == "program":
        return _of_program(session, method, graph)
    return _of_record(session, method, graph)


def _of_program(session: Session, method: str, graph: ModelGraph) -> dict[int, tuple[str, ...]]:
    found: dict[int, list[str]] = {}
    calls = _delegate_calls(session, method)
    for node in graph.nodes:
        if node.instruction is not None:
            found.setdefault(node.instruction, []).append(node.name)
        elif node.delegate is not None:
            for step in calls.get(node.delegate, ()):
                found.setdefault(step, []).append(node.name)
    return {step: tuple(names) for step, names in found.items()}


def _delegate_calls(session: Session, method: str) -> dict[int, list[int]]:
    calls: dict[int, list[int]] = {}
    program = session.program
    if program is None or method not in session.methods:
        return calls
    for step, (_, _, instruction) in enumerate(instructions(program.plan(method))):
        if isinstance(instruction.instr_args, m.DelegateCall):
            calls.setdefault(instruction.instr_args.delegate_index, []).append(step)
    return calls


def _of_record(session: Session, method: str, graph: ModelGraph) -> dict[int, tuple[str, ...]]:
    record = session.record
    if record is None:
        return {}
    handles = record_maps.handles(record, method)
    calls = record_maps.delegates(record, method)
    by_handle: dict[int, list[tuple[str, bool]]] = {}
    for node in graph.nodes:
        if node.node.debug_handle is not None:
            entry = (node.name, node.delegate is not None)
            by_handle.setdefault(node.node.debug_handle, []).append(entry)
    recorded = record_maps.edge_graph(record, method)
    owners: Mapping[str, int | None] = {}
    if recorded is not None:
        owners = calls_of_nodes(session, recorded, method)

    def is_of(step: int, name: str, *, delegated: bool) -> bool:
        call = step if step in calls else None
        known = owners.get(name.rpartition("/")[2], call)
        return delegated == (step in calls) and known == call

    found = {
        step: tuple(
            name
            for handle in dict.fromkeys(own)
            for name, delegated in by_handle.get(handle, ())
            if is_of(step, name, delegated=delegated)
        )
        for step, own in handles.items()
    }
    found.update(_single(session, method, found, handles, calls))
    found.update(_by_order(session, method, graph, handles))
    return found


def _single(
    session: Session,
    method: str,
    found: Mapping[int, tuple[str, ...]],
    handles: record_maps.Handles,
    calls: Collection[int],
) -> dict[int, tuple[str, ...]]:
    """Return the node of each kernel call whose operator one node of its handle alone has.

    A linear layer is a permutation and a product of one handle: each has its own time.
    """
    program, record = session.program, session.record
    if program is None or record is None or method not in session.methods:
        return {}
    recorded = record_maps.edge_graph(record, method)
    nodes: Mapping[int, tuple[GraphNode, ...]] = (
        nodes_by_handle(recorded) if recorded is not None else {}
    )
    single: dict[int, tuple[str, ...]] = {}
    for step, (name, _) in order_matches(program.plan(method), handles, nodes).items():
        own = tuple(one for one in found.get(step, ()) if one.rpartition("/")[2] == name)
        if len(own) == 1 and step not in calls:
            single[step] = own
    taken = {name for own in single.values() for name in own}
    for step, names in found.items():
        left = tuple(name for name in names if name not in taken)
        if step not in single and step not in calls and left:
            single[step] = left
    return single


def _by_order(
    session: Session, method: str, graph: ModelGraph, handles: record_maps.Handles
) -> dict[int, tuple[str, ...]]:
    program, record = session.program, session.record
    if program is None or record is None or method not in session.methods:
        return {}
    recorded = record_maps.edge_graph(record, method)
    full = {node.node.name: node.name for node in graph.nodes}
    matches = unmapped_matches(program.plan(method), handles, recorded)
    return {step: (full[name],) for step, name in matches.items() if name in full}


@dataclass(frozen=True, slots=True, eq=False)
class _Events:
    """The events of the instructions of a method, as columns.

    Shapes: rows, steps, codes int64[events]; inner bool[events]
    """

    rows: Ints
    steps: Ints
    codes: Ints
    inner: NDArray[np.bool_]
    names: tuple[tuple[str, ...], ...]

    def own(self) -> dict[str, tuple[int, ...]]:
        """Return node -> rows of events inside delegates that are this node."""
        named = np.array([bool(names) for names in self.names], np.bool_)
        found: dict[str, list[int]] = {}
        for place in np.flatnonzero(self.inner & named[self.codes]).tolist():
            for name in self.names[int(self.codes[place])]:
                found.setdefault(name, []).append(int(self.rows[place]))
        return {name: tuple(rows) for name, rows in found.items()}


def _events(
    session: Session,
    method: str,
    graph: ModelGraph | None,
    by_step: Mapping[int, tuple[str, ...]],
) -> _Events:
    parts: list[_Events] = []
    start = 0
    for block in timed_blocks(session.timed_dumps).blocks:
        links = link_block(session, block)
        if links.method == method or (links.method is None and links.plan is None):
            parts.append(_block_events(link_codes(session, block), block, start, graph, by_step))
        start += len(block)
    names: list[tuple[str, ...]] = [()]
    codes = [np.zeros(0, np.int64)]
    for part in parts:
        codes.append(part.codes + len(names))
        names += part.names
    return _Events(
        np.concatenate([NONE, *(part.rows for part in parts)]),
        np.concatenate([NONE, *(part.steps for part in parts)]),
        np.concatenate(codes),
        np.concatenate([np.zeros(0, np.bool_), *(part.inner for part in parts)]),
        tuple(names),
    )


def _block_events(
    found: LinkCodes,
    block: Block,
    start: int,
    graph: ModelGraph | None,
    by_step: Mapping[int, tuple[str, ...]],
) -> _Events:
    layout = block.layout
    events = np.flatnonzero((layout.chain >= 0) & (layout.instruction != -1))
    steps, inner = layout.instruction[events], inside_delegates(block)[events]
    if graph is None:  # then no instruction has nodes either
        return _Events(events + start, steps, np.zeros_like(steps), inner, ((),))
    codes, first = ranks(pack(found.codes[events], steps, inner))
    names: list[tuple[str, ...]] = []
    known: dict[tuple[int, int], tuple[str, ...]] = {}  # events of a call often share their link
    longer: dict[int, dict[str, str]] = {}
    for place in first.tolist():
        step, code = int(steps[place]), int(found.codes[events[place]])
        of_step = by_step.get(step, ())
        if (step, code) not in known:
            if step not in longer:
                longer[step] = _nested_names(of_step)
            known[step, code] = _event_nodes(graph, found.links[code], step, longer[step])
        own = known[step, code]
        names.append(own if inner[place] else of_step or own)
    return _Events(events + start, steps, codes, inner, tuple(names))


def _event_nodes(
    graph: ModelGraph, link: Link, number: int, longer: Mapping[str, str]
) -> tuple[str, ...]:
    if graph.source == "program":
        names = [f"{link.backend}_{number}/{name}" for name in link.payload_nodes]
    else:
        names = [longer.get(name, name) for name in ((link.node,) if link.node else link.nodes)]
    return tuple(name for name in names if name in graph.by_name)


def _nested_names(of_step: tuple[str, ...]) -> dict[str, str]:
    """Return own name -> longer name of the nodes of an instruction; none where two have it.

    A node of a nested graph has a longer name, which its instruction leads to.
    """
    if len(of_step) == 1:
        return {of_step[0].rpartition("/")[2]: of_step[0]}
    found: dict[str, list[str]] = {}
    for full in of_step:
        found.setdefault(full.rsplit("/", 1)[-1], []).append(full)
    return {name: one[0] for name, one in found.items() if len(one) == 1}
