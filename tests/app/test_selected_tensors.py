"""A node inside a delegate has its own constants and values, not those of the whole call."""

from __future__ import annotations

import pytest

from devtools_app.sample_data import LOOP
from devtools_app.viewmodels.selected_tensors import selected_tensors
from inspector.files.load import load_session
from inspector.files.session import Session
from inspector.graph.model_graph import COMPILED, model_graph
from inspector.profile.operator_columns import INNER, KINDS
from inspector.profile.operator_rows import operator_rows
from inspector.tables.selection import Selection, SelectionKind
from inspector.tensors.sources import TensorSource, session_tensors

METHOD = "forward"


@pytest.fixture(scope="module", params=[LOOP[:2], LOOP[2:]], ids=["before", "changed"])
def session(request: pytest.FixtureRequest) -> Session:
    return load_session(list(request.param))


def _of_node(session: Session, name: str) -> tuple[TensorSource, ...]:
    return selected_tensors(session, METHOD, Selection(SelectionKind.NODE, METHOD, COMPILED, name))


def test_a_node_of_a_delegate_has_its_own_values(session: Session) -> None:
    graph = model_graph(session, METHOD)
    assert graph is not None
    inside = [node for node in graph.nodes if node.delegate is not None]
    steps = {one.instruction for one in session_tensors(session) if one.origin == "logged"}
    found = {node.name: _of_node(session, node.name) for node in inside}
    logged = {name: [one for one in own if one.origin == "logged"] for name, own in found.items()}
    assert sum(map(bool, logged.values())) > len(inside) / 2
    for name, own in logged.items():
        assert all(name in one.nodes and one.instruction in steps for one in own)
        assert len(own) <= 2  # inside of the delegate, and as the result of its call
    both = [own for own in found.values() if len({one.origin for one in own}) > 1]
    assert both  # weights do not hide what was logged


def test_all_that_was_logged_of_shown_nodes_belongs_to_them(session: Session) -> None:
    chosen = _selections(session)
    found = {one.key for each in chosen for one in selected_tensors(session, METHOD, each)}
    nodes = {each.node for each in chosen if each.node}
    own = [one for one in session_tensors(session) if one.origin == "logged" and one.nodes & nodes]
    assert own
    assert {one.key for one in own} <= found


def test_an_event_of_no_recorded_node_has_its_own_value(session: Session) -> None:
    for row in operator_rows(session, METHOD):
        if row.kind == KINDS[INNER] and row.link.inserted:
            chosen = Selection(SelectionKind.EVENT, METHOD, event=row.event)
            found = selected_tensors(session, METHOD, chosen)
            assert len(found) <= 2
            assert all(one.nodes & set(row.link.payload_nodes) for one in found)


def _selections(session: Session) -> list[Selection]:
    graph = model_graph(session, METHOD)
    assert graph is not None
    events = [row.event for row in operator_rows(session, METHOD) if row.event is not None]
    return [
        *(Selection(SelectionKind.NODE, METHOD, COMPILED, one.name) for one in graph.nodes),
        *(Selection(SelectionKind.EVENT, METHOD, event=event) for event in events),
    ]
