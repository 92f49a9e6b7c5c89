"""Which value of the program each logged tensor is, and a name for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from inspector.files.session import Session
from inspector.join.links import Grade, inner_label, link_block
from inspector.numerics.tensors import LoggedTensor, block_tensors, logged_blocks
from inspector.numerics.traced import instruction_outputs, tensor_of, values_logged
from inspector.numerics.value_sources import value_sources
from inspector.size.constant_names import constant_names
from inspector.trace.blocks import Block
from inspector.trace.event_kinds import DELEGATE_CALL, KERNEL_PREFIX
from schema.program import ProgramFile, instructions
from schema.program import model as m


@dataclass(frozen=True, slots=True, eq=False)
class LoggedPlace:
    """A logged tensor and its value.

    Attributes:
        tensor: as logged
        name: of its value or node in the record, else of its event
        method: that ran, empty if it is unknown
        value: index in the plan, None if unknown
        slot: which output of its instruction, None for what went into a delegate
        nodes: recorded nodes and payload nodes that the value is of, empty where that is unknown
    """

    tensor: LoggedTensor
    name: str
    method: str
    value: int | None
    slot: int | None
    nodes: frozenset[str] = frozenset()


def logged_places(session: Session) -> tuple[LoggedPlace, ...]:
    """Return the tensors that the first run of each block logged, in order."""
    return tuple(one for block in logged_blocks(session) for one in _places(session, block))


def _places(session: Session, block: Block) -> Iterator[LoggedPlace]:
    logged, program = block_tensors(session, block), session.program
    single = len(session.methods) == 1
    method = session.methods[0] if single else link_block(session, block).method
    if program is None or method is None:
        yield from (LoggedPlace(one, _event_name(one), "", None, None) for one in logged)
        return
    sources = value_sources(session, method)
    names = {
        **constant_names(session, method),
        **{value: one.name for value, one in sources.items()},
    }
    slots = {(o.instruction, o.value): o.slot for o in instruction_outputs(program, method)}
    for group in _groups(logged):
        values = _values(program, method, group) or [None] * len(group)
        for one, value in zip(group, values, strict=True):
            step = -1 if one.instruction is None else one.instruction
            slot = slots.get((step, value)) if value is not None else None
            name = _node_name(session, one) or _name(one, value, slot, names)
            nodes = _nodes(session, one)
            if slot is not None and value in names:
                nodes |= {names[value]}
            yield LoggedPlace(one, name, method, value, slot, nodes)


def _groups(logged: tuple[LoggedTensor, ...]) -> Iterator[list[LoggedTensor]]:
    """Yield the tensors of each event."""
    group: list[LoggedTensor] = []
    for one in logged:
        if group and one.position == 0:
            yield group
            group = []
        group.append(one)
    if group:
        yield group


def _values(program: ProgramFile, method: str, group: list[LoggedTensor]) -> list[int] | None:
    plan, first = program.plan(method), group[0]
    if first.is_output:
        outputs = [value for value in plan.outputs if tensor_of(plan, value) is not None]
        return outputs if len(outputs) == len(group) else None
    steps = instructions(plan)
    step = -1 if first.instruction is None else first.instruction
    if len(plan.chains) != 1 or not 0 <= step < len(steps):
        return None
    is_delegate = isinstance(steps[step][2].instr_args, m.DelegateCall)
    if is_delegate and first.event != DELEGATE_CALL:  # inside of it
        return None
    return values_logged(program, method, step, [one.tensor for one in group])


def _node_name(session: Session, one: LoggedTensor) -> str:
    """Return the node that logged a tensor inside a delegate, empty unless that is sure.

    One that the compiler added has the name of the payload.
    """
    if one.block is None or one.event == DELEGATE_CALL:
        return ""
    link = link_block(session, one.block).link(one.row)
    if link.delegate is None or link.grade is not Grade.DELEGATE_ID:
        return ""
    name = link.node if link.value_of is None else link.value_of
    if one.position < len(link.values_of) and link.values_of[one.position]:
        return link.values_of[one.position]
    if not name and link.payload_nodes:
        name = f"{inner_label(link, one.event)} · {one.instruction}"
    return f"{name} [{one.position}]" if name and one.position else name


def _nodes(session: Session, one: LoggedTensor) -> frozenset[str]:
    """Return the nodes that an event inside a delegate computes, those fused into one included."""
    if one.block is None or one.event == DELEGATE_CALL:
        return frozenset()
    link = link_block(session, one.block).link(one.row)
    if link.delegate is None:
        return frozenset()
    shared = () if link.of_call or link.by_kind else link.nodes
    found = (link.node, link.value_of or "", *link.values_of, *shared, *link.payload_nodes)
    return frozenset(filter(None, found))


def _event_name(one: LoggedTensor) -> str:
    event = one.event.removeprefix(KERNEL_PREFIX)
    place = event if one.instruction is None else f"{event} · {one.instruction}"
    return f"{place} [{one.position}]" if one.position else place


def _name(one: LoggedTensor, value: int | None, slot: int | None, names: Mapping[int, str]) -> str:
    known = names.get(value, f"v{value}") if value is not None else ""
    if not known:
        return _event_name(one)
    if one.is_output:
        return f"{known} (output)"
    return known if slot is not None else f"{known} into {one.instruction}"
