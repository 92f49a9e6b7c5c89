"""The documented table of numeric gaps: recorded values beside those of the run, by debug handle.

The pairs are those of the stock tool wherever it has a pair of one shape. Where it would compare
tensors of different shapes, because several operators share a handle, there is a row for each event
instead, as far as it is known what it is. Results of several tensors are compared one by one.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

import numpy as np

from inspector.compat.devtools.bodies import body_rows
from inspector.compat.devtools.event_pairs import event_pairs
from inspector.compat.devtools.numerical_comparator import (
    IntermediateOutputMapping,
    comparator,
    compared,
    compares_itself,
    is_several,
    preprocessed,
)
from inspector.compat.devtools.recorded_values import (
    NodeValue,
    Recorded,
    copied,
    recorded_bytes,
    recorded_values,
)
from inspector.export.pandas_bridge import DataFrame, load_pandas
from inspector.rebuild.torch_bridge import load_torch
from inspector.trace.event_kinds import DELEGATE_CALL, OPERATOR_CALL

if TYPE_CHECKING:
    from inspector.compat.devtools.etrecord import ETRecord
    from inspector.compat.devtools.event import Event
    from inspector.compat.devtools.inspector import Inspector

Handles = tuple[int, ...]
_FORWARD = "forward"
_COLUMNS = (
    "aot_debug_handle",
    "aot_ops",
    "aot_intermediate_output",
    "runtime_ops",
    "runtime_debug_handle",
    "runtime_intermediate_output",
    "gap",
    "stacktraces",
)
_LOG = logging.getLogger(__name__)
_MOST_BYTES = 1 << 28  # of what is kept for the next distance
_KNOWN: WeakKeyDictionary[Inspector, dict[Any, Recorded]] = WeakKeyDictionary()


@dataclass(slots=True)
class _Group:
    """Events of the run that share debug handles.

    Attributes:
        handles: all of them, those of later instructions last
        step: instruction whose values are those of the group
        event: its event
        events: all events of the group
    """

    handles: Handles
    step: int
    event: Event
    events: list[Event] = field(default_factory=list["Event"])


def numeric_gap(
    inspector: Inspector, distance: object, reference_graph: str | None, *, best_effort: bool
) -> DataFrame:
    """Return one row for each group of debug handles; see ``Inspector.calculate_numeric_gap``.

    Raises: ValueError, RebuildError
    """
    measure = comparator(distance, inspector)
    record = inspector.etrecord
    if record is None:
        raise ValueError(
            "Missing etrecord or missing representative inputs within etrecord, both of which are"
            " required for calculating numerical gap"
        )
    rows: list[dict[str, Any]] = []
    sources: list[str] = []
    for method, events in _by_method(inspector).items():
        found = _recorded(inspector, record, method, reference_graph, best_effort=best_effort)
        sources.append(found.inputs)
        known = [event for event in events if event.debug_handles is not None]
        rows += _rows(inspector, method, measure, found, known)
        rows += _body_rows(inspector, method, measure, found, events)
    if not rows:
        _LOG.warning("nothing is compared: %s", _why_nothing(inspector))
    frame = load_pandas().DataFrame(rows, columns=None if rows else _COLUMNS)
    frame.attrs["reference_graph"] = reference_graph or ""
    frame.attrs["inputs"] = ", ".join(dict.fromkeys(sources))
    return frame


def _body_rows(
    inspector: Inspector,
    method: str,
    measure: Any,  # noqa: ANN401 - duck-typed
    found: Recorded,
    events: Sequence[Event],
) -> Iterator[dict[str, Any]]:
    """Yield the rows of branches and loops."""
    for row in body_rows(inspector.session, method, events, found.executed):
        cells = (row.handles, row.nodes, row.recorded, row.operators, row.handles, row.found)
        gap = compared(measure, row.recorded, row.found)
        yield dict(zip(_COLUMNS, (*cells, gap, row.traces), strict=True))


def _why_nothing(inspector: Inspector) -> str:
    """Return why there is no row at all."""
    events = [event for block in inspector.event_blocks for event in block.events]
    if not any(len(event.debug_data) for event in events):
        return "the trace has no values of operators; a run that logs intermediate outputs has them"
    return "no event with values is known to be a node of the recorded program"


def _recorded(
    inspector: Inspector, record: ETRecord, method: str, wanted: str | None, *, best_effort: bool
) -> Recorded:
    """Return what the recorded program makes; it is run once for all distances, if there is room.

    The tensors are the caller's own: comparators and users may change them.
    """
    known = _KNOWN.setdefault(inspector, {})
    key = (record, method, wanted, best_effort)
    if key not in known:
        found = recorded_values(inspector.session, record, method, wanted, best_effort=best_effort)
        if sum(map(recorded_bytes, (found, *known.values()))) > _MOST_BYTES:
            return found
        known[key] = found
    return copied(known[key])


def _by_method(inspector: Inspector) -> dict[str, list[Event]]:
    """Return the events of each method that was run and recorded."""
    assert inspector.etrecord is not None
    known = inspector.etrecord.artifact.methods
    found: dict[str, list[Event]] = {}
    for block in inspector.event_blocks:
        method = block.method or (_FORWARD if len(known) < 2 else "")
        events = [event for event in block.events if event.instruction_id is not None]
        if method and events:
            found.setdefault(method, []).extend(events)
    return found


def _all_groups(events: Sequence[Event]) -> list[_Group]:
    """Return groups without common handles: those the stock tool makes, then further ones."""
    groups = _merged(_groups([event for event in events if event.op_types]))
    known = {handle for group in groups for handle in group.handles}
    rest = [event for event in events if not event.op_types and known.isdisjoint(_handles(event))]
    return groups + _merged(_groups(rest))


def _rows(
    inspector: Inspector,
    method: str,
    measure: Any,  # noqa: ANN401 - duck-typed
    found: Recorded,
    events: Sequence[Event],
) -> list[dict[str, Any]]:
    events = [event for event in events if event.name != OPERATOR_CALL]
    names = _runtime_names(events)
    pairs, whole = _grouped(found, events)
    if not whole:  # groups do not tell what is what: event by event, as far as that is known
        told = event_pairs(inspector.session, method, events, found)
        pairs = [(_handles(event), a, b) for event, a, b in told]
    mapping: IntermediateOutputMapping = {}
    several: list[tuple[Handles, Any, Any]] = []
    for handles, a, b in pairs:
        if is_several(a):
            several.append((handles, a, b))
        else:
            mapping[handles, a] = handles, b
    known = _Known(found, names)
    if compares_itself(measure):
        return _own_rows(measure, known, mapping, found, names)
    processed = preprocessed(measure, mapping).items()
    rows = [(key, value) for key, value in processed if key[1] is not None and value[1] is not None]
    rows += [((handles, a), (handles, b)) for handles, a, b in several]
    return [_row(measure, known, key, value) for key, value in rows]


def _own_rows(
    measure: Any,  # noqa: ANN401 - duck-typed
    known: _Known,
    mapping: IntermediateOutputMapping,
    found: Recorded,
    names: Mapping[Handles, list[str]],
) -> list[dict[str, Any]]:
    """Return the rows of a comparator with a ``compare`` of its own, with their stack traces."""
    recorded = {(handle,): [node.name for node in nodes] for handle, nodes in found.nodes.items()}
    frame = measure.compare(mapping, recorded, dict(names))
    rows = cast("list[dict[str, Any]]", frame.to_dict("records"))
    for row in rows:
        handles = row.get("aot_debug_handle", ())
        traces = {node.name: node.stack_trace for node in known.nodes(set(handles))}
        row.setdefault("stacktraces", traces)
    return rows


def _grouped(
    found: Recorded, events: Sequence[Event]
) -> tuple[list[tuple[Handles, Any, Any]], bool]:
    """Return the pairs of groups, and whether all of them are of one shape."""
    groups = _all_groups(events)
    by_handle = {handle: group for group in groups for handle in group.handles}
    pairs: list[tuple[Handles, Any, Any]] = []
    done: set[Handles] = set()
    whole = True
    for handle in found.nodes:
        group = by_handle.get(handle)
        if group is None or group.handles in done:
            continue
        done.add(group.handles)
        for pair in _pairs(group, found):
            if pair is not None:
                pairs.append((group.handles, *pair))
            elif not isinstance(found.nodes[handle][-1].value, (list, tuple)):
                whole = False
    return pairs, whole


class _Known:
    """Finds what rows are made of, by handle: there are thousands of each.

    Args:
        found: what the recorded program makes
        names: events of the run by all their handles
    """

    def __init__(self, found: Recorded, names: Mapping[Handles, list[str]]) -> None:
        self._found = found
        self._places = {handle: place for place, handle in enumerate(found.nodes)}
        self._names = names
        self._order = {key: place for place, key in enumerate(names)}
        self._starting: dict[int | None, list[Handles]] = {}
        for key in names:
            self._starting.setdefault(key[0] if key else None, []).append(key)

    def nodes(self, handles: set[int]) -> list[NodeValue]:
        """Return the nodes of some handles, in the order of the program."""
        there = sorted(handles & self._places.keys(), key=self._places.__getitem__)
        return [node for handle in there for node in self._found.nodes[handle]]

    def events(self, handles: set[int]) -> list[str]:
        """Return the names of events all of whose handles are among some, in their order."""
        keys = [key for start in (None, *handles) for key in self._starting.get(start, ())]
        inside = sorted(
            (key for key in keys if handles.issuperset(key)), key=self._order.__getitem__
        )
        return [name for key in inside for name in self._names[key]]


def _row(
    measure: Any,  # noqa: ANN401 - duck-typed
    known: _Known,
    recorded: tuple[Handles, Any],
    run: tuple[Handles, Any],
) -> dict[str, Any]:
    nodes = known.nodes(set(recorded[0]))
    return {
        "aot_debug_handle": recorded[0],
        "aot_ops": [node.name for node in nodes],
        "aot_intermediate_output": recorded[1],
        "runtime_ops": known.events(set(run[0])),
        "runtime_debug_handle": run[0],
        "runtime_intermediate_output": run[1],
        "gap": compared(measure, recorded[1], run[1]),
        "stacktraces": {node.name: node.stack_trace for node in nodes},
    }


# ---- events into groups
def _handles(event: Event) -> Handles:
    handles = event.debug_handles
    assert handles is not None
    return (handles,) if isinstance(handles, int) else tuple(handles)


def _usable(events: Sequence[Event]) -> Iterator[Event]:
    """Yield events, without delegate calls whose inner events logged values themselves."""
    inner: dict[str | None, set[int]] = {}
    for event in events:
        if event.is_delegated_op and len(event.debug_data):
            inner.setdefault(event.delegate_backend_name, set()).update(_handles(event))
    for event in events:
        covered = inner.get(event.delegate_backend_name, set())
        if event.name != DELEGATE_CALL or covered.isdisjoint(_handles(event)):
            yield event


def _groups(events: Sequence[Event]) -> list[_Group]:
    """Return one group for each tuple of handles; the event of the last instruction has it."""
    found: dict[Handles, _Group] = {}
    for event in _usable(events):
        handles, step = _handles(event), event.instruction_id
        number = -1 if step is None else step
        group = found.setdefault(handles, _Group(handles, -1, event))
        group.events.append(event)
        if number > group.step:
            group.step, group.event = number, event
    return list(found.values())


def _runtime_names(events: Sequence[Event]) -> dict[Handles, list[str]]:
    return {group.handles: [group.event.name] for group in _groups(events)}


def _merged(groups: Sequence[_Group]) -> list[_Group]:
    """Return groups of which no two have a handle in common."""
    merged: dict[int, _Group] = {}
    owner: dict[int, int] = {}  # handle -> number of the group that has it
    for number, group in enumerate(groups):
        current = _Group(group.handles, group.step, group.event, list(group.events))
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
def _pairs(group: _Group, found: Recorded) -> Iterator[tuple[Any, Any] | None]:
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
    """Return results of several tensors side by side; the run may log fewer than there are."""
    flat: list[Any] = []
    for value in logged:
        flat += cast("Sequence[Any]", value) if isinstance(value, (list, tuple)) else [value]
    if len(recorded) != len(flat):
        return None
    if not all(_same_elements(a, b) for a, b in zip(recorded, flat, strict=True)):
        return None
    return tuple(recorded), tuple(flat)


def _like(recorded: Any, logged: Sequence[Any]) -> Any:  # noqa: ANN401
    """Return the logged value of the recorded one's shape, then of its type, else the last."""
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
