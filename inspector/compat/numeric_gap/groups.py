"""Events of a run that share debug handles, as groups, and the pairs of their values.

Groups and pairs are those of the stock tool, by debug handle alone: it has no program.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from inspector.compat.devtools.event import Event
from inspector.compat.numeric_gap.recorded import Recorded
from inspector.rebuild.torch_bridge import load_torch
from inspector.trace.event_kinds import DELEGATE_CALL

Handles = tuple[int, ...]


@dataclass(slots=True)
class EventGroup:
    """Events of the run that share debug handles.

    Attributes:
        handles: all handles, those of later instructions last
        step: instruction whose values represent the group
        event: its event
        events: all events of the group
    """

    handles: Handles
    step: int
    event: Event
    events: list[Event] = field(default_factory=list[Event])


def all_groups(events: Sequence[Event]) -> list[EventGroup]:
    """Return groups without common handles: those of the stock tool, then further ones."""
    groups = merged_groups(groups_of([event for event in events if event.op_types]))
    known = {handle for group in groups for handle in group.handles}
    rest = [event for event in events if not event.op_types and known.isdisjoint(handles_of(event))]
    return groups + merged_groups(groups_of(rest))


def handles_of(event: Event) -> Handles:
    """Return the debug handles of an event, possibly none."""
    handles = event.debug_handles
    assert handles is not None
    return (handles,) if isinstance(handles, int) else tuple(handles)


def _usable(events: Sequence[Event]) -> Iterator[Event]:
    """Yield events, without delegate calls whose inner events logged values themselves."""
    inner: dict[str | None, set[int]] = {}
    for event in events:
        if event.is_delegated_op and len(event.debug_data):
            inner.setdefault(event.delegate_backend_name, set()).update(handles_of(event))
    for event in events:
        covered = inner.get(event.delegate_backend_name, set())
        if event.name != DELEGATE_CALL or covered.isdisjoint(handles_of(event)):
            yield event


def groups_of(events: Sequence[Event]) -> list[EventGroup]:
    """Return one group for each tuple of handles; the event of the last instruction has it."""
    found: dict[Handles, EventGroup] = {}
    for event in _usable(events):
        handles, step = handles_of(event), event.instruction_id
        number = -1 if step is None else step
        group = found.setdefault(handles, EventGroup(handles, -1, event))
        group.events.append(event)
        if number > group.step:
            group.step, group.event = number, event
    return list(found.values())


def runtime_names(events: Sequence[Event]) -> dict[Handles, list[str]]:
    """Return the name of the event of each group by its handles."""
    return {group.handles: [group.event.name] for group in groups_of(events)}


def merged_groups(groups: Sequence[EventGroup]) -> list[EventGroup]:
    """Return groups without common handles."""
    merged: dict[int, EventGroup] = {}
    owner: dict[int, int] = {}  # handle -> number of the group that has it
    for number, group in enumerate(groups):
        current = EventGroup(group.handles, group.step, group.event, list(group.events))
        for place in sorted({owner[handle] for handle in group.handles if handle in owner}):
            other = merged.pop(place)
            later = other.step < group.step
            first, second = (
                (other.handles, current.handles) if later else (current.handles, other.handles)
            )
            kept = [handle for handle in first if handle not in second]
            current.handles = tuple(dict.fromkeys([*kept, *second]))
            if not later:
                current.step, current.event = other.step, other.event
            current.events = other.events + current.events
        merged[number] = current
        owner.update(dict.fromkeys(current.handles, number))
    return list(merged.values())


# ---- pairs of a group
def group_pairs(group: EventGroup, found: Recorded) -> Iterator[tuple[Any, Any] | None]:
    """Yield recorded value and value of the run, the last output first; None for misfits."""
    logged = list(group.event.debug_data)
    count = group.event.num_outputs
    for place in range(count):
        if place >= len(group.handles) or place >= len(logged):
            return
        nodes = found.nodes.get(group.handles[-1 - place])
        if not nodes:
            continue
        recorded = nodes[-1].value
        if isinstance(recorded, (list, tuple)):
            pair = _listed(cast("Sequence[Any]", recorded), logged)
        else:
            value = logged[-1 - place]
            if count == 1 and len(logged) > 1:
                value = _like(recorded, logged)
            pair = (recorded, value) if _same_elements(recorded, value) else None
        yield pair


def _listed(recorded: Sequence[Any], logged: Sequence[Any]) -> tuple[Any, Any] | None:
    """Return results of several tensors as pairs; the run may log fewer than recorded."""
    flat: list[Any] = []
    for value in logged:
        flat += cast("Sequence[Any]", value) if isinstance(value, (list, tuple)) else [value]
    if len(recorded) != len(flat):
        return None
    if not all(_same_elements(a, b) for a, b in zip(recorded, flat, strict=True)):
        return None
    return tuple(recorded), tuple(flat)


def _like(recorded: Any, logged: Sequence[Any]) -> Any:  # noqa: ANN401
    """Return the logged value with the shape of the recorded one, else its type, else the last."""
    shape = getattr(recorded, "shape", None)
    alike = [value for value in logged if _is_tensor(value) and value.shape == shape]
    if len(alike) > 1:
        of_type = [value for value in alike if value.dtype == recorded.dtype]
        alike = of_type if len(of_type) == 1 else []
    return alike[0] if len(alike) == 1 else logged[-1]


def _same_elements(recorded: Any, value: Any) -> bool:  # noqa: ANN401
    """Return whether two values have the same elements in the same order, as torch compares."""
    if not _is_tensor(recorded) or not _is_tensor(value):
        return not _is_tensor(recorded) and isinstance(value, (int, float, bool))
    if recorded.shape == value.shape:
        return True
    if recorded.numel() != value.numel():
        return False
    try:
        shape = np.broadcast_shapes(tuple(recorded.shape), tuple(value.shape))  # torch's own
        # imports sympy at its first call, which takes half a second
    except ValueError:
        return False
    return math.prod(shape) == recorded.numel()


def _is_tensor(value: Any) -> bool:  # noqa: ANN401
    return isinstance(value, load_torch().Tensor)
