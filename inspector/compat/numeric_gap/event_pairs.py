"""Pairs of recorded value and value of the run for each event, where groups of handles fail.

Without a program, an event is identified by its handle, its operator and its position among events
of that operator; the outputs of a delegate by the values that other nodes read. Ambiguous events
are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from inspector.compat.numeric_gap.groups import handles_of
from inspector.compat.numeric_gap.recorded import EXPORTED, NodeValue, Recorded
from inspector.files.session import Session
from inspector.join import record_maps
from inspector.numerics.aten_map import aten_values
from inspector.numerics.flat_graph import FlatGraph, Value, flat_graph
from inspector.numerics.join_facts import innermost, leaving_values, taken_nodes
from inspector.trace.event_kinds import DELEGATE_CALL, KERNEL_PREFIX

if TYPE_CHECKING:
    from inspector.compat.devtools.event import Event

Pair = tuple["Event", Any, Any]


def event_pairs(
    session: Session, method: str, events: Sequence[Event], found: Recorded
) -> Iterator[Pair]:
    """Yield event, recorded value and value of the run, event by event.

    Args:
        session: with a record
        method: name of the method
        events: of its runs, without events that only contain others
        found: values of the reference
    """
    assert session.record is not None
    graph = record_maps.edge_graph(session.record, method)
    if graph is None:
        return
    flat = flat_graph(graph)
    places = aten_values(session.record, flat) if found.name == EXPORTED else None
    values = _Values(flat, places, found)
    calls = sorted(record_maps.delegates(session.record, method))
    taken, _ = taken_nodes(session, method, flat, calls)
    delegated = {node.place for nodes in taken.values() for node in nodes}
    yield from _kernel_pairs(flat, delegated, events, values)
    for event in events:
        nodes = taken.get(-1 if event.instruction_id is None else event.instruction_id)
        if event.name == DELEGATE_CALL and nodes is not None:
            leaving = [innermost(flat, nodes, each) for each in leaving_values(flat, nodes)]
            yield from _delegate_pairs(event, leaving, values)


class _Values:
    """The reference's values by value of the edge graph."""

    def __init__(
        self,
        flat: FlatGraph,
        places: Mapping[Value, tuple[tuple[str, ...], str, int]] | None,
        found: Recorded,
    ) -> None:
        self._flat = flat
        self._places = places
        self._by_name: dict[str, NodeValue] = {
            node.name: node for nodes in found.nodes.values() for node in nodes
        }

    def of(self, value: Value) -> Any:  # noqa: ANN401 - a tensor, or None
        """Return the reference's result for a value, or None."""
        if self._places is None:
            maker = self._flat.producers.get(value)
            name, index = (maker[0].node.name, maker[1]) if maker is not None else ("", 0)
        else:
            _, name, index = self._places.get(value, ((), "", 0))
        node = self._by_name.get(name)
        if node is None:
            return None
        held: object = node.value
        if isinstance(held, (list, tuple)):
            parts = cast("Sequence[Any]", held)
            return parts[index] if index < len(parts) else None
        return held


def _kernel_pairs(
    flat: FlatGraph, delegated: set[int], events: Sequence[Event], values: _Values
) -> Iterator[Pair]:
    alike: dict[tuple[tuple[int, ...], str], list[Event]] = {}
    for event in events:
        if event.name != DELEGATE_CALL and len(event.debug_data):
            alike.setdefault((handles_of(event), _stem(event.name)), []).append(event)
    for (handles, stem), members in alike.items():
        nodes = [
            node
            for node in flat.nodes
            if node.node.debug_handle in handles
            and node.place not in delegated
            and node.operator.endswith(f"::{stem}")
        ]
        runs = len(members) // max(len(nodes), 1)
        if not nodes or len(members) != runs * len(nodes):
            continue
        for event, node in zip(members, nodes, strict=False):
            recorded = [values.of(value) for value in node.writes]
            pair = _side_by_side(recorded, _flattened(event.debug_data))
            if pair is not None:
                yield event, *pair


def _delegate_pairs(event: Event, leaving: Sequence[Value], values: _Values) -> Iterator[Pair]:
    logged = _flattened(event.debug_data)
    outputs = logged[len(logged) - event.num_outputs :]
    recorded = [values.of(value) for value in leaving]
    for output in outputs:
        fitting = [value for value in recorded if value is not None and _alike(value, output)]
        exact = [value for value in fitting if value.shape == output.shape]
        fitting = exact if len(exact) == 1 else fitting
        if len(fitting) == 1:
            yield event, fitting[0], output


def _side_by_side(recorded: Sequence[Any], logged: Sequence[Any]) -> tuple[Any, Any] | None:
    if len(recorded) != len(logged) or any(value is None for value in recorded):
        return None
    if not all(_alike(a, b) for a, b in zip(recorded, logged, strict=True)):
        return None
    pairs = zip(recorded, logged, strict=True)
    shaped = [a if a.shape == b.shape else a.reshape(b.shape) for a, b in pairs]
    if len(recorded) == 1:
        return shaped[0], logged[0]
    return tuple(shaped), tuple(logged)


def _flattened(values: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        found += cast("Sequence[Any]", value) if isinstance(value, (list, tuple)) else [value]
    return found


def _alike(a: Any, b: Any) -> bool:  # noqa: ANN401 - tensors, or what is missing
    return hasattr(a, "numel") and hasattr(b, "numel") and a.numel() == b.numel()


def _stem(event: str) -> str:
    return event.removeprefix(KERNEL_PREFIX).split(".")[0]
