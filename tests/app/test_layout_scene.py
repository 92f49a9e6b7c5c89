"""Scenes, cluster trees, visible items, ranks and stubs, each on small graphs one can follow."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devtools_app.viewmodels.layout.cluster_tree import (
    cluster_tree,
    collapse,
    expand,
    expand_all,
    reveal,
    toggle,
)
from devtools_app.viewmodels.layout.engine import LayoutCache, lay_out
from devtools_app.viewmodels.layout.ranks import rank_items
from devtools_app.viewmodels.layout.scene_graph import (
    UNKNOWN_BYTES,
    SceneEdge,
    SceneGraph,
    SceneNode,
    default_size,
    scene_graph,
)
from devtools_app.viewmodels.layout.topology import CROWD, LONGEST_SPAN, WIDEST_FAN
from devtools_app.viewmodels.layout.visible import visible_items
from tests.app.layout_scenes import chain, opened_to_depth, scatter, transformer


def drawn(text: str, clusters: dict[str, str] | None = None) -> SceneGraph:
    """Return the scene of ``a>b b>c``; clusters name the dotted path of nodes."""
    edges = [pair.split(">") for pair in text.split() if ">" in pair]
    names = dict.fromkeys(name for word in text.split() for name in word.split(">"))
    places = clusters or {}
    nodes = [
        SceneNode(name, name, cluster=tuple(filter(None, places.get(name, "").split("."))))
        for name in names
    ]
    return scene_graph(nodes, [SceneEdge(a, b) for a, b in edges])


def test_scene_graph_doubled_name_is_refused() -> None:
    with pytest.raises(ValueError, match="more than once"):
        scene_graph([SceneNode("a", "a"), SceneNode("a", "b")])


def test_scene_graph_edge_to_nowhere_is_refused() -> None:
    with pytest.raises(KeyError):
        scene_graph([SceneNode("a", "a")], [SceneEdge("a", "b")])


@pytest.mark.parametrize(("shorter", "longer"), [("x", "y"), ("aten.add", "aten.mul")])
def test_default_size_similar_titles_get_equal_boxes(shorter: str, longer: str) -> None:
    assert default_size(shorter) == default_size(longer)


def test_default_size_long_text_gets_a_wider_box_up_to_a_limit() -> None:
    assert default_size("a" * 30)[0] > default_size("a")[0]
    assert default_size("a" * 500) == default_size("a" * 90)
    assert default_size("a", "b" * 40)[0] > default_size("a")[0]


def test_cluster_tree_counts_nodes_at_every_depth() -> None:
    tree = cluster_tree([("a",), ("a", "b"), (), ("a", "b"), ("c",)])
    by_path = {path: (int(tree.count[i]), int(tree.first[i])) for path, i in tree.index.items()}
    assert by_path == {(): (5, 0), ("a",): (3, 0), ("a", "b"): (2, 1), ("c",): (1, 4)}
    assert [tree.paths[int(i)] for i in tree.parent[1:]] == [(), ("a",), ()]


paths = st.lists(st.lists(st.sampled_from("abc"), max_size=4).map(tuple), min_size=1, max_size=20)


@given(paths, st.data())
def test_toggle_twice_shows_the_same_clusters_open(
    nodes: list[tuple[str, ...]], data: st.DataObject
) -> None:
    tree = cluster_tree(nodes)
    start = expand_all(tree)
    path = data.draw(st.sampled_from(tree.paths))
    if path:
        assert toggle(toggle(start, path), path) == start


def test_collapse_keeps_the_inside_unless_deep() -> None:
    expanded = frozenset({("a",), ("a", "b"), ("c",)})
    assert collapse(expanded, ("a",)) == {("a", "b"), ("c",)}
    assert collapse(expanded, ("a",), deep=True) == {("c",)}


def test_expand_opens_all_around() -> None:
    assert expand((), ("a", "b", "c")) == {("a",), ("a", "b"), ("a", "b", "c")}


def test_expand_all_below_one_cluster_leaves_others_closed() -> None:
    tree = cluster_tree([("a", "b", "c"), ("d", "e")])
    assert expand_all(tree, ("a",)) == {("a",), ("a", "b"), ("a", "b", "c")}


def test_reveal_shows_the_node() -> None:
    scene = transformer(2)
    node = scene.index["soft_1"]
    placed = lay_out(scene, reveal(scene.tree, (), node))
    assert np.isfinite(placed.boxes[node]).all()
    assert not np.isfinite(placed.boxes[scene.index["soft_0"]]).any()


# -- visible items


def edge_table(
    scene: SceneGraph, expanded: frozenset[tuple[str, ...]]
) -> dict[str, tuple[int, int]]:
    placed = lay_out(scene, expanded)
    return {
        f"{placed.title_of(a)}>{placed.title_of(b)}": (uses, nbytes)
        for (a, b), uses, nbytes in zip(
            placed.edges.tolist(),
            placed.edge_uses.tolist(),
            placed.edge_bytes.tolist(),
            strict=True,
        )
    }


def test_visible_edges_into_a_closed_cluster_are_gathered() -> None:
    nodes = [SceneNode("a", "a"), SceneNode("b", "b", cluster=("m",))]
    nodes += [SceneNode("c", "c", cluster=("m",)), SceneNode("d", "d")]
    edges = [
        SceneEdge("a", "b", "10 B", 10, value="t"),
        SceneEdge("a", "c", "10 B", 10, value="t"),
        SceneEdge("a", "c", "5 B", 5, value="u"),
        SceneEdge("b", "c", "", 7),
        SceneEdge("c", "d", "", 3),
    ]
    scene = scene_graph(nodes, edges)
    assert edge_table(scene, frozenset()) == {"a>m": (3, 15), "m>d": (1, 3)}
    opened = edge_table(scene, frozenset({("m",)}))
    assert opened == {"a>b": (1, 10), "a>c": (2, 15), "b>c": (1, 7), "c>d": (1, 3)}


def test_visible_edge_with_one_unknown_size_is_unknown() -> None:
    nodes = [SceneNode("a", "a"), SceneNode("b", "b", cluster=("m",))]
    edges = [SceneEdge("a", "b", value="t", nbytes=4), SceneEdge("a", "b", value="u")]
    assert edge_table(scene_graph(nodes, edges), frozenset()) == {"a>m": (2, UNKNOWN_BYTES)}


def test_visible_items_count_every_edge_once() -> None:
    scene = scatter(80, 160, seed=4)
    for depth in range(4):
        visible = visible_items(scene, opened_to_depth(scene, depth))
        inside = int((visible.edge_of < 0).sum())
        assert int(visible.uses.sum()) + inside == len(scene.edges)


# -- ranks


@st.composite
def digraphs(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]]]:
    count = draw(st.integers(1, 25))
    item = st.integers(0, count - 1)
    pairs = draw(st.lists(st.tuples(item, item), max_size=60))
    return count, [(u, v) for u, v in pairs if u != v]


@given(digraphs())
def test_rank_items_every_edge_points_down_or_is_marked(
    graph: tuple[int, list[tuple[int, int]]],
) -> None:
    count, pairs = graph
    rank, upward = rank_items(count, pairs, [False] * count)
    for (u, v), up in zip(pairs, upward, strict=True):
        assert rank[v] < rank[u] if up else rank[v] > rank[u]


@given(digraphs())
def test_rank_items_without_cycle_marks_nothing(
    graph: tuple[int, list[tuple[int, int]]],
) -> None:
    count, pairs = graph
    order = list(range(count))[::-1]  # against the numbering, yet without a cycle
    down = [(max(u, v), min(u, v)) for u, v in pairs]
    rank, upward = rank_items(count, down, [False] * count)
    assert not any(upward)
    assert len(rank) == len(order)


def test_rank_items_cycle_turns_only_the_edge_back() -> None:
    _, upward = rank_items(4, [(0, 1), (1, 2), (2, 1), (2, 3)], [False] * 4)
    assert upward == [False, False, True, False]


def test_rank_items_source_moves_to_its_reader_unless_pinned() -> None:
    pairs = [(0, 1), (1, 2), (2, 3), (4, 3)]
    assert rank_items(5, pairs, [False] * 5)[0][4] == 2
    assert rank_items(5, pairs, [False] * 4 + [True])[0][4] == 0


def test_lay_out_cycle_between_clusters_draws_one_way_up() -> None:
    scene = drawn("a>b b>c c>d", {"a": "m", "b": "n", "c": "m", "d": "n"})
    for expanded in (frozenset(), expand_all(scene.tree)):
        placed = lay_out(scene, expanded)
        upward = {
            (placed.title_of(a), placed.title_of(b))
            for (a, b), up in zip(placed.edges.tolist(), placed.edge_upward, strict=True)
            if up
        }
        assert upward == ({("n", "m")} if not expanded else {("b", "c")})
        for edge, up in enumerate(placed.edge_upward):
            line = placed.polyline(edge)
            assert (line[-1, 1] < line[0, 1]) == bool(up)


# -- stubs


def test_lay_out_value_with_many_far_readers_gets_named_stubs() -> None:
    blocks = WIDEST_FAN + 3
    scene = transformer(blocks)
    placed = lay_out(scene, expand_all(scene.tree))
    mask = scene.index["mask"]
    reading = placed.stubs.item[~placed.stubs.leaves]
    assert sorted(scene.names[i] for i in reading) == sorted(f"qk_{i}" for i in range(blocks))
    assert set(placed.stubs.other[~placed.stubs.leaves].tolist()) == {mask}
    leaving = placed.stubs.leaves
    assert placed.stubs.item[leaving].tolist() == [mask]
    assert placed.stubs.count[leaving].tolist() == [blocks]


def test_lay_out_few_readers_get_lines() -> None:
    scene = transformer(WIDEST_FAN - 1)
    assert not len(lay_out(scene, expand_all(scene.tree)).stubs.item)


@pytest.mark.parametrize(("length", "stubbed"), [(LONGEST_SPAN, False), (LONGEST_SPAN + 2, True)])
def test_lay_out_edge_over_many_ranks_becomes_stubs(length: int, stubbed: bool) -> None:
    nodes = [SceneNode(f"n{i}", "n") for i in range(length + 1)]
    edges = [SceneEdge(f"n{i}", f"n{i + 1}") for i in range(length)]
    edges.append(SceneEdge("n0", f"n{length}"))
    placed = lay_out(scene_graph(nodes, edges), frozenset())
    assert bool(placed.edge_stubbed.any()) is stubbed


def test_lay_out_crowd_of_weights_does_not_make_a_wide_row() -> None:
    count = CROWD * 40
    nodes = [SceneNode(f"w{i}", "w") for i in range(count)] + [SceneNode("op", "op")]
    scene = scene_graph(nodes, [SceneEdge(f"w{i}", "op") for i in range(count)])
    placed = lay_out(scene, frozenset())
    assert placed.width < 20 * placed.height
    assert int(placed.edge_stubbed.sum()) == count


STEPS = {  # of an unrolled loop: what each has beside those before it
    "slices of one value": "x>s{0} s{0}>all",
    "slices that are reshaped": "x>s{0} s{0}>r{0} r{0}>all",
    "results that are stacked": "h{1}>h{0} h{0}>o{0} o{0}>all",
    "heads of one value": "x>a{0} a{0}>b{0} b{0}>c{0} c{0}>all",
}


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_lay_out_many_equal_steps_can_be_read_as_a_whole(step: str) -> None:
    placed = lay_out(drawn(" ".join(step.format(i, i - 1) for i in range(400))), frozenset())
    assert max(placed.width / placed.height, placed.height / placed.width) < 4
    stubs = placed.stubs
    assert ((stubs.other >= 0) | (stubs.count > 1)).all()


def test_stubs_stay_clear_of_every_box() -> None:
    scene = transformer(12)
    placed = lay_out(scene, expand_all(scene.tree))
    boxes = placed.boxes[placed.nodes]
    for x, y, w, h in placed.stubs.boxes.tolist():
        apart = (boxes[:, 0] >= x + w) | (boxes[:, 0] + boxes[:, 2] <= x)
        apart |= (boxes[:, 1] >= y + h) | (boxes[:, 1] + boxes[:, 3] <= y)
        assert apart.all()


# -- cache and size


def test_lay_out_equal_blocks_are_solved_once() -> None:
    cache = LayoutCache()
    lay_out(transformer(40), expand_all(transformer(40).tree), cache)
    few = LayoutCache()
    lay_out(transformer(4), expand_all(transformer(4).tree), few)
    assert len(cache.answers) <= len(few.answers) + 1


def test_lay_out_toggle_solves_only_what_changed() -> None:
    scene, cache = transformer(30), LayoutCache()
    expanded = expand_all(scene.tree)
    lay_out(scene, expanded, cache)
    before = len(cache.answers)
    lay_out(scene, collapse(expanded, ("model", "layers.7", "attn")), cache)
    # the block, the model around it and the whole; equal blocks come from the cache
    assert len(cache.answers) - before == 3


@pytest.mark.parametrize("nodes", [0, 1])
def test_lay_out_tiny_scene_is_fine(nodes: int) -> None:
    scene = scene_graph([SceneNode(f"n{i}", "n") for i in range(nodes)])
    placed = lay_out(scene, frozenset())
    assert len(placed.nodes) == nodes
    assert (placed.width > 0) is bool(nodes)


def test_lay_out_self_loop_and_doubled_edge_are_drawn_once() -> None:
    placed = lay_out(drawn("a>a a>b a>b"), frozenset())
    assert placed.edges.tolist() == [[0, 0], [0, 1]]
    assert placed.edge_uses.tolist() == [1, 2]
    assert len(placed.polyline(0)) == 4


def test_lay_out_disconnected_nodes_fill_a_pleasant_shape() -> None:
    scene = scene_graph([SceneNode(f"n{i}", "n") for i in range(400)])
    placed = lay_out(scene, frozenset())
    assert 0.4 < placed.width / placed.height < 4


def test_lay_out_long_chain_needs_no_recursion_and_folds() -> None:
    placed = lay_out(chain(20000), frozenset())
    assert 0.3 < placed.width / placed.height < 5
    assert len(placed.nodes) == 20000


def test_lay_out_deep_nesting_needs_no_recursion() -> None:
    depth = 1200
    scene = scene_graph(
        [SceneNode("a", "a", cluster=tuple("x" * depth)), SceneNode("b", "b")],
        [SceneEdge("a", "b")],
    )
    placed = lay_out(scene, expand_all(scene.tree))
    assert len(placed.clusters) == depth
    assert len(placed.polyline(0)) >= 2


def test_lay_out_long_flat_program_does_not_drift_sideways() -> None:
    placed = lay_out(transformer(60, nested=False), frozenset())
    one = lay_out(transformer(2, nested=False), frozenset())
    columns = placed.height and placed.width / max(one.width, 1)
    assert columns < 12
