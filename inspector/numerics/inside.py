"""Nodes inside delegates, and their logged tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from inspector.files.session import Session
from inspector.graph.delegate_inside import InsideNode, executed_inside
from inspector.join import record_maps
from inspector.join.links import BlockLinks, Grade, Link, link_block
from inspector.numerics.contradictions import without_contradictions
from inspector.numerics.flat_graph import FlatGraph, FlatNode, Value, constant_values
from inspector.numerics.fused_nodes import FLOATS, QUANTIZED, in_types, type_of, with_fused
from inspector.numerics.grades import DELEGATE_ID, HANDLE, ORDER
from inspector.numerics.group_exits import with_group_values
from inspector.numerics.join_facts import Join, JoinTarget, delegate_members
from inspector.numerics.moved_contents import constant_contents
from inspector.numerics.payload_flow import (
    border_values,
    by_flow,
    has_shape_of,
    has_sizes_of,
    is_as_large,
    payload_event,
)
from inspector.numerics.payload_walk import walked
from inspector.numerics.rescaled import rescaled
from inspector.numerics.same_steps import filled_contents
from inspector.numerics.shared_handles import DelegateEvent, distinguished
from inspector.numerics.traced import DELEGATE, instruction_outputs
from inspector.trace.blocks import Block
from schema.backends import backend_of
from schema.dtypes.scalar_type import scalar_type
from schema.etdump import DebugTensor
from schema.payloads.identity import named_node

NO_TENSORS = "the trace has no tensors inside this delegate"
NOT_KNOWN = "no tensor of the trace is known to be its: the backend may have no value of it"
AT_BOUNDARY = "it is compared as output of the delegate"
FUSED = "it is part of a fused operator; the last node of that is compared"
SHARED = (
    "several operators of this delegate share its debug handle, and no event is known to be its"
)
HELD_QUANTIZED = "what the trace has of it is quantized, or was, and no recorded node is that"
IN_INTEGERS = "the backend computes in integers here: real values between them are not in the trace"
OF_CONSTANTS = "it is computed of constants alone, which the backend keeps in its own form"
ABSORBED = "the backend has no step of its own for it: it is in a constant, or in who reads it"
MOVED = (
    "its backend computes another value under this name: a factor or a shift was moved past it, and"
    " what reads it has the recorded value"
)
_GETITEM = "_operator::getitem"
_HALVES = ("float16", "bfloat16")
_Origins = Mapping[int, Mapping[str, tuple[str, ...]]]


@dataclass(frozen=True, slots=True)
class InsideOutput:
    """A recorded node that a delegate took.

    Attributes:
        instruction: call of the delegate
        slot: place among the nodes of the delegate
        operator: operator of the node
        name: identifier the backend gave it, empty without one
        node: its name
        graph_node: its name behind the nested graphs around it
        target: its value, if that can be compared
        passes: logged tensors, one a pass
        reason: why it is not compared, empty when it is
        doubt: why its join is doubted although the payload has it, empty when it is not
    """

    instruction: int
    slot: int
    operator: str
    name: str
    node: str
    graph_node: str
    target: JoinTarget | None
    passes: tuple[DebugTensor, ...]
    reason: str
    doubt: str = ""


def inside_outputs(
    session: Session, block: Block, run: int, join: Join, method: str
) -> tuple[InsideOutput, ...]:
    """Return the nodes inside the delegates of a method, with their tensors of one run."""
    if join.graph is None or not join.calls:
        return ()
    origins = record_maps.origins(session.record, method).inside if session.record else {}
    logged = _logged(session, link_block(session, block), block, run, origins)
    found: list[InsideOutput] = []
    borders = border_values(session, method, join)
    suffixes = _value_suffixes(session, method)
    filled = filled_contents(join.graph, join.graph.nodes)
    assert session.record is not None  # the graph is its
    known = constant_contents(join.graph, record_maps.constants(session.record, method))
    graph = replace(join.graph, contents=known | filled)
    for step, taken in join.calls.items():
        nodes = delegate_members(join.graph, taken)
        outputs = {target.value for (number, _), target in join.targets.items() if number == step}
        matched, shared = distinguished(
            nodes,
            [_doubted(one) if step in join.unsure else one for one in logged.get(step, ())],
            partial(by_flow, join.graph, border=borders.get(step, {})),
            partial(is_as_large, join.graph),
            partial(has_shape_of, join.graph),
        )
        if step in join.unsure:  # data flow tells nodes apart only among those of the call
            matched = {name: _doubted(event) for name, event in matched.items()}
        events = logged.get(step, ())
        known = borders.get(step, {})
        matched = without_contradictions(join.graph, nodes, matched, events, known)
        matched = with_group_values(
            join.graph, nodes, matched, shared, events, suffixes.get(step, ())
        )
        own = with_fused(join.graph, nodes, matched, events, shared)
        left = {name for name in shared if name not in own or own[name].nodes[-1] != name}
        left |= {
            one.node.name
            for one in nodes
            if (event := own.get(one.node.name)) is not None
            and event.nodes[-1] == one.node.name
            and (event.grade == ORDER or not has_sizes_of(join.graph, event, one))
        }
        flowing = walked(graph, nodes, matched, left, events, known)
        flowing = in_types(join.graph, nodes, flowing)
        own |= flowing
        for name in shared:  # of several steps: none is known to be its, so none has it fused
            if name in own and own[name].nodes[-1] != name and not own[name].fused:
                del own[name]
        shown = {one.name for one in flowing.values()}
        for name, one in [*own.items()]:  # by order, and data flow shows whose it is
            if name not in flowing and one.grade == ORDER and one.name in shown:
                del own[name]
        for event in flowing.values():  # they show what is part of a step
            own = dict.fromkeys(event.nodes, event) | own
        by_name = {node.node.name: node for node in nodes}
        other_steps = rescaled(join.graph, own, nodes, events)
        why = dict.fromkeys(by_name, NOT_KNOWN) if own else {}
        why |= {name: _why_shared(join.graph, by_name[name], events) for name in shared}
        why |= _absorbed(nodes, origins.get(step, {}))
        inner = [
            replace(
                _inside(step, place, node, own, outputs, why.get(node.node.name, "")),
                graph_node=join.graph.prefixes.get(node.scope, "") + node.node.name,
            )
            for place, node in enumerate(nodes)
            if node.operator != _GETITEM
        ]
        found += [
            replace(one, target=None, passes=(), reason=MOVED) if one.node in other_steps else one
            for one in inner
        ]
    return tuple(found)


def _why_shared(graph: FlatGraph, node: FlatNode, events: Sequence[DelegateEvent]) -> str:
    """Return why none of the events with the handle of a node is known to be its."""
    if constant_values(graph).issuperset(node.writes):
        return OF_CONSTANTS
    passes = [each for one in events if node.node.name in one.nodes for each in one.passes]
    real = type_of(graph, node) in FLOATS
    logged = {tensor.scalar_type for each in passes for tensor in each}
    return IN_INTEGERS if real and logged and logged.issubset(QUANTIZED) else SHARED


def _value_suffixes(session: Session, method: str) -> dict[int, tuple[str, ...]]:
    """Return delegate call -> what its backend may add to the name of a node."""
    assert session.program is not None
    outputs = instruction_outputs(session.program, method)
    return {
        one.instruction: backend_of(one.operator).value_suffixes
        for one in outputs
        if one.kind == DELEGATE
    }


def _doubted(event: DelegateEvent) -> DelegateEvent:
    return event if event.grade == DELEGATE_ID else replace(event, grade=ORDER)


def held_dtypes(block: Block, run: int) -> dict[int, str]:
    """Return delegate call -> the dtype of half precision that values inside have, if any has.

    What leaves the delegate in another dtype has no more precision. Values count whether or not a
    recorded node is known to be theirs.
    """
    found: dict[int, str] = {}
    for event in range(len(block)):
        number = block.instruction(event)
        if number is None or block.delegate_id(event) is None:
            continue
        for value in block.debug_values(event, run):
            tensors = value.all_tensors() if value is not None else ()
            held = {scalar_type(one.scalar_type).name for one in tensors}.intersection(_HALVES)
            if held:
                found[number] = min(held)
    return found


def _absorbed(nodes: Sequence[FlatNode], origins: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return reasons for nodes without an operator in a backend that declares its operators.

    Empty where it does not.
    """
    steps = {name.rpartition("/")[2] for names in origins.values() for name in names}
    names = [node.node.name for node in nodes if origins]
    return {name: ABSORBED for name in names if name not in steps}


def _logged(
    session: Session, links: BlockLinks, block: Block, run: int, origins: _Origins
) -> dict[int, list[DelegateEvent]]:
    """Return delegate call -> its events with tensors, in order."""
    found: dict[int, list[DelegateEvent]] = {}
    seen: set[int] = set()
    for event in range(len(block)):
        group, number = int(block.layout.group[event]), block.instruction(event)
        if group in seen or number is None or block.delegate_id(event) is None:
            continue
        values = [value for value in block.debug_values(event, run) if value is not None]
        if not values:
            continue
        seen.add(group)
        link, name = links.link(event), block.event_name(event)
        recorded = [each.rpartition("/")[2] for each in origins.get(number, {}).get(name, ())]
        nodes = tuple(recorded) or link.nodes
        ordered = link.grade is Grade.ORDER
        if link.value_of is not None and not recorded:
            nodes = (link.value_of,) if link.value_of in links.taken_names(number) else ()
        elif link.payload_nodes == (name,) and (
            ordered or not nodes or (link.by_kind and len(nodes) > 1)
        ):
            nodes, ordered = links.taken_names(number), False  # which one, data flow tells
        passes = tuple(value.all_tensors() for value in values)
        taken = links.taken_names(number) if link.values_of and not recorded else ()
        found.setdefault(number, []).extend(
            DelegateEvent(
                name, (one,), DELEGATE_ID, tuple(each[place : place + 1] for each in passes)
            )
            for place, one in enumerate(link.values_of)
            if one in taken
        )
        if not nodes:
            continue
        grade = ORDER if ordered else HANDLE
        own = _payload_node(session, links.method or "", link, name)
        if (
            recorded or link.value_of or nodes == (name,)
        ):  # a graph run in place of the backend has its nodes' names
            grade = DELEGATE_ID
        logged = DelegateEvent(name, nodes, grade, passes)
        if own is not None:
            facts = payload_event(own)
            logged = replace(facts, name=name, nodes=nodes, grade=grade, passes=passes)
        found.setdefault(number, []).append(logged)
    return found


def _payload_node(session: Session, method: str, link: Link, name: str) -> InsideNode | None:
    """Return the payload node of an event, None if unknown."""
    if link.delegate is None:
        return None
    inside = executed_inside(session, method, link.delegate)
    if link.payload_nodes or name in inside.by_name:
        return inside.by_name.get(link.payload_nodes[0] if link.payload_nodes else name)
    place = named_node(name)  # as traces of our engines have it
    return inside.nodes[place] if place is not None and place < len(inside.nodes) else None


def _inside(
    step: int,
    place: int,
    node: FlatNode,
    logged: dict[str, DelegateEvent],
    outputs: set[Value],
    why: str,
) -> InsideOutput:
    event = logged.get(node.node.name)
    name, operator = node.node.name, node.operator
    if event is None:
        leaves = any(value in outputs for value in node.writes)
        reason = AT_BOUNDARY if leaves else why or NO_TENSORS
        return InsideOutput(step, place, operator, "", name, "", None, (), reason)
    if event.nodes[-1] != name:
        return InsideOutput(step, place, operator, event.name, name, "", None, (), FUSED)
    if not event.passes:
        return InsideOutput(step, place, operator, event.name, name, "", None, (), HELD_QUANTIZED)
    handle = node.node.debug_handle
    handles = (handle,) if handle else ()
    target = JoinTarget(node.writes[0], name, event.nodes, handles, event.grade)
    passes = tuple(each[0] for each in event.passes if each)
    return InsideOutput(step, place, operator, event.name, name, "", target, passes, "")
