"""The cells of a table of events as numpy columns, and the rows with values in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from inspector.compat.devtools.event import Event, shown_operators
from inspector.compat.devtools.trace_events import TraceEvents

Column = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Cells:
    """A table before it has types.

    Attributes:
        columns: name -> one cell per row
        kinds: the first row of each combination of cell types, in order
    """

    columns: dict[str, Column]
    kinds: list[int]


def event_cells(events: Sequence[Event]) -> Cells:
    """Return the cells of some events, by columns where they are those of a trace."""
    # A converter of the caller's may return numbers of any type: those rows are built one by one.
    if isinstance(events, TraceEvents) and events.clock.converter is None and not events.changed:
        return _of_trace(events)
    rows = [event.asdict() for event in events]
    keys = rows[0] if rows else Event("").asdict()
    columns = {key: _objects([_cell(row[key]) for row in rows]) for key in keys}
    first: dict[object, int] = {}
    for at, row in enumerate(zip(*columns.values(), strict=True)):
        first.setdefault(tuple(map(type, row)), at)
    return Cells(columns, list(first.values()))


def _cell(value: object) -> object:
    # asdict wraps containers in a list
    return cast("list[object]", value)[0] if isinstance(value, list) else value


def _of_trace(events: TraceEvents) -> Cells:
    """Return the cells of a trace; events with equal facts share their lists."""
    facts, which = events.naming.by_event()
    operators = [shown_operators(list(fact.op_types)) for fact in facts]
    backends = [fact.backend for fact in facts]
    identifiers = _identifiers(events)
    columns: dict[str, Column] = {
        "event_name": _names(events, identifiers),
        "raw": _objects(events.raw_lists()),
        **{name: _blanked(cell, events) for name, cell in events.statistics().items()},
        "op_types": _objects(operators)[which],
        "delegate_debug_identifier": identifiers,
        "stack_traces": _objects([dict(fact.stack_traces) for fact in facts])[which],
        "module_hierarchy": _objects([dict(fact.module_hierarchy) for fact in facts])[which],
        "is_delegated_op": events.inner,
        "delegate_backend_name": _objects(backends)[which],
        "debug_data": _objects(events.logged_lists()),
        "start_time": _objects(events.start_lists()),
    }
    shortened = np.array([isinstance(shown, str) for shown in operators])[which]
    known = np.array([backend is not None for backend in backends])[which]
    numbered = events.block.layout.delegate_int != -1
    flags = (events.timed, events.inner, numbered, shortened, known)
    code = sum(flag.astype(np.int64) << bit for bit, flag in enumerate(flags))
    return Cells(columns, sorted(np.unique(code, return_index=True)[1].tolist()))


def _identifiers(events: TraceEvents) -> Column:
    found = np.full(len(events), None, dtype=object)
    for at in np.flatnonzero(events.inner).tolist():
        found[at] = events.block.delegate_id(at)
    return found


def _names(events: TraceEvents, identifiers: Column) -> Column:
    strings = np.empty(len(events.block.strings) + 1, dtype=object)
    strings[:-1] = events.block.strings
    strings[-1] = ""
    names = strings[events.block.layout.name]
    for at in np.flatnonzero(events.inner).tolist():
        names[at] = f"{identifiers[at]}"
    return names


def _blanked(cell: Column, events: TraceEvents) -> Column:
    if events.timed.all():
        return cell
    column = cell.astype(object)
    column[~events.timed] = None
    return column


def _objects(items: Sequence[object]) -> Column:
    # One by one: numpy would inspect sequences to see whether they form a matrix.
    column = np.empty(len(items), dtype=object)
    for at, item in enumerate(items):
        column[at] = item
    return column
