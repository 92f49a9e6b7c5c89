"""Matches events to instructions and graph nodes, graded, never guessed.

Grades, strongest first: INSTRUCTION (index in the program), DEBUG_HANDLE and DELEGATE_ID
(ids of the record), ORDER (no id: same operator, equal counts, matched by
position; inferred), DELEGATE_CALL_ONLY (only the enclosing call is known), NONE.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from itertools import chain

import numpy as np

from inspector.files.payloads import delegate_payload
from inspector.files.session import Session
from inspector.join import record_maps
from inspector.join.delegate_owner import calls_of_nodes
from inspector.join.equal_methods import alike_method
from inspector.join.kernel_order import (
    PayloadMatch,
    match_named_events,
    match_payload_events,
)
from inspector.join.methods import FRAMEWORK
from inspector.join.node_index import base_operator, nodes_by_handle, walk_nodes
from inspector.join.partition_order import PartitionOrder, partition_order
from inspector.join.record_method import method_of
from inspector.trace.blocks import Block
from inspector.trace.event_kinds import inside_delegates
from schema.backends import event_node
from schema.etrecord import DelegateMap
from schema.graph import Graph, GraphNode, NodeKind
from schema.objects.identity_cache import identity_cache
from schema.payloads import Payload
from schema.payloads.identity import named_node, node_identity
from schema.program import ProgramFile, backend_id, instructions, operator_name
from schema.program import model as m


class Grade(str, Enum):
    """How an event was matched."""

    INSTRUCTION = "INSTRUCTION"
    DEBUG_HANDLE = "DEBUG_HANDLE"
    DELEGATE_ID = "DELEGATE_ID"
    ORDER = "ORDER"
    DELEGATE_CALL_ONLY = "DELEGATE_CALL_ONLY"
    NONE = "NONE"


@dataclass(frozen=True, slots=True)
class Link:
    """One event's matches.

    Attributes:
        grade: the weakest step from the event to the nodes
        instruction: index over all chains of the method, None outside of instructions
        handles: debug handles of the record
        nodes: recorded graph nodes of those handles, in graph order
        node: its only node, by a unique handle or by ORDER; empty if ambiguous
        payload_nodes: nodes of the delegate's payload the event covers, fused ones included
        inserted: the payload nodes have no counterpart in the recorded graph (layout copies)
        backend: backend the event belongs to, empty outside of delegates
        delegate: index in the method's delegates, None outside
        value_of: the recorded node whose value the event logs; empty for a value of none,
            None where the payload does not have that
        by_kind: the handles are those of the recorded node of its kind, none are its own
        values_of: likewise for each of several values that it logs, empty for one
        of_call: the handles are those of the whole call, whose events have no others
    """

    grade: Grade
    instruction: int | None = None
    handles: tuple[int, ...] = ()
    nodes: tuple[str, ...] = ()
    node: str = ""
    payload_nodes: tuple[str, ...] = ()
    inserted: bool = False
    backend: str = ""
    delegate: int | None = None
    value_of: str | None = None
    by_kind: bool = False
    values_of: tuple[str, ...] = ()
    of_call: bool = False


NO_LINK = Link(Grade.NONE)


def inner_label(link: Link, name: str) -> str:
    """Return the label of an event inside a delegate: its payload node if it is named by index."""
    return link.payload_nodes[0] if link.payload_nodes and named_node(name) is not None else name


@identity_cache
def link_block(session: Session, block: Block) -> BlockLinks:
    """Return the links of a block; each is created on first access."""
    program = session.program
    return BlockLinks(session, program, method_of(block, session.record, program), block)


class BlockLinks:
    """The links of the events of a block.

    Attributes:
        method: method the block ran, None if unknown; for equal methods the links refer to the
            first
        graph: recorded graph of the nodes, None without a record
        nodes: its nodes by debug handle
    """

    def __init__(
        self, session: Session, program: ProgramFile | None, method: str | None, block: Block
    ) -> None:
        record = session.record
        self.method = method
        self.block = block
        if method is None and program is not None:
            method = alike_method(program, record, block)  # for all but its name
        self.plan = program.plan(method) if program is not None and method is not None else None
        self.graph = record_maps.edge_graph(record, method) if record and method else None
        self.handles: Mapping[int, tuple[int, ...]] = {}
        self.delegates: Mapping[int, DelegateMap] = {}
        self._inside: Mapping[int, Mapping[str, Sequence[str]]] = {}
        self._origins: Mapping[int, str] = {}  # as the compiler noted them
        self._listed: Mapping[int, frozenset[str]] = {}  # call -> the nodes it took, if known
        self._calls: Mapping[str, int | None] = {}
        if record is not None and method is not None:
            self.handles = record_maps.handles(record, method)
            self.delegates = record_maps.delegates(record, method)
            origins = record_maps.origins(record, method)
            self._inside, self._origins = origins.inside, origins.nodes
            self._listed = {
                step: frozenset(name.rpartition("/")[2] for name in names)
                for step, names in record_maps.taken(record, method).items()
            }
        self.nodes: Mapping[int, tuple[GraphNode, ...]] = {}
        if self.graph is not None and method is not None:
            self.nodes = nodes_by_handle(self.graph)
            self._calls = calls_of_nodes(session, self.graph, method)
        self.single = order_matches(self.plan, self.handles, self.nodes)
        self.unmapped = unmapped_matches(self.plan, self.handles, self.graph)
        self._events = _delegate_events(block)
        self._whole: dict[int, frozenset[str]] = {}  # nodes of calls with several events
        self.payloads = self._payload_matches(session, program)

    def named(self, name: str) -> tuple[GraphNode, ...]:
        """Return the recorded node of a name, in nested graphs too; empty if not found."""
        return tuple(self._by_name.get(name, ()))

    def recorded(self, link: Link) -> tuple[GraphNode, ...]:
        """Return the recorded nodes of a link: of a fused kernel or a delegate call several.

        Of a handle that several nodes share they are those that the link is known to be of. Bodies
        of control flow may use a name again; without a handle it is of none.
        """
        own = [node for handle in link.handles for node in self.nodes.get(handle, ())]
        among = {node.name: (node,) for node in own}
        names = (link.node,) if link.node else link.nodes
        found = [among.get(name) or self.named(name) for name in names]
        return tuple(nodes[0] for nodes in found if len(nodes) == 1) or tuple(own)

    @cached_property
    def _by_name(self) -> Mapping[str, list[GraphNode]]:
        found: dict[str, list[GraphNode]] = {}
        for node in walk_nodes(self.graph) if self.graph is not None else ():
            found.setdefault(node.name, []).append(node)
        return found

    @cached_property
    def _inner(self) -> Mapping[str, GraphNode]:
        """Return recorded nodes by name: an emulated delegate logs by these."""
        nodes = walk_nodes(self.graph) if self.graph is not None else []
        return {node.name: node for node in nodes if node.debug_handle is not None}

    def link(self, event: int) -> Link:
        """Return the link of one event."""
        chain = int(self.block.layout.chain[event])
        number = self.block.instruction(event)
        name = self.block.event_name(event)
        if chain < 0 or number is None or name in FRAMEWORK:
            return NO_LINK
        identifier = self.block.delegate_id(event)
        if identifier is None:
            return self._operator(number)
        found = self._delegated(event, number, identifier)
        return replace(found, of_call=True) if self._is_of_call(found, number) else found

    def _is_of_call(self, link: Link, number: int) -> bool:
        """Return whether a link of one of several events names all nodes of their call."""
        if link.grade is not Grade.DELEGATE_ID or len(link.nodes) < 2 or link.value_of:
            return False
        if number not in self._whole:
            events = self._events.get(number, ())
            several = len({self.block.delegate_id(event) for event in events}) > 1
            self._whole[number] = frozenset(self.taken_names(number) if several else ())
        whole = self._whole[number]
        return bool(whole) and whole.issubset(link.nodes)

    def _operator(self, number: int) -> Link:
        instruction = number if self.plan is not None else None
        backend, delegate = self._backend(number)
        handles = self.handles.get(number, ())
        nodes = self._names(handles, number)
        if not nodes and number in self.unmapped:
            name = self.unmapped[number]
            return Link(Grade.ORDER, instruction, handles, (name,), name)
        if not nodes:
            grade = Grade.INSTRUCTION if self.plan is not None else Grade.NONE
            return Link(grade, instruction, handles, backend=backend, delegate=delegate)
        node, inferred = self.single.get(number, (nodes[0] if len(nodes) == 1 else "", False))
        if (noted := self._origins.get(number, "")) in nodes:  # more than a handle can tell
            nodes, node, inferred = (noted,), noted, False
        grade = Grade.ORDER if inferred else Grade.DEBUG_HANDLE
        return Link(grade, instruction, handles, nodes, node, backend=backend, delegate=delegate)

    def _names(self, handles: Sequence[int], number: int) -> tuple[str, ...]:
        """Return the nodes of handles: of nodes inside and outside of a call those on its side."""
        found = (node.name for handle in handles for node in self.nodes.get(handle, ()))
        names = tuple(dict.fromkeys(found))
        call = number if number in self.delegates else None
        listed = self._listed.get(number)
        own = tuple(
            name
            for name in names
            if self._calls.get(name, call) == call and (listed is None or name in listed)
        )
        return own or names

    def _backend(self, number: int) -> tuple[str, int | None]:
        if self.plan is not None:
            steps = instructions(self.plan)
            args = steps[number][2].instr_args if 0 <= number < len(steps) else None
            if isinstance(args, m.DelegateCall):
                return backend_id(self.plan, args), args.delegate_index
            return "", None
        entry = self.delegates.get(number)
        return (entry.name, None) if entry is not None else ("", None)

    def _delegated(self, event: int, number: int, identifier: int | str) -> Link:
        instruction = number if self.plan is not None else None
        backend, delegate = self._backend(number)
        entry = self.delegates.get(number)
        handles = entry.handles.get(str(identifier)) if entry is not None else None
        match = self.payloads.get(event)
        stood = self._represented(number, str(identifier))
        if stood:  # more precise than handles, which nodes may share
            return Link(
                Grade.DELEGATE_ID,
                instruction,
                tuple(dict.fromkeys(one.debug_handle for one in stood if one.debug_handle)),
                tuple(one.name for one in stood),
                stood[0].name if len(stood) == 1 else "",
                _payload_nodes(match),
                backend=backend,
                delegate=delegate,
                value_of=match.value_of if match is not None else None,
                values_of=match.values_of if match is not None else (),
            )
        if handles:
            nodes = self._names(handles, number)
            node = nodes[0] if len(nodes) == 1 else ""
            return Link(
                Grade.DELEGATE_ID,
                instruction,
                tuple(handles),
                nodes,
                node,
                _payload_nodes(match),
                backend=backend,
                delegate=delegate,
                value_of=match.value_of if match is not None else None,
                values_of=match.values_of if match is not None else (),
            )
        node = self._inner.get(event_node(backend, str(identifier)))
        if node is not None and node.debug_handle in self.handles.get(number, ()):
            return Link(
                Grade.DELEGATE_ID,
                instruction,
                (node.debug_handle,),
                (node.name,),
                node.name,
                backend=backend,
                delegate=delegate,
            )
        return self._by_order(event, number, backend, delegate)

    def _represented(self, number: int, identifier: str) -> tuple[GraphNode, ...]:
        """Return the recorded nodes that the compiler noted for an identifier, else nothing."""
        names = self._inside.get(number, {}).get(identifier, ())
        found = [self._inner.get(name) for name in names]  # none inside of branches and loops
        return tuple(node for node in found if node is not None)

    def _by_order(self, event: int, number: int, backend: str, delegate: int | None) -> Link:
        instruction = number if self.plan is not None else None
        match = self.payloads.get(event)
        if match is None:
            known = bool(backend) or instruction is not None
            grade = Grade.DELEGATE_CALL_ONLY if known else Grade.NONE
            return Link(grade, instruction, backend=backend, delegate=delegate)
        nodes = match.recorded or self._names(match.handles, number)  # nodes may share a handle
        return Link(
            Grade.DELEGATE_ID if match.exact else Grade.ORDER,
            instruction,
            match.handles,
            nodes,
            nodes[0] if len(nodes) == 1 else "",
            match.nodes,
            match.inserted,
            backend,
            delegate,
            match.value_of,
            match.by_kind,
            match.values_of,
        )

    def _inside_of(self, number: int) -> list[GraphNode]:
        """Return the recorded nodes inside a delegate call, in graph order."""
        handles = set(self.handles.get(number, ()))
        nodes = walk_nodes(self.graph) if self.graph is not None and handles else []
        listed = self._listed.get(number)
        return [
            node
            for node in nodes
            if node.kind is NodeKind.CALL
            and node.debug_handle in handles
            and (listed is None or node.name in listed)
        ]

    def _taken(self, number: int) -> list[GraphNode]:
        """Return the recorded nodes that compute inside a delegate call, in graph order."""
        return [node for node in self._inside_of(number) if not node.target.endswith("getitem")]

    @cached_property
    def _orders(self) -> Mapping[int, PartitionOrder]:
        """Return delegate call -> the order of its nodes, where their handles tell it."""
        found: dict[int, PartitionOrder] = {}
        gone: set[str] = set()  # in calls before, which may share a handle with later ones
        for number in sorted(self.delegates):
            nodes = [
                node
                for node in self._inside_of(number)
                if node.name not in gone and self._calls.get(node.name, number) == number
            ]
            order = partition_order(nodes, self.handles.get(number, ()))
            if order is not None:
                found[number] = order
                gone.update(node.name for node in order.nodes)
        return found

    def _open(self, number: int) -> frozenset[int]:
        """Return the handles of a call that may be of nodes outside of it: others have them too."""
        if number in self._listed:
            return frozenset()
        others = (own for other, own in self.handles.items() if other != number)
        return frozenset(self.handles.get(number, ())).intersection(*[chain.from_iterable(others)])

    def taken_names(self, number: int) -> tuple[str, ...]:
        """Return the names of the recorded nodes inside a delegate call."""
        return tuple(node.name for node in self._taken(number))

    def _payload_matches(
        self, session: Session, program: ProgramFile | None
    ) -> dict[int, PayloadMatch]:
        if self.plan is None or program is None:
            return {}
        found: dict[int, PayloadMatch] = {}
        steps = instructions(self.plan)
        for number, events in self._events.items():
            if not 0 <= number < len(steps):  # from a different program, or damaged
                continue
            args = steps[number][2].instr_args
            if not isinstance(args, m.DelegateCall):
                continue
            if not 0 <= args.delegate_index < len(self.plan.delegates):
                continue
            payload = delegate_payload(program, self.plan, args.delegate_index, session.external)
            names = [str(self.block.delegate_id(event)) for event in events]
            values = None if self.graph is None else self.graph.values
            taken, open_handles = self._taken(number), self._open(number)
            order = self._orders.get(number) if payload.origins else None
            matches = match_named_events(payload, names, taken, values, open_handles, order) or (
                match_payload_events(payload, names)
            )
            noted = self._noted(payload, number)
            found.update(
                (event, _as_noted(match, noted))
                for event, match in zip(events, matches, strict=True)
                if match is not None
            )
        return found

    def _noted(self, payload: Payload, number: int) -> dict[str, tuple[int, list[str]]]:
        """Return payload node -> its place, and the recorded nodes that the compiler noted."""
        if not self._inside.get(number):
            return {}
        noted: dict[str, tuple[int, list[str]]] = {}
        for place, operator in enumerate(payload.operators):
            names = noted.setdefault(operator.node, (place, []))[1]
            names += [node.name for node in self._represented(number, node_identity(place))]
        return noted


def _as_noted(match: PayloadMatch, noted: Mapping[str, tuple[int, list[str]]]) -> PayloadMatch:
    """Return a match with the recorded nodes that the compiler noted for its payload nodes."""
    if match.recorded or not noted:
        return match
    found = sorted(noted[node] for node in set(match.nodes) & noted.keys())
    names = chain.from_iterable(names for _, names in found)
    return replace(match, recorded=tuple(dict.fromkeys(names)))


def _payload_nodes(match: PayloadMatch | None) -> tuple[str, ...]:
    """Return the payload nodes that an event names itself."""
    return match.nodes if match is not None and (match.exact or match.named) else ()


def _delegate_events(block: Block) -> dict[int, list[int]]:
    layout = block.layout
    inner = inside_delegates(block)
    events: dict[int, list[int]] = {}
    for event in np.flatnonzero(inner & (layout.instruction != -1)).tolist():
        events.setdefault(int(layout.instruction[event]), []).append(event)
    return events


def order_matches(
    plan: m.ExecutionPlan | None,
    handles: Mapping[int, tuple[int, ...]],
    nodes: Mapping[int, tuple[GraphNode, ...]],
) -> dict[int, tuple[str, bool]]:
    """Return (node, inferred) of kernel calls with a single possible node.

    Nodes of a shared handle with the same operator are matched to the instructions of that
    operator by position, if their numbers are equal.
    """
    if plan is None:
        return {}
    by_key: dict[tuple[int, str], list[int]] = {}
    for step, (_, _, instruction) in enumerate(instructions(plan)):
        args = instruction.instr_args
        own = handles.get(step, ())
        if (
            isinstance(args, m.KernelCall)
            and len(own) == 1
            and 0 <= args.op_index < len(plan.operators)
        ):
            key = (own[0], base_operator(plan.operators[args.op_index].full_name))
            by_key.setdefault(key, []).append(step)
    found: dict[int, tuple[str, bool]] = {}
    for (handle, operator), steps in by_key.items():
        same = [node for node in nodes.get(handle, ()) if base_operator(node.target) == operator]
        if len(same) == len(steps):
            inferred = len(same) > 1
            found.update(
                (step, (node.name, inferred)) for step, node in zip(steps, same, strict=True)
            )
    return found


def unmapped_matches(
    plan: m.ExecutionPlan | None, handles: Mapping[int, tuple[int, ...]], graph: Graph | None
) -> dict[int, str]:
    """Return the node of kernel calls the record does not map, as those inside branches and loops.

    An operator is matched only if its unmapped calls are as many as its unmapped nodes.
    """
    if plan is None or graph is None:
        return {}
    mapped = {handle for own in handles.values() for handle in own}
    calls: dict[str, list[int]] = {}
    for step, (_, _, instruction) in enumerate(instructions(plan)):
        args = instruction.instr_args
        if isinstance(args, m.KernelCall) and step not in handles:
            calls.setdefault(base_operator(operator_name(plan, args)), []).append(step)
    nodes: dict[str, list[str]] = {}
    for node in walk_nodes(graph):
        if node.debug_handle not in mapped:
            nodes.setdefault(base_operator(node.target), []).append(node.name)
    return {
        step: name
        for operator, steps in calls.items()
        if len(steps) == len(nodes.get(operator, ()))
        for step, name in zip(steps, nodes[operator], strict=True)
    }
