"""Keys and facts made on access are found like those that exist."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from itertools import pairwise

import pytest

from inspector.files.session import Session
from inspector.graph.instruction_facts import InstructionFacts
from inspector.graph.model_graph import model_graph
from inspector.graph.node_text import operator_title, value_text
from inspector.graph.plan_graph import plan_graph
from inspector.join.int_maps import RunMap, run_map
from inspector.join.operands import delegate_output_counts, plan_operands
from inspector.memory.plan import plan_memory
from inspector.numerics.traced import instruction_outputs
from inspector.profile.join_index import StepsOfNodes, join_index
from inspector.roofline.method_work import method_work
from inspector.roofline.rows import Limits, roofline
from inspector.tables.partitions import partitions
from inspector.tables.roofline import roofline_table, row_selection
from inspector.tables.selection import AUTOMATIC, Selection, SelectionKind
from inspector.tables.table import Table
from schema.graph import NodeKind
from tests.app.sessions import chain_session, folders, opened


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


def test_groups_without_members_have_a_place() -> None:
    places = RunMap([0, 1, 1, 4], range(4))
    assert dict(places) == {0: (0,), 1: (), 2: (1, 2, 3)}
    assert dict(run_map(["a", "", "bcd"])) == {0: ("a",), 1: (), 2: ("b", "c", "d")}
    assert places.get(3) is None
    assert places.get(-1) is None


@pytest.mark.parametrize("folder", folders())
def test_instructions_lead_to_their_nodes_and_back(folder: str) -> None:
    session = opened(folder)
    for method in session.methods:
        index = join_index(session, method)
        back: dict[str, list[int]] = {}
        for step, names in index.instruction_nodes.items():
            for name in names:
                back.setdefault(name, []).append(step)
        assert {name: list(steps) for name, steps in index.node_instructions.items()} == back
        assert index.node_instructions.get("no such node", ()) == ()
        for node in index.graph.nodes if index.graph is not None else ():
            assert node.instruction in (None, *index.node_instructions.get(node.name, ()))


def test_instructions_far_apart_take_no_room() -> None:
    by_step = {1 << 40: ("b", "a"), 2: ("a",)}
    steps = StepsOfNodes({"a": 0, "none": 1, "b": 2}, by_step)
    assert dict(steps) == {"a": (1 << 40, 2), "b": (1 << 40,)}
    assert len(steps) == 2
    assert "none" not in steps


def test_facts_of_all_instructions_share_their_texts() -> None:
    session = chain_session(400)
    program = session.program
    assert program is not None
    plan = program.plan("forward")
    graph = plan_graph(program, "forward")
    calls = [node for node in graph.nodes if node.kind is NodeKind.CALL]
    outputs = instruction_outputs(program, "forward")
    planned = [one for arena in plan_memory(plan).arenas for one in arena.values]
    operators = [
        *(node.target for node in calls),
        *(one.operator for one in outputs),
        *(one.operator for one in planned if one.operator),
    ]
    labels = [one.label for one in method_work(session, "forward").operators]
    titles = [operator_title(node.target) for node in calls]
    types = [value_text(graph.values[node.outputs[0]]) for node in calls]
    for texts in (operators, labels, titles, types):
        assert len(texts) >= len(calls) == 400
        assert len(set(map(id, texts))) == len(set(texts))
    names = {one.name: id(one.name) for one in planned}
    assert all(names[name] == id(name) for name in graph.values if name in names)


def test_operands_of_a_plan_are_there_once() -> None:
    session = chain_session(400)
    program = session.program
    assert program is not None
    plan = program.plan("forward")
    found = plan_operands(plan)
    assert plan_operands(plan, delegate_output_counts(program, plan)) is found
    assert all(later.reads is earlier.writes for earlier, later in pairwise(found))
