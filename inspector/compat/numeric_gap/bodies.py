"""Rows of the documented table for branches and loops: the nodes inside of them.

An instruction of a body is the node that the record names for it. Without such a name, the
calls of an operator are its nodes in the order in which the reference executed them, if both
have equal counts. A branch or loop returns the values of its body.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from inspector.files.session import Session
from inspector.join import record_maps
from inspector.numerics.flat_graph import FlatGraph, FlatNode, Scope, Value, flat_graph, inner_name
from inspector.rebuild.torch_bridge import load_torch
from inspector.trace.event_kinds import DELEGATE_CALL, KERNEL_PREFIX, OPERATOR_CALL
from schema.graph import Graph, NodeKind

if TYPE_CHECKING:
    from inspector.compat.devtools.event import Event

Executed = Mapping[Value, Sequence[Any]]
"""Value of a nested graph -> values of the reference, pass by pass."""
_SCOPES = (DELEGATE_CALL, OPERATOR_CALL)
_LOOP, _MAP, _SCAN = "while_loop", "map_impl", "scan"
_SLICE = "select_copy"


@dataclass(frozen=True, slots=True)
class BodyRow:
    """A node of a body, or a branch or loop, on both sides.

    Attributes:
        handles: its debug handles
        nodes: its name
        operators: kernels of the run
        traces: stack trace by node
        recorded: value of the reference, passes stacked
        found: logged value
    """

    handles: tuple[int, ...]
    nodes: list[str]
    operators: list[str]
    traces: dict[str, str | None]
    recorded: Any
    found: Any


def has_bodies(graph: Graph | None) -> bool:
    """Return whether a recorded graph has branches or loops."""
    return graph is not None and any(node.kind is NodeKind.CONTROL for node in graph.nodes)


def body_rows(
    session: Session, method: str, events: Sequence[Event], executed: Executed
) -> Iterator[BodyRow]:
    """Yield a row for each node of a body that the run logged, and for what bodies return.

    Args:
        session: with a record
        method: name of the method
        events: of its runs
        executed: values of nested graphs and of nodes with such graphs in the reference
    """
    record = session.record
    graph = record_maps.edge_graph(record, method) if record is not None else None
    if record is None or graph is None or not has_bodies(graph):
        return
    flat = flat_graph(graph)
    bodies = _Bodies(flat, executed)
    bodies.take(_own_events(flat, events), record_maps.origins(record, method).nodes)
    yield from bodies.rows()


def _own_events(flat: FlatGraph, events: Sequence[Event]) -> list[Event]:
    """Return the calls of kernels outside the outermost graph, in program order."""
    outer = {node.node.debug_handle for node in flat.nodes if not node.scope}
    found = [
        event
        for event in events
        if event.name not in _SCOPES
        and len(event.debug_data)
        and event.instruction_id is not None
        and event.delegate_debug_identifier is None
        and outer.isdisjoint(_handles(event))
    ]
    return sorted(found, key=lambda event: event.instruction_id or 0)


def _handles(event: Event) -> tuple[int, ...]:
    handles = event.debug_handles
    return () if handles is None else (handles,) if isinstance(handles, int) else tuple(handles)


class _Bodies:
    """Results of a run in nested graphs, by value; reported node by node, innermost first."""

    def __init__(self, flat: FlatGraph, executed: Executed) -> None:
        self._flat = flat
        self._executed = executed
        self._found: dict[Value, list[Any]] = {}
        self._called: dict[Value, str] = {}
        self._nodes = {(node.scope, node.node.name): node for node in flat.nodes}

    def take(self, events: Sequence[Event], origins: Mapping[int, str]) -> None:
        """Map each event to its node or slice."""
        names = {"/".join((*scope, name)): (scope, name) for scope, name in self._executed}
        left: dict[str, list[Event]] = {}
        for event in events:
            place, stem = names.get(origins.get(event.instruction_id or 0, "")), _stem(event.name)
            node = self._nodes.get(place) if place is not None else None
            if place is not None and node is not None and node.operator.endswith(f"::{stem}"):
                self._put(place, event)
            else:  # none is named, or it is the loop that an instruction was added for
                left.setdefault(stem, []).append(event)
        for stem, several in left.items():
            nodes = [
                (node.scope, node.node.name)
                for node in self._flat.nodes
                if node.scope and node.operator.endswith(f"::{stem}")
            ]
            nodes = [one for one in nodes if one in self._executed and one not in self._found]
            slices = self._slices() if stem == _SLICE else []
            if len(several) == len(nodes) + len(slices):
                for place, event in zip([*nodes, *slices], several, strict=True):
                    self._put(place, event)

    def _slices(self) -> list[Value]:
        """Return the inputs of bodies that are passed one row at a time."""
        found: list[Value] = []
        for node in self._flat.nodes:
            body = self._body(node, 0)
            if body is None or not node.operator.endswith((_MAP, _SCAN)):
                continue
            scope, carried = (*node.scope, inner_name(node.node.name, 0)), 0
            if node.operator.endswith(_SCAN):
                carried = len(node.node.args[1].values)
            rows = len(node.node.args[2 if carried else 1].values)
            found += [(scope, name) for name in body.inputs[carried : carried + rows]]
        return [value for value in found if value in self._executed]

    def _put(self, place: Value, event: Event) -> None:
        """Keep the value logged by an event if it has as many passes and the same sizes."""
        recorded, logged = self._executed[place], list(event.debug_data)
        passes = len(recorded)
        if not passes or len(logged) % passes:
            return
        width = len(logged) // passes
        rows = [logged[at : at + width] for at in range(0, len(logged), width)]
        logged_passes = [row[0] if width == 1 else tuple(row) for row in rows]
        if all(_alike(a, b) for a, b in zip(recorded, logged_passes, strict=True)):
            self._found[place] = logged_passes
            self._called[place] = event.name

    def rows(self) -> Iterator[BodyRow]:
        """Yield values known on both sides; nodes with bodies follow the nodes inside."""
        for node in reversed(self._flat.nodes):  # a body is behind its node there
            if node.node.kind is NodeKind.CONTROL:
                self._return(node)
        for place, passes in self._found.items():
            node = self._nodes.get(place)
            name = place[1] if node is None else node.node.name
            handle = node.node.debug_handle if node is not None else self._handle_of(place[0])
            recorded = self._executed[place]
            yield BodyRow(
                (handle,) if handle else (),
                [name],
                [self._called[place]],
                {name: node.node.stack_trace or None if node is not None else None},
                _stacked(recorded),
                _stacked(passes),
            )

    def _handle_of(self, scope: Scope) -> int | None:
        owner = self._nodes.get((scope[:-1], scope[-1].rpartition("/")[0]))
        return None if owner is None else owner.node.debug_handle

    def _body(self, node: FlatNode, number: int) -> Graph | None:
        return self._flat.graphs.get((*node.scope, inner_name(node.node.name, number)))

    def _return(self, node: FlatNode) -> None:
        """Store the result of a node with bodies if all of it was logged."""
        place = (node.scope, node.node.name)
        if place not in self._executed or len(self._executed[place]) != 1:
            return  # within another loop: which of its passes returned what is not kept
        kind = node.operator.rpartition("::")[2]
        for number in range(len(node.node.subgraphs)):
            body = self._body(node, number)
            scope = (*node.scope, inner_name(node.node.name, number))
            if body is None or (kind == _LOOP and number == 0):
                continue
            outputs = [self._found.get((scope, name)) for name in body.outputs]
            if not outputs or any(passes is None for passes in outputs):
                continue
            known = cast("list[list[Any]]", outputs)
            carried = len(node.node.args[1].values) if kind == _SCAN else len(known)
            stacks = kind in (_MAP, _SCAN)
            results = [
                _stack(passes) if stacks and (kind == _MAP or at >= carried) else passes[-1]
                for at, passes in enumerate(known)
            ]
            value = results[0] if len(results) == 1 else tuple(results)
            if _alike(self._executed[place][0], value):
                self._found[place], self._called[place] = [value], node.operator


def _alike(recorded: Any, found: Any) -> bool:  # noqa: ANN401 - tensors, or several
    if isinstance(recorded, (tuple, list)):
        items = cast("Sequence[Any]", recorded)
        if len(items) == 1 and not isinstance(found, tuple):
            return _alike(items[0], found)
        several = cast("Sequence[Any]", found) if isinstance(found, tuple) else ()
        return len(items) == len(several) and all(map(_alike, items, several))
    return hasattr(recorded, "shape") and getattr(found, "shape", None) == recorded.shape


def _stacked(passes: Sequence[Any]) -> Any:  # noqa: ANN401 - a tensor, or several
    """Return the passes stacked as one value; a single pass is returned unchanged."""
    first = passes[0]
    if isinstance(first, (tuple, list)):
        columns = list(zip(*passes, strict=True))
        parts = [_stacked(column) for column in columns]
        return parts[0] if len(parts) == 1 else tuple(parts)
    return first if len(passes) == 1 else _stack(passes)


def _stack(passes: Sequence[Any]) -> Any:  # noqa: ANN401 - a tensor
    return load_torch().stack(list(passes))


def _stem(event: str) -> str:
    return event.removeprefix(KERNEL_PREFIX).split(".")[0]
