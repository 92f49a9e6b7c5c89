"""The join maps of a record, method by method, with the gaps of old releases filled in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from schema.errors import FormatError
from schema.etrecord import ETRecord
from schema.graph import Graph
from schema.identity_cache import identity_cache


@dataclass(frozen=True, slots=True)
class DelegateEntry:
    """The record's map of one delegate call.

    Attributes:
        name: backend id
        ids: the backend's own ids, as text -> debug handles
    """

    name: str
    ids: Mapping[str, tuple[int, ...]]


def handles(record: ETRecord, method: str) -> Mapping[int, tuple[int, ...]]:
    """Return instruction -> debug handles of a method; empty when the record has none."""
    return record.debug_handle_map.get(method, {})


@identity_cache
def delegates(record: ETRecord, method: str) -> Mapping[int, DelegateEntry]:
    """Return instruction -> delegate entry of a method; empty when the record has none."""
    entries = record.delegate_map.get(method, {})
    return {number: DelegateEntry(entry.backend_id, entry.ids) for number, entry in entries.items()}


def output_counts(record: ETRecord, method: str) -> Mapping[int, int]:
    """Return instruction -> number of outputs of delegate calls."""
    return record.instruction_id_to_num_outs_map.get(method, {})


def only_method(record: ETRecord) -> str | None:
    """Return the method of a record that has one, None when there are several."""
    names = tuple(record.debug_handle_map) or tuple(record.methods())
    return names[0] if len(names) == 1 else None


def edge_graph(record: ETRecord, method: str) -> Graph | None:
    """Return the recorded edge graph of a method, None when it is missing or unreadable."""
    return _graph(record, f"edge_dialect_exported_program/{method}") or (
        _graph(record, "edge_dialect_exported_program") if method == "forward" else None
    )


def aten_graph(record: ETRecord) -> Graph | None:
    """Return the recorded ATen graph, None when it is missing or unreadable."""
    return _graph(record, "exported_program")


@identity_cache
def _graph(record: ETRecord, name: str) -> Graph | None:
    if name not in record.programs():
        return None
    try:
        return record.graph(name)
    except FormatError:
        return None
