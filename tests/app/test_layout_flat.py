"""Flat graphs: most edges are short, and take a short way through the layout to the same place."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType

import numpy as np
import pytest

from devtools_app.viewmodels.layout import layers, route
from devtools_app.viewmodels.layout.cluster_tree import expand_all
from devtools_app.viewmodels.layout.engine import lay_out
from devtools_app.viewmodels.layout.placed import Placed
from devtools_app.viewmodels.layout.ranks import rank_items
from devtools_app.viewmodels.layout.scene_graph import SceneGraph
from tests.app.layout_scenes import chain, scatter, transformer

_LAYOUT = str(Path(layers.__file__).parent)
_MOST_CALLS = 16  # of functions of the layout for each node of a chain
SCENES = {
    "chain": chain(400),
    "flat": transformer(20, nested=False),
    "nested": transformer(6),
    **{f"scatter {seed}": scatter(60, 90, seed=seed, odd=0.5) for seed in range(12)},
    **{f"sparse {seed}": scatter(40, 25, back=0.5, depth=1, seed=seed) for seed in range(6)},
}


def _calls(length: int) -> int:
    """Return how often functions of the layout are entered while a chain is laid out."""
    scene, count = chain(length), 0

    def seen(frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call" and frame.f_code.co_filename.startswith(_LAYOUT)

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        lay_out(scene, frozenset())
    finally:
        sys.setprofile(before)
    return count


def test_lay_out_each_further_node_of_a_chain_costs_few_calls() -> None:
    assert _calls(3000) - _calls(1000) <= _MOST_CALLS * 2000


def _drawn(scene: SceneGraph) -> Placed:
    return lay_out(scene, expand_all(scene.tree))


@pytest.mark.parametrize("name", SCENES)
def test_short_ways_lead_to_the_same_drawing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    short = _drawn(SCENES[name])
    monkeypatch.setattr(layers, "_is_step", lambda *_arguments: False)
    monkeypatch.setattr(route.EdgeRouter, "_is_direct", lambda *_arguments: False)
    long = _drawn(SCENES[name])
    np.testing.assert_array_equal(short.boxes, long.boxes)
    np.testing.assert_array_equal(short.offsets, long.offsets)
    np.testing.assert_array_equal(short.points, long.points)
    np.testing.assert_array_equal(short.label_at, long.label_at)


@pytest.mark.parametrize("seed", range(5))
def test_rank_items_stand_directly_below_what_they_wait_for(seed: int) -> None:
    pick = np.random.default_rng(seed)
    ends = pick.integers(0, 30, (45, 2))
    pairs = [(min(u, v), max(u, v)) for u, v in ends.tolist() if u != v]
    level = [0] * 30
    for lower in range(30):
        above = [level[u] for u, v in pairs if v == lower]
        level[lower] = max(above) + 1 if above else 0
    fed = {lower for _, lower in pairs}
    rank, upward = rank_items(30, pairs, [False] * 30)
    assert not any(upward)
    assert [rank[item] for item in sorted(fed)] == [level[item] for item in sorted(fed)]
    for item in {upper for upper, _ in pairs} - fed:
        assert rank[item] == min(level[v] for u, v in pairs if u == item) - 1
    shuffled = [pairs[at] for at in pick.permutation(len(pairs)).tolist()]
    assert rank_items(30, shuffled, [False] * 30)[0] == rank
