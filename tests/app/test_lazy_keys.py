"""Keys and facts made on access are found like those that exist."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import pytest

from inspector.files.session import Session
from inspector.graph.instruction_facts import InstructionFacts
from inspector.graph.model_graph import model_graph
from inspector.graph.plan_graph import plan_graph
from inspector.roofline.method_work import StepPlaces
from inspector.roofline.rows import Limits, roofline
from inspector.tables.partitions import partitions
from inspector.tables.roofline import roofline_table, row_selection
from inspector.tables.selection import AUTOMATIC, Selection, SelectionKind
from inspector.tables.table import Table
from schema.graph import NodeKind
from tests.app.sessions import folders, opened


@pytest.mark.parametrize("folder", folders())
def test_every_key_is_found_in_its_first_row(folder: str) -> None:
    session = opened(folder)
    for method in session.methods:
        made = partitions(session, method)
        if made is not None:
            _check(made.tree.rows)
            _check_nodes(session, method, made.keys.row_of)
        found = roofline(session, method, Limits())
        table = roofline_table(found.rows, method, AUTOMATIC)
        _check(table)
        assert list(table.keys or ()) == [row_selection(row, method) for row in found.rows]


def _check(table: Table) -> None:
    keys = list(table.keys or ())
    first: dict[Hashable, int] = {}
    for row, key in enumerate(keys):
        first.setdefault(key, row)
    find = table.finder()
    assert len(keys) == table.length
    assert [find(key) for key in keys] == [first[key] for key in keys]
    for absent in (
        "no such row",
        Selection(SelectionKind.NODE, "none", "compiled", "none"),
        Selection(SelectionKind.EVENT, "none", event=1 << 40),
        Selection(SelectionKind.INSTRUCTION, "none", instruction=1 << 40),
        Selection(SelectionKind.DELEGATE, "none", delegate=1 << 40),
    ):
        assert find(absent) == -1


def _check_nodes(session: Session, method: str, row_of: Callable[[str], int]) -> None:
    graph = model_graph(session, method)
    made = partitions(session, method)
    assert made is not None
    for node in graph.nodes if graph is not None else ():
        row = row_of(node.name)
        if row >= 0:
            assert made.tree.rows.key(row) == Selection(
                SelectionKind.NODE, method, "compiled", node.name
            )
        else:
            assert node.node.kind in (NodeKind.PLACEHOLDER, NodeKind.OUTPUT)


@pytest.mark.parametrize("folder", folders())
def test_every_instruction_says_where_it_is(folder: str) -> None:
    session = opened(folder)
    if session.program is None:
        return
    for method in session.methods:
        nodes = plan_graph(session.program, method).nodes
        facts = [one.attributes for one in nodes if isinstance(one.attributes, InstructionFacts)]
        assert [one["instruction"] for one in facts] == list(range(len(facts)))
        for one in facts:
            assert dict(one) == {name: one[name] for name in one}
            assert one == dict(one)
            assert len(one) == len(dict(one))


def test_facts_of_instructions_are_those_of_a_dict() -> None:
    facts = InstructionFacts(3, 1, {"delegate": 0})
    assert facts == {"instruction": 3, "chain": 1, "delegate": 0}
    assert facts.get("destination") is None
    with pytest.raises(KeyError):
        facts["destination"]


def test_steps_without_operators_have_a_place() -> None:
    places = StepPlaces([0, 1, 1, 4])
    assert dict(places) == {0: (0,), 1: (), 2: (1, 2, 3)}
    assert places.get(3) is None
    assert places.get(-1) is None
