"""DataFrames of events, made column by column, with the types that joining row by row would give.

The stock tool makes a frame of each event and joins them; what pandas makes of missing cells then
depends on its release. One row of each kind is therefore joined the same way here, and the columns
take the types that come out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from inspector.api.event import Event, shown_operators
from inspector.api.pandas_bridge import DataFrame, Pandas, load_pandas
from inspector.api.trace_events import TraceEvents

Column = NDArray[Any]
BLOCK_COLUMN = "event_block_name"
METADATA_COLUMN = "delegate_debug_metadata"


def events_frame(name: str, events: Sequence[Event], units: str) -> DataFrame:
    """Return one row an event.

    Args:
        name: of the block
        events: the events of a trace, or any others
        units: put behind the names of the time columns
    """
    pd = load_pandas()
    cells = _trace_cells(events) if isinstance(events, TraceEvents) else _cells(events)
    columns = {_titled(key, units): column for key, column in cells.items()}
    rows = [events[index].to_dataframe(units) for index in _kinds(cells)]
    if rows:
        types = pd.concat(rows, ignore_index=True).dtypes
        typed = {key: pd.Series(cell, dtype=types[key]) for key, cell in columns.items()}
    else:
        typed = {key: pd.Series(cell, dtype=object) for key, cell in columns.items()}
    frame = pd.DataFrame(typed)
    frame.insert(0, BLOCK_COLUMN, np.asarray([name] * len(events)), allow_duplicates=True)
    return frame


def _titled(key: str, units: str) -> str:
    return f"{key}{units}" if key in ("p10", "p50", "p90", "avg", "min", "max") else key


def _kinds(cells: dict[str, Any]) -> list[int]:
    """Return the first row of each combination of cell types that can decide a column's type."""
    keys = zip(
        (start is None for start in cells["start_time"]),
        (raw is None for raw in cells["raw"]),
        map(type, cells["delegate_debug_identifier"]),
        map(type, cells["delegate_backend_name"]),
        map(type, cells["is_delegated_op"]),
        map(type, cells["op_types"]),
        strict=True,
    )
    first: dict[object, int] = {}
    for index, key in enumerate(keys):
        first.setdefault(key, index)
    return list(first.values())


def _trace_cells(events: TraceEvents) -> dict[str, Any]:
    block, facts, raw = events.block, events.facts(), events.raw_lists()
    count = range(len(events))
    identifiers = (
        [block.delegate_id(at) for at in count] if events.inner.any() else [None] * len(events)
    )
    return {
        "event_name": event_names(events, identifiers),
        "raw": _objects(raw),
        **{name: _blanked(cell, events) for name, cell in events.statistics(raw).items()},
        "op_types": _objects([shown_operators(list(fact.op_types)) for fact in facts]),
        "delegate_debug_identifier": _objects(identifiers),
        "stack_traces": _objects([dict(fact.stack_traces) for fact in facts]),
        "module_hierarchy": _objects([dict(fact.module_hierarchy) for fact in facts]),
        "is_delegated_op": events.inner,
        "delegate_backend_name": _objects([fact.backend for fact in facts]),
        "debug_data": _objects(events.logged_lists()),
        "start_time": _objects(events.start_lists()),
    }


def event_names(events: TraceEvents, identifiers: Sequence[int | str | None]) -> Column:
    """Return the names shown for the events of a block, as an array of texts."""
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
    # One by one: numpy would look into sequences to see whether they make a matrix.
    column = np.empty(len(items), dtype=object)
    for at, item in enumerate(items):
        column[at] = item
    return column


def _cells(events: Sequence[Event]) -> dict[str, Any]:
    rows = [event.asdict() for event in events]
    keys = rows[0] if rows else Event("").asdict()
    return {key: _objects([_cell(row[key]) for row in rows]) for key in keys}


def _cell(value: object) -> object:
    # asdict wraps containers in a list
    return cast("list[object]", value)[0] if isinstance(value, list) else value


def metadata_frame(events: Sequence[Event]) -> DataFrame | None:
    """Return one row an event of what backends attached, None when nothing is.

    Raises: ValueError if a parser returned neither a list nor a dictionary
    """
    pd = load_pandas()
    sources = _with_metadata(events)
    if not any(sources):
        return None
    rows = [_metadata_row(event) for event in sources]
    return pd.DataFrame(rows) if any(len(row) for row in rows) else None


def _with_metadata(events: Sequence[Event]) -> list[Event | None]:
    if not isinstance(events, TraceEvents):
        return list(events)
    parsed = events.inner if events.parser is not None else np.zeros(len(events), dtype=np.bool_)
    shown = [bool(parsed[at]) or bool(events.metadata(at)) for at in range(len(events))]
    return [events[at] if wanted else None for at, wanted in enumerate(shown)]


def _metadata_row(event: Event | None) -> Pandas:
    pd = load_pandas()
    metadata: Pandas = event.delegate_debug_metadatas if event is not None else []
    if not metadata:
        return pd.Series()
    if isinstance(metadata, list):
        return pd.Series([metadata], index=[METADATA_COLUMN])
    if isinstance(metadata, dict):
        return pd.Series(metadata)
    raise ValueError(f"Unexpected type for delegate_debug_metadata: {type(metadata)}")
