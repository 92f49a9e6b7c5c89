"""The tensors that belong to the selection of any view."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from devtools_app.viewmodels.scene_search import related_to
from inspector.files.session import Session
from inspector.graph.delegate_inside import inside_of
from inspector.graph.model_graph import (
    COMPILED,
    ModelGraph,
    ModelNode,
    graph_names,
    model_graph,
)
from inspector.profile.join_index import JoinIndex, Related, join_index
from inspector.profile.operator_columns import INNER, KINDS
from inspector.profile.operator_rows import operator_rows
from inspector.tables.selection import Selection, SelectionKind
from inspector.tensors.sources import TensorSource, session_tensors


def may_have_tensors(session: Session, selection: Selection) -> bool:
    """Return whether a selection is of a kind that has tensors; reads nothing."""
    stored = session.record is not None and session.record.weights is not None
    if selection.kind is SelectionKind.PART:
        return session.program is not None or bool(session.external) or stored
    known = session.program is not None or session.debug_buffer is not None
    return bool(selection) and (known or stored)


def selected_tensors(
    session: Session, method: str, selection: Selection
) -> tuple[TensorSource, ...]:
    """Return the tensors of a selection: its constants first, then what was logged of it."""
    known = session_tensors(session)
    if not selection:
        return ()
    if selection.kind is SelectionKind.PART:
        return tuple(_inside(session, known, selection.part))
    method = selection.method or method
    if selection.kind is SelectionKind.VALUE:
        return tuple(one for one in known if _is_value(one, method, selection.value))
    index = join_index(session, method)
    related = related_to(selection, index)
    if selection.kind is SelectionKind.DELEGATE:
        own = [one for one in known if one.delegate in related.delegates and one.method == method]
        return (*own, *_logged(known, related))
    delegated = _delegated(index, related)
    own = {node.name.rsplit("/", 1)[-1] for node in delegated}
    own |= _payload_nodes(session, method, selection)
    if own:
        keys = _payload_keys(session, method, delegated)
        constants = (one for one in known if one.key in keys)
        return (*constants, *(one for one in _logged(known, related) if one.nodes & own))
    stored = [
        one
        for one in known
        if one.origin != "logged"
        and one.value in related.reads
        and _is_value(one, method, one.value)
    ]
    found = (*stored, *_logged(known, related))
    return found or tuple(_exported(session, known, method, selection))


def exported_graph(session: Session, method: str, selection: Selection) -> ModelGraph | None:
    """Return the graph of a node that was only exported; None for any other selection."""
    if selection.graph == COMPILED or selection.graph not in graph_names(session, method):
        return None
    graph = model_graph(session, method, selection.graph)
    return graph if graph is not None and selection.node in graph.by_name else None


def _exported(
    session: Session, known: tuple[TensorSource, ...], method: str, selection: Selection
) -> Iterator[TensorSource]:
    """Return the weights of a node that was only exported."""
    graph = exported_graph(session, method, selection)
    if graph is None:
        return
    node = graph.nodes[graph.by_name[selection.node]]
    names = {weight.name for weight in node.weights}
    yield from (one for one in known if one.origin == "recorded" and one.name in names)


def _is_value(one: TensorSource, method: str, value: int | None) -> bool:
    return value is not None and one.value == value and one.method == method


def _logged(known: tuple[TensorSource, ...], related: Related) -> Iterator[TensorSource]:
    for one in known:
        if one.origin == "logged" and one.instruction in related.instructions:
            yield one


def _delegated(index: JoinIndex, related: Related) -> list[ModelNode]:
    """Return the selected nodes where all are inside of delegates, else none."""
    graph = index.graph
    if graph is None:
        return []
    nodes = [graph.nodes[graph.by_name[name]] for name in related.nodes if name in graph.by_name]
    return nodes if all(node.delegate is not None for node in nodes) else []


def _payload_nodes(session: Session, method: str, selection: Selection) -> set[str]:
    """Return the nodes of a payload that a selected event covers; some are in no record."""
    if selection.kind is not SelectionKind.EVENT or selection.event is None:
        return set()
    rows = operator_rows(session, method).of_events((selection.event,))
    return {name for row in rows if row.kind == KINDS[INNER] for name in row.link.payload_nodes}


def _payload_keys(session: Session, method: str, nodes: Sequence[ModelNode]) -> frozenset[str]:
    """Return the keys of the constants that nodes of delegates read."""
    return frozenset(
        f"{method}/delegate {inside.delegate}/{value.value.name}"
        for node in nodes
        for inside in inside_of(session, method, node)
        for value in inside.values
        if value.constant is not None
    )


def _inside(session: Session, known: tuple[TensorSource, ...], part: str) -> Iterator[TensorSource]:
    """Return the tensors whose bytes lie in a part of a file, ``PATH@OFFSET+BYTES``."""
    path, _, place = part.rpartition("@")
    offset, _, size = place.partition("+")
    data = next((file.data for file in session.files if file.path == path), None)
    if data is None or not (offset.isdigit() and size.isdigit()) or not len(data):
        return
    start = _address(data) + int(offset)
    for one in known:
        if one.data is not None and len(one.data):
            at = _address(one.data)
            if start <= at and at + len(one.data) <= start + int(size):
                yield one


def _address(data: memoryview) -> int:
    return int(np.frombuffer(data, np.uint8).ctypes.data)
