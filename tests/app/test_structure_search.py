"""Text search in the structure view: every line is found, in order, opened only as needed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from devtools_app.viewmodels.structure_search import Way, find_before, find_next
from devtools_app.views.structure import StructurePane
from inspector.structure.node import StructureNode
from inspector.tables.filter import parse_filter
from inspector.tables.table import Table
from tests.app.sessions import opened
from tests.app.view_bench import Bench

TREES = st.recursive(
    st.sampled_from(["hit", "miss"]),
    lambda inside: st.lists(inside, max_size=4),
    max_leaves=25,
)
HIT = parse_filter("hit", Table())


def _node(spec: object) -> StructureNode:
    if isinstance(spec, str):
        return StructureNode(spec)
    assert isinstance(spec, list)
    return StructureNode("miss", opens=lambda: tuple(map(_node, spec)))


def _all(nodes: tuple[StructureNode, ...], above: Way = ()) -> list[tuple[Way, bool]]:
    found: list[tuple[Way, bool]] = []
    for row, node in enumerate(nodes):
        way = (*above, row)
        found.append((way, node.name == "hit"))
        found += _all(node.children(), way)
    return found


@given(st.lists(TREES, min_size=1, max_size=4), st.integers(0, 100))
def test_find_next_and_before_walk_all_matches_in_the_order_shown(specs: list, at: int) -> None:
    nodes = tuple(map(_node, specs))
    lines = _all(nodes)
    hits = [way for way, hit in lines if hit]
    start = lines[at % len(lines)][0]
    after = [way for way in hits if way > start] + hits
    before = [way for way in hits if way < start] or hits
    assert find_next(nodes, HIT, start).way == (after[0] if after else ())
    assert find_before(nodes, HIT, start).way == (before[-1] if before else ())


def test_find_next_opens_nothing_before_the_start() -> None:
    def never() -> tuple[StructureNode, ...]:
        raise AssertionError("opened")

    nodes = (StructureNode("a", opens=never), StructureNode("b"), StructureNode("hit"))
    assert find_next(nodes, HIT, (1,)).way == (2,)


def test_find_next_stops_after_so_many_lines_and_says_so() -> None:
    def more() -> tuple[StructureNode, ...]:
        return (StructureNode("miss", opens=more),)

    found = find_next((StructureNode("miss", opens=more),), HIT, (), most=40)
    assert not found.way
    assert not found.complete


def test_structure_view_goes_to_the_lines_that_are_searched_for(qtbot) -> None:
    bench = Bench(qtbot, StructurePane)
    bench.open(opened("corpus/v1.5.1/mm_portable/model.pte"))
    pane = bench.pane
    assert isinstance(pane, StructurePane)
    pane.start_find()
    pane.search.setText("execution_plan")
    seen: list[Way] = []
    for _ in range(2):
        pane.seek(1)
        qtbot.waitUntil(lambda: not pane.finding)
        index = pane.tree.currentIndex()
        node = pane.model.node(index)
        assert node is not None
        assert "execution_plan" in node.name + node.type + node.text
        seen.append(pane.model.way_to(index))
    pane.search.setText("nothing is called so")
    pane.seek(-1)
    qtbot.waitUntil(lambda: not pane.finding)
    assert pane.note.text() == "nothing found"
    assert pane.model.way_to(pane.tree.currentIndex()) == seen[-1]
