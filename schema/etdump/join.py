"""Joins the events of several tables, of one trace or of many, into one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from schema.etdump.events import COLUMNS, Array, Blobs, EventStore, store_of
from schema.etdump.table import EventTable
from schema.etdump.values import DebugValues


def joined(tables: Sequence[EventTable]) -> EventTable:
    """Return the events of all tables as one; costs nothing for adjacent tables of one trace."""
    if not tables:
        return _whole(store_of({"kind": np.zeros(0, dtype=np.int8)}))
    stores = {id(table.store): table.store for table in tables}
    if len(stores) > 1:
        return _whole(_merged(tables))
    store = tables[0].store
    if all(a.stop == b.start for a, b in pairwise(tables)):
        return EventTable(store, tables[0].start, tables[-1].stop)
    columns = {name: _stacked(tables, name) for name in COLUMNS}
    return _whole(store_of(columns, store.strings, store.blobs, store.values))


def _whole(store: EventStore) -> EventTable:
    return EventTable(store, 0, len(store.kind))


def _stacked(tables: Sequence[EventTable], name: str) -> Array:
    return np.concatenate([getattr(table, name) for table in tables])


def _merged(tables: Sequence[EventTable]) -> EventStore:
    columns = {name: _stacked(tables, name) for name in COLUMNS}
    texts: dict[str, int] = {}
    for table in tables:
        for text in table.strings:
            texts.setdefault(text, len(texts))
    for name in ("name", "delegate_id_str"):
        columns[name] = np.concatenate([_renumbered(table, name, texts) for table in tables])
    columns["metadata"] = _shifted(tables, "metadata", [len(table.blobs) for table in tables])
    columns["value"] = _shifted(tables, "value", [len(table.values) for table in tables])
    blobs = Blobs.of([blob for table in tables for blob in table.blobs])
    values = DebugValues.of(value for table in tables for value in table.values)
    return store_of(columns, tuple(texts), blobs, values)


def _renumbered(table: EventTable, name: str, texts: dict[str, int]) -> Array:
    # The index -1 of an absent entry picks the last one.
    numbers = np.array([texts[text] for text in table.strings] + [-1], dtype=np.int32)
    return numbers[getattr(table, name)]


def _shifted(tables: Sequence[EventTable], name: str, counts: list[int]) -> Array:
    shifts = np.cumsum([0, *counts[:-1]])
    parts = [getattr(table, name) for table in tables]
    return np.concatenate(
        [np.where(part < 0, -1, part + shift) for part, shift in zip(parts, shifts, strict=True)]
    )
