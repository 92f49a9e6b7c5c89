"""Lane, colour and name of every event of a block, as columns.

Everything is computed over columns; Python loops run over instructions and strings, never events.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from devtools_app.appearance.colours import NOT_DELEGATED, PLAIN, backend_index
from inspector.files.session import Session
from inspector.graph.instruction_names import call_label
from inspector.join.links import BlockLinks, inner_label, link_block
from inspector.join.methods import FRAMEWORK
from inspector.trace import event_kinds
from inspector.trace.blocks import Block
from inspector.trace.event_kinds import (
    CONTROL,
    DELEGATE_CALL,
    inside_delegates,
    named_events,
    whole_runs,
)
from inspector.trace.group_keys import distinct, pack, ranks
from inspector.trace.timing import is_time
from schema.backends import short_backend
from schema.program import instructions
from schema.program import model as m

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
METHOD, CALLS, KERNELS, FIRST_DELEGATE = 0, 1, 2, 3
NO_DELEGATE = -1


@dataclass(frozen=True, slots=True)
class DelegateLane:
    """A delegate that logged events.

    Attributes:
        label: as in ``XNNPACK 0``
        backend: backend id
        index: delegate in the plan; without a program, the instruction that calls it
        same_clock: whether it counts with the clock of the trace
    """

    label: str
    backend: str
    index: int
    same_clock: bool


# a trace alone does not say on which backend a delegate ran, but that it was one
UNKNOWN_DELEGATE = backend_index("unknown delegate")


@dataclass(frozen=True, slots=True, eq=False)
class TimelineEventFacts:
    """Columns over the events of a block.

    Attributes:
        lane: METHOD, CALLS, KERNELS or FIRST_DELEGATE + number in delegates
        colour: reference of a colour
        label: number in names
        names: strings of labels
        executes: the event is a whole run of the method
        delegates: delegates with events of their own
        call: event of the DELEGATE_CALL around an inner event, -1 for others

    Shapes: lane, colour, label, call int64[events]; executes bool[events]
    """

    lane: Ints
    colour: Ints
    label: Ints
    names: tuple[str, ...]
    executes: Bools
    delegates: tuple[DelegateLane, ...]
    call: Ints


def event_facts(session: Session, block: Block) -> TimelineEventFacts:
    """Return the lanes, colours and names of the events of a block."""
    links = link_block(session, block)
    layout = block.layout
    strings = block.strings
    inner = inside_delegates(block)
    numbers = np.where(layout.chain >= 0, layout.instruction, -1)
    outside = (layout.chain < 0) | named_events(block, FRAMEWORK)
    outer = named_events(block, event_kinds.CALLS) & ~outside
    lane = np.where(outer, CALLS, np.where(outside, METHOD, KERNELS)).astype(np.int64)
    owner = _owners(links, numbers)
    owners = np.unique(owner[inner])
    delegates = _delegate_lanes(session, links, owners)
    inside = inner & ~outside
    lane[inside] = FIRST_DELEGATE + np.searchsorted(owners, owner[inside])
    colour = np.where(lane == METHOD, PLAIN, NOT_DELEGATED).astype(np.int64)
    colour[named_events(block, CONTROL)] = PLAIN
    colour[inside | (outer & named_events(block, (DELEGATE_CALL,)))] = UNKNOWN_DELEGATE
    delegated = (owner != NO_DELEGATE) & ~outside
    colour[delegated] = _backend_colours(links, owner[delegated])
    label, names = _labels(block, links, lane, numbers, strings)
    return TimelineEventFacts(
        lane,
        colour,
        label,
        names,
        whole_runs(block),
        delegates,
        _around(lane, numbers, inside),
    )


def _owners(links: BlockLinks, numbers: Ints) -> Ints:
    """Return the delegate each event's instruction calls; without a program the instruction itself.

    Indices come from files and may be arbitrary: no array is allocated by the largest of them.
    """
    steps, inverse = distinct(numbers)
    if links.plan is None:
        found = {number: number for number in links.delegates if number >= 0}
    else:
        calls = enumerate(step.instr_args for _, _, step in instructions(links.plan))
        found = {
            step: args.delegate_index
            for step, args in calls
            if isinstance(args, m.DelegateCall) and args.delegate_index >= 0
        }
    if not found:
        return np.full(len(numbers), NO_DELEGATE, np.int64)
    called = np.array(sorted(found), np.int64)
    delegates = np.array([found[step] for step in called.tolist()], np.int64)
    place = np.minimum(np.searchsorted(called, steps), len(called) - 1)
    return np.where(called[place] == steps, delegates[place], NO_DELEGATE)[inverse]


def _backend_of(links: BlockLinks, index: int) -> str:
    if links.plan is not None:
        return links.plan.delegates[index].id if index < len(links.plan.delegates) else ""
    return links.delegates[index].name if index in links.delegates else ""


def _backend_colours(links: BlockLinks, owner: Ints) -> Ints:
    """Return the colour of the delegate that owns each event."""
    owners, inverse = distinct(owner)
    colours = [backend_index(_backend_of(links, index)) for index in owners.tolist()]
    return np.array(colours, np.int64)[inverse]


def _delegate_lanes(session: Session, links: BlockLinks, owners: Ints) -> tuple[DelegateLane, ...]:
    """Return the lane of each owner; NO_DELEGATE for an unknown one."""
    lanes: list[DelegateLane] = []
    for owner in owners.tolist():
        backend = _backend_of(links, owner) if owner >= 0 else ""
        short = short_backend(backend) if backend else "delegate"
        label = f"{short} {owner}" if owner >= 0 else "delegate"
        source = session.options.source_time_scale
        same = is_time(source, backend) or not is_time(source)
        lanes.append(DelegateLane(label, backend, owner, same))
    return tuple(lanes)


def _labels(
    block: Block, links: BlockLinks, lane: Ints, numbers: Ints, strings: tuple[str, ...]
) -> tuple[Ints, tuple[str, ...]]:
    layout = block.layout
    names = [*strings, ""]
    label = np.where(layout.name >= 0, layout.name, len(strings)).astype(np.int64)
    texts = block.layout.delegate_str >= 0
    label[texts] = layout.delegate_str[texts]
    ids = layout.delegate_int != -1
    codes, first = ranks(pack(layout.delegate_int[ids], numbers[ids]))
    label[ids] = len(names) + codes
    names += [_inner_name(links, event) for event in np.flatnonzero(ids)[first].tolist()]
    if links.plan is not None:
        steps = instructions(links.plan)
        called = (lane == CALLS) & (numbers >= 0) & (numbers < len(steps))
        label[called] = len(names) + numbers[called]
        names += [call_label(links.plan, step.instr_args) for _, _, step in steps]
    return label, tuple(names)


def _inner_name(links: BlockLinks, event: int) -> str:
    number = str(int(links.block.layout.delegate_int[event]))
    label = inner_label(links.link(event), number)
    return f"id {number}" if label == number else label


def _around(lane: Ints, numbers: Ints, inside: Bools) -> Ints:
    """Return the call event of the same instruction for inner events."""
    steps, place = distinct(numbers)
    calls = np.flatnonzero((lane == CALLS) & (numbers >= 0))
    by_step = np.full(len(steps), -1, np.int64)
    by_step[place[calls]] = calls
    found = np.full(len(lane), -1, np.int64)
    known = inside & (numbers >= 0)
    found[known] = by_step[place[known]]
    return found
