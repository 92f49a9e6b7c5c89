"""Laws that every laid out scene keeps, on random graphs with cycles, doubles and nesting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from devtools_app.viewmodels.layout.cluster_tree import expand_all, toggle
from devtools_app.viewmodels.layout.engine import LayoutCache, lay_out
from devtools_app.viewmodels.layout.placed import Placed
from devtools_app.viewmodels.layout.scene_graph import SceneGraph
from tests.app.layout_scenes import chain, opened_to_depth, scatter, scenes, transformer

pytestmark = pytest.mark.slow

EPS = 1e-6
fast = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def some_expanded(scene: SceneGraph, seed: int) -> frozenset[tuple[str, ...]]:
    pick = np.random.default_rng(seed)
    return frozenset(path for path in scene.tree.paths[1:] if pick.random() < 0.6)


def siblings(placed: Placed) -> dict[int, list[int]]:
    """Return items on show by the cluster that holds them."""
    tree, nodes = placed.scene.tree, placed.node_count
    found: dict[int, list[int]] = {}
    for item in [*placed.nodes.tolist(), *placed.clusters.tolist()]:
        holder = tree.node_cluster[item] if item < nodes else tree.parent[item - nodes]
        found.setdefault(int(holder), []).append(item)
    return found


def assert_no_overlap(boxes: np.ndarray) -> None:
    for at in range(len(boxes)):
        x, y, w, h = boxes[at]
        rest = boxes[at + 1 :]
        apart = (
            (rest[:, 0] >= x + w - EPS)
            | (rest[:, 0] + rest[:, 2] <= x + EPS)
            | (rest[:, 1] >= y + h - EPS)
            | (rest[:, 1] + rest[:, 3] <= y + EPS)
        )
        assert apart.all()


def on_border(point: np.ndarray, box: np.ndarray) -> bool:
    x, y, w, h = box
    inside = x - EPS <= point[0] <= x + w + EPS and y - EPS <= point[1] <= y + h + EPS
    gaps = (point[0] - x, x + w - point[0], point[1] - y, y + h - point[1])
    return inside and min(abs(gap) for gap in gaps) < EPS


def assert_lawful(placed: Placed) -> None:
    nodes, tree = placed.node_count, placed.scene.tree
    for holder, items in siblings(placed).items():
        boxes = placed.boxes[items]
        assert np.isfinite(boxes).all()
        assert_no_overlap(boxes)
        if holder:
            x, y, w, h = placed.boxes[nodes + holder]
            assert (boxes[:, 0] >= x).all()
            assert (boxes[:, 1] >= y).all()
            assert (boxes[:, 0] + boxes[:, 2] <= x + w).all()
            assert (boxes[:, 1] + boxes[:, 3] <= y + h).all()
    for edge, (source, target) in enumerate(placed.edges.tolist()):
        line = placed.polyline(edge)
        if placed.edge_stubbed[edge]:
            assert len(line) == 0
            continue
        assert len(line) >= 2
        assert np.isfinite(line).all()
        assert on_border(line[0], placed.boxes[source])
        assert on_border(line[-1], placed.boxes[target])
    assert tree.size == len(placed.boxes) - nodes


def strangers_hit(placed: Placed) -> int:
    """Return how often a point of a line lies inside a box that is not one of its ends."""
    items = np.concatenate([placed.nodes, placed.clusters[placed.collapsed]])
    x, y, w, h = placed.boxes[items].T
    hits = 0
    for edge, ends in enumerate(placed.edges.tolist()):
        line = placed.polyline(edge)
        middle = (line[1:] + line[:-1]) / 2
        for px, py in np.concatenate([line, middle]):
            inside = (px > x + 1) & (px < x + w - 1) & (py > y + 1) & (py < y + h - 1)
            hits += int(inside[~np.isin(items, ends)].any())
    return hits


@fast
@given(scenes(), st.integers(0, 10**6))
def test_lay_out_random_scene_keeps_boxes_apart_and_edges_attached(
    scene: SceneGraph, seed: int
) -> None:
    assert_lawful(lay_out(scene, some_expanded(scene, seed)))


@fast
@given(scenes(), st.integers(0, 10**6))
def test_lay_out_random_scene_leads_no_line_through_a_foreign_box(
    scene: SceneGraph, seed: int
) -> None:
    assert strangers_hit(lay_out(scene, expand_all(scene.tree))) == 0
    assert strangers_hit(lay_out(scene, some_expanded(scene, seed))) == 0


def assert_same(a: Placed, b: Placed) -> None:
    np.testing.assert_array_equal(a.boxes, b.boxes)
    np.testing.assert_array_equal(a.points, b.points)
    np.testing.assert_array_equal(a.offsets, b.offsets)
    np.testing.assert_array_equal(a.stubs.boxes, b.stubs.boxes)
    assert (a.width, a.height) == (b.width, b.height)


@fast
@given(scenes(), st.lists(st.integers(0, 10**6), min_size=1, max_size=5))
def test_lay_out_with_used_cache_equals_fresh(scene: SceneGraph, steps: list[int]) -> None:
    cache = LayoutCache()
    expanded = expand_all(scene.tree)
    lay_out(scene, expanded, cache)
    for step in steps:
        if scene.tree.size > 1:
            expanded = toggle(expanded, scene.tree.paths[1 + step % (scene.tree.size - 1)])
        assert_same(lay_out(scene, expanded, cache), lay_out(scene, expanded))


@pytest.mark.parametrize("seed", range(8))
def test_lay_out_twice_gives_equal_results(seed: int) -> None:
    first, second = (scatter(200, 300, seed=seed) for _ in range(2))
    assert_same(lay_out(first, expand_all(first.tree)), lay_out(second, expand_all(second.tree)))


@pytest.mark.parametrize("depth", [0, 1, 2, 3, 9])
def test_lay_out_transformer_keeps_the_laws_at_every_depth(depth: int) -> None:
    scene = transformer(12)
    placed = lay_out(scene, opened_to_depth(scene, depth))
    assert_lawful(placed)
    assert strangers_hit(placed) == 0


def test_lay_out_folded_chain_keeps_the_laws() -> None:
    scene = chain(700)
    placed = lay_out(scene, frozenset())
    assert_lawful(placed)
    assert placed.width > placed.height / 3
    assert strangers_hit(placed) == 0


def test_lay_out_flat_transformer_leads_no_line_through_a_node() -> None:
    scene = transformer(8, nested=False)
    placed = lay_out(scene, frozenset())
    assert_lawful(placed)
    assert strangers_hit(placed) == 0
