"""The documented table of numeric gaps: recorded values beside those of the run, by debug handle.

The pairs are those of the stock tool wherever its pairs have one shape. Where it would compare
tensors of different shapes, because several operators share a handle, each event has a row
instead, if its node is known. Results of several tensors are compared one by one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, cast
from weakref import WeakKeyDictionary

import numpy as np

from inspector.compat.devtools.numerical_comparator import (
    IntermediateOutputMapping,
    comparator,
    compared,
    compares_itself,
    is_several,
    preprocessed,
)
from inspector.compat.numeric_gap.bodies import body_rows
from inspector.compat.numeric_gap.event_pairs import event_pairs
from inspector.compat.numeric_gap.groups import (
    Handles,
    all_groups,
    group_pairs,
    handles_of,
    runtime_names,
)
from inspector.compat.numeric_gap.recorded import NodeValue, Recorded, copied, recorded_bytes
from inspector.compat.numeric_gap.recorded_values import recorded_values
from inspector.export.pandas_bridge import DataFrame, load_pandas
from inspector.trace.event_kinds import OPERATOR_CALL

if TYPE_CHECKING:
    from inspector.compat.devtools.etrecord import ETRecord
    from inspector.compat.devtools.event import Event
    from inspector.compat.devtools.event_block import EventBlock
    from inspector.files.session import Session

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


class Inspected(Protocol):
    """What is read of an Inspector (see ``inspector.compat.devtools.inspector``)."""

    session: Session
    event_blocks: list[EventBlock]
    etrecord: ETRecord | None


_KNOWN: WeakKeyDictionary[Inspected, dict[Any, Recorded]] = WeakKeyDictionary()


def numeric_gap(
    inspector: Inspected, distance: object, reference_graph: str | None, *, best_effort: bool
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
    frame = _frame(rows)
    frame.attrs["reference_graph"] = reference_graph or ""
    frame.attrs["inputs"] = ", ".join(dict.fromkeys(sources))
    return frame


def _frame(rows: Sequence[dict[str, Any]]) -> DataFrame:
    """Return rows as a table of objects; those of a comparator of its own keep their columns."""
    if any(tuple(row) != _COLUMNS for row in rows):
        return load_pandas().DataFrame(rows)
    cells = np.empty((len(rows), len(_COLUMNS)), dtype=object)  # 0.4 of the time of dicts
    for number, row in enumerate(rows):
        for place, cell in enumerate(row.values()):
            cells[number, place] = cell
    return load_pandas().DataFrame(cells, columns=_columns().copy())


@cache
def _columns() -> Any:  # noqa: ANN401 - pandas has no types here
    return load_pandas().Index(_COLUMNS)  # a twelfth of the time of a small table


def _body_rows(
    inspector: Inspected,
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


def _why_nothing(inspector: Inspected) -> str:
    """Return why all rows are missing."""
    events = [event for block in inspector.event_blocks for event in block.events]
    if not any(len(event.debug_data) for event in events):
        return "the trace has no values of operators; a run that logs intermediate outputs has them"
    return "no event with values is known to be a node of the recorded program"


def _recorded(
    inspector: Inspected, record: ETRecord, method: str, requested: str | None, *, best_effort: bool
) -> Recorded:
    """Return the values of the recorded program; it runs once for all distances if memory allows.

    Comparators and users may change the returned tensors.
    """
    known = _KNOWN.setdefault(inspector, {})
    key = (record, method, requested, best_effort)
    if key not in known:
        found = recorded_values(
            inspector.session, record, method, requested, best_effort=best_effort
        )
        if sum(map(recorded_bytes, (found, *known.values()))) > _MOST_BYTES:
            return found
        known[key] = found
    return copied(known[key])


def _by_method(inspector: Inspected) -> dict[str, list[Event]]:
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


def _rows(
    inspector: Inspected,
    method: str,
    measure: Any,  # noqa: ANN401 - duck-typed
    found: Recorded,
    events: Sequence[Event],
) -> list[dict[str, Any]]:
    events = [event for event in events if event.name != OPERATOR_CALL]
    names = runtime_names(events)
    pairs, whole = _grouped(found, events)
    if not whole:  # groups are ambiguous: event by event, as far as known
        single = event_pairs(inspector.session, method, events, found)
        pairs = [(handles_of(event), a, b) for event, a, b in single]
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
    """Return the pairs of groups, and whether the shapes in every pair agree."""
    groups = all_groups(events)
    by_handle = {handle: group for group in groups for handle in group.handles}
    pairs: list[tuple[Handles, Any, Any]] = []
    done: set[Handles] = set()
    whole = True
    for handle in found.nodes:
        group = by_handle.get(handle)
        if group is None or group.handles in done:
            continue
        done.add(group.handles)
        for pair in group_pairs(group, found):
            if pair is not None:
                pairs.append((group.handles, *pair))
            elif not isinstance(found.nodes[handle][-1].value, (list, tuple)):
                whole = False
    return pairs, whole


class _Known:
    """Index of nodes and events by handle: there are thousands of each.

    Args:
        found: values of the recorded program
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
        """Return the nodes with one of these handles, in program order."""
        there = sorted(handles & self._places.keys(), key=self._places.__getitem__)
        return [node for handle in there for node in self._found.nodes[handle]]

    def events(self, handles: set[int]) -> list[str]:
        """Return the names of events whose handles are all in a set, in their order."""
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
