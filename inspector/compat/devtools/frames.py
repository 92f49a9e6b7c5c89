"""DataFrames of events, built column by column, with the dtypes of joining row by row.

The stock tool creates a frame of each event and concatenates them; pandas' missing cells then
depends on its release. One row of each kind is therefore joined the same way here, and the columns
take the types that come out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from inspector.compat.devtools.event import Event
from inspector.compat.devtools.event_cells import event_cells
from inspector.compat.devtools.trace_events import TraceEvents
from inspector.export.pandas_bridge import DataFrame, Pandas, joined, load_pandas

BLOCK_COLUMN = "event_block_name"
METADATA_COLUMN = "delegate_debug_metadata"


def events_frame(name: str, events: Sequence[Event], units: str) -> DataFrame:
    """Return one row per event.

    Args:
        name: of the block
        events: the events of a trace, or any others
        units: put behind the names of the time columns
    """
    pd = load_pandas()
    cells = event_cells(events)
    columns = {_titled(key, units): column for key, column in cells.columns.items()}
    rows = [events[index].to_dataframe(units) for index in cells.kinds]
    types: Pandas = joined(rows).dtypes if rows else {}
    typed = {key: pd.Series(cell, dtype=types.get(key, object)) for key, cell in columns.items()}
    frame = pd.DataFrame(typed)
    frame.insert(0, BLOCK_COLUMN, np.asarray([name] * len(events)), allow_duplicates=True)
    return frame


def _titled(key: str, units: str) -> str:
    return f"{key}{units}" if key in ("p10", "p50", "p90", "avg", "min", "max") else key


def metadata_frame(events: Sequence[Event]) -> DataFrame | None:
    """Return one row per event of the metadata of backends, None without any.

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
    return [events[at] if requested else None for at, requested in enumerate(shown)]


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
