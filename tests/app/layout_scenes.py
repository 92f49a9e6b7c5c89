"""Scenes for layout and canvas tests: generated, so that families of graphs are covered."""

from __future__ import annotations

import random

from hypothesis import strategies as st

from devtools_app.appearance.colours import NOT_DELEGATED
from devtools_app.viewmodels.layout.cluster_tree import ClusterPath
from devtools_app.viewmodels.layout.scene_graph import SceneEdge, SceneGraph, SceneNode, scene_graph

LABELS = (
    "aten.add.Tensor",
    "aten.mul",
    "Convolution + clamp",
    "x",
    "a_rather_long_name_of_40_letters",
)


def transformer(blocks: int, *, nested: bool = True) -> SceneGraph:
    """Return residual blocks of an attention and an MLP; 14 nodes a block."""
    nodes = [SceneNode("x", "x"), SceneNode("mask", "mask")]
    edges: list[SceneEdge] = []

    def add(name: str, label: str, cluster: tuple[str, ...], *reads: str, owner: int = 0) -> str:
        path = ("model", *cluster) if nested else ()
        nodes.append(SceneNode(name, label, "0.12 ms", path, owner))
        edges.extend(SceneEdge(read, name, "98.0 KiB", 100352) for read in reads)
        return name

    hidden = "x"
    for i in range(blocks):
        block = (f"layers.{i}",)
        norm = add(f"norm1_{i}", "aten.native_layer_norm", (*block, "norm1"), hidden)
        q, k, v = (add(f"{c}_{i}", "Linear", (*block, "attn", c), norm) for c in "qkv")
        scores = add(f"qk_{i}", "aten.bmm", (*block, "attn"), q, k, "mask")
        soft = add(f"soft_{i}", "aten._softmax", (*block, "attn"), scores, owner=NOT_DELEGATED)
        mixed = add(f"av_{i}", "aten.bmm", (*block, "attn"), soft, v)
        out = add(f"o_{i}", "Linear", (*block, "attn", "o"), mixed)
        after = add(f"add1_{i}", "aten.add.Tensor", block, hidden, out)
        norm = add(f"norm2_{i}", "aten.native_layer_norm", (*block, "norm2"), after)
        up = add(f"up_{i}", "Linear", (*block, "mlp", "up"), norm)
        act = add(f"act_{i}", "aten.gelu", (*block, "mlp"), up, owner=NOT_DELEGATED)
        down = add(f"down_{i}", "Linear", (*block, "mlp", "down"), act)
        hidden = add(f"add2_{i}", "aten.add.Tensor", block, after, down)
    nodes.append(SceneNode("output", "output"))
    edges.append(SceneEdge(hidden, "output"))
    return scene_graph(nodes, edges)


def chain(length: int) -> SceneGraph:
    """Return nodes that each read the one before."""
    nodes = [SceneNode(f"n{i}", "aten.add.Tensor") for i in range(length)]
    return scene_graph(nodes, [SceneEdge(f"n{i}", f"n{i + 1}") for i in range(length - 1)])


def scatter(
    nodes: int,
    edges: int,
    *,
    back: float = 0.1,
    depth: int = 3,
    seed: int = 0,
    odd: float = 0.0,
) -> SceneGraph:
    """Return a random graph in nested clusters, with edges backwards, doubled and looped."""
    pick = random.Random(seed)
    boxes = [
        SceneNode(
            f"n{i}",
            pick.choice(LABELS),
            "",
            tuple(f"c{pick.randrange(3)}" for _ in range(pick.randrange(depth + 1))),
            size=(pick.uniform(2, 300), pick.uniform(2, 200)) if pick.random() < odd else None,
        )
        for i in range(nodes)
    ]
    lines: list[SceneEdge] = []
    for _ in range(edges if nodes else 0):
        a, b = pick.randrange(nodes), pick.randrange(nodes)
        if a > b and pick.random() > back:
            a, b = b, a
        lines.append(SceneEdge(f"n{a}", f"n{b}", str(pick.randrange(2)), pick.randrange(-1, 999)))
    return scene_graph(boxes, lines)


@st.composite
def scenes(draw: st.DrawFn) -> SceneGraph:
    """Draw a random scene of up to 60 nodes."""
    nodes = draw(st.integers(0, 60))
    edges = draw(st.integers(0, 90))
    back = draw(st.sampled_from([0.0, 0.1, 0.5]))
    depth = draw(st.integers(0, 4))
    seed, odd = draw(st.integers(0, 10**6)), draw(st.sampled_from([0.0, 0.5]))
    return scatter(nodes, edges, back=back, depth=depth, seed=seed, odd=odd)


def opened_to_depth(scene: SceneGraph, depth: int) -> frozenset[ClusterPath]:
    """Return the boxes to open so that nodes down to a depth are seen."""
    return frozenset(path for path in scene.tree.paths if 0 < len(path) <= depth)
