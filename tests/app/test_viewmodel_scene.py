"""Scenes of model graphs: every node once, times that add up, colours, search, selection."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import devtools_app.sample_data
from devtools_app.appearance.colours import NOT_DELEGATED
from devtools_app.viewmodels import scene as scene_module
from devtools_app.viewmodels.layout.engine import lay_out
from devtools_app.viewmodels.opened_boxes import boxes_scope, opened_boxes, with_opened_boxes
from devtools_app.viewmodels.scene import (
    MOST_VISIBLE,
    crosses_boundary,
    graph_scene,
    opening_set,
    with_sublabels,
)
from devtools_app.viewmodels.scene_clusters import QUANTIZED
from devtools_app.viewmodels.scene_overlay import OVERLAYS, graph_overlay
from devtools_app.viewmodels.scene_search import search_nodes, selected_nodes
from inspector.files.load import load_session
from inspector.graph.model_graph import Weight, graph_names
from inspector.graph.node_text import operator_title
from inspector.join.operator_names import quantizes
from inspector.profile.join_index import join_index
from inspector.tables.filter import FilterError
from inspector.tables.selection import Selection, SelectionKind
from schema.graph import Argument, NodeKind
from tests.app.sessions import chain_session, folders, opened

DEMO = Path(devtools_app.sample_data.__file__).parent / "demo"
XNNPACK = "corpus/v1.5.1/tinygpt_xnnpack"


@pytest.mark.parametrize("folder", folders())
def test_scene_of_every_graph_keeps_all_nodes_and_lays_out(folder: str) -> None:
    session = opened(folder)
    for method in session.methods:
        for name in graph_names(session, method):
            for flat in (False, True):
                made = graph_scene(session, method, name, flat=flat)
                assert made is not None
                assert len(made.scene.names) == len(made.graph.nodes)
                placed = lay_out(made.scene, opening_set(made.scene.tree))
                assert np.isfinite(placed.boxes[placed.nodes]).all()


@pytest.mark.parametrize("folder", folders())
def test_scene_times_never_exceed_the_method(folder: str) -> None:
    session = opened(folder)
    for method in session.methods:
        made = graph_scene(session, method)
        if made is None or not made.times.method_ns > 0:
            continue
        inside = sum(made.times.delegate_ns.values())
        alone = [node.id for node in made.graph.nodes if node.delegate is None]
        outside = float(np.nansum(made.times.node_ns[alone])) if alone else 0.0
        assert inside + outside <= made.times.method_ns * (1 + 1e-9)


def test_box_of_operators_below_a_tick_of_their_clock_is_bounded() -> None:
    sample = load_session([DEMO / "keyword_spotter", DEMO / "keyword_spotter.etrecord"])
    made = graph_scene(sample, "forward")
    assert made is not None
    details = [one.detail for one in made.scene.info.values()]
    assert any("· < 4 µs" in one for one in details)
    assert any("µs · " in one for one in details)
    assert not any("0 ns" in one for one in details)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_overlay_of_each_kind_has_one_entry_a_node(overlay: str) -> None:
    made = graph_scene(opened(XNNPACK), "forward")
    assert made is not None
    found = graph_overlay(made, overlay, "auto", "auto")
    assert found.nodes in (None, len(made.scene.names))
    assert found.legend
    if found.values is not None:
        known = found.values[np.isfinite(found.values)]
        assert known.size
        assert 0 <= known.min() <= known.max() <= 1


def test_overlay_by_time_without_trace_says_so() -> None:
    made = graph_scene(chain_session(3), "forward")
    assert made is not None
    found = graph_overlay(made, "time", "auto", "auto")
    assert found.values is None
    assert any("open the ETDump" in entry.label for entry in found.legend)
    found = graph_overlay(made, "time", "auto", "auto", traced=True)
    assert any("the trace has none of these nodes" in entry.label for entry in found.legend)
    assert not any("open the" in entry.label for entry in found.legend)


def test_scene_owners_tell_delegated_from_not_delegated() -> None:
    made = graph_scene(opened(XNNPACK), "forward")
    assert made is not None
    for node, owner in zip(made.graph.nodes, made.scene.owners.tolist(), strict=True):
        if node.backend:
            assert owner >= 0
        elif node.node.kind.name == "CALL":
            assert owner == NOT_DELEGATED


def test_scene_edges_across_a_border_are_emphasised() -> None:
    made = graph_scene(opened(XNNPACK), "forward")
    assert made is not None
    wanted = [
        crosses_boundary(made.graph.nodes[a], made.graph.nodes[b])
        for a, b in made.scene.edges.tolist()
    ]
    assert made.scene.emphasised.tolist() == wanted
    assert any(wanted)
    assert not all(wanted)


def test_quantized_operators_stand_with_their_conversions() -> None:
    made = graph_scene(opened("corpus/special/xnnpack_int8_static"), "forward")
    assert made is not None
    groups: dict[tuple[str, ...], set[int]] = {}
    for node, path in zip(made.graph.nodes, made.clusters.paths, strict=True):
        region = made.clusters.regions.get(path)
        if region is not None and region.kind == QUANTIZED:
            groups.setdefault(path, set()).add(quantizes(node.node.target))
    assert groups
    assert all(0 in signs and len(signs) > 1 for signs in groups.values())


@pytest.mark.parametrize(
    ("target", "sign"),
    [
        ("quantized_decomposed.quantize_per_tensor.default", 1),
        ("quantized_decomposed::dequantize_per_channel.out", -1),
        ("aten.relu.default", 0),
        ("torchao.choose_qparams_affine.default", 1),
        ("Convert", 0),
    ],
)
def test_quantizes_tells_conversions_apart(target: str, sign: int) -> None:
    assert quantizes(target) == sign


def test_operator_title_drops_what_says_nothing() -> None:
    assert operator_title("aten::add.out") == "aten.add"
    assert operator_title("aten.mul.Tensor") == "aten.mul.Tensor"
    assert operator_title("") == "unknown operator"


@pytest.mark.parametrize("size", [0, 1, 3, 400])
def test_scene_of_a_chain_of_any_length_is_complete(size: int) -> None:
    made = graph_scene(chain_session(size), "forward")
    assert made is not None
    assert len(made.scene.names) == size + 2
    assert len(made.scene.edges) == size + 1


def test_opening_set_of_a_large_graph_shows_few_boxes() -> None:
    session = opened("corpus/v1.5.1/tinygpt_portable")
    made = graph_scene(session, "forward")
    assert made is not None
    placed = lay_out(made.scene, opening_set(made.scene.tree, 20))
    whole = lay_out(made.scene, opening_set(made.scene.tree, MOST_VISIBLE))
    assert len(placed.nodes) + int(placed.collapsed.sum()) <= max(
        20, int((made.scene.tree.parent == 0).sum() + (made.scene.tree.node_cluster == 0).sum())
    )
    assert len(whole.nodes) >= len(placed.nodes)


def test_sublabels_follow_the_overlay() -> None:
    made = graph_scene(opened(XNNPACK), "forward")
    assert made is not None
    times = with_sublabels(made, "time", "µs", "auto").sublabels
    sizes = with_sublabels(made, "bytes", "auto", "B").sublabels
    timed = int(np.flatnonzero(np.isfinite(made.times.node_ns))[0])
    assert times[timed].endswith("µs")
    assert sizes[timed].endswith(" B")


def test_output_is_what_the_caller_gets_and_not_the_state_that_was_written() -> None:
    made = graph_scene(opened("extra/counter_state"), "forward")
    assert made is not None
    (at,) = (n.id for n in made.graph.nodes if n.node.kind is NodeKind.OUTPUT)
    assert with_sublabels(made, "backend", "auto", "auto").sublabels[at] == "f32 [3], f32 [1]"
    node = made.graph.nodes[at]
    constant = replace(node, weights=(Weight("order", "int64 [5]", 40),))
    written = Argument("", ("aten_add_tensor",)), Argument("", ("b_order",))
    kinds = {"output_kinds": ("buffer_mutation", "user_output")}
    constant = replace(constant, node=replace(node.node, args=written, attributes=kinds))
    nodes = (*made.graph.nodes[:at], constant, *made.graph.nodes[at + 1 :])
    changed = replace(made, graph=replace(made.graph, nodes=nodes))
    assert with_sublabels(changed, "backend", "auto", "auto").sublabels[at] == "i64 [5]"


def test_scene_is_in_the_units_asked_for() -> None:
    made = graph_scene(opened("runs/convnet_xnnpack"), "forward")
    assert made is not None
    scene = with_sublabels(made, "time", "ms", "B")
    details = [info.detail for info in scene.info.values() if "%" in info.detail]
    assert details
    assert all(" ms" in detail for detail in details)
    known = [text for text in scene.edge_labels if text]
    assert known
    assert all(text.endswith(" B") for text in known)
    same = with_sublabels(made, "time", "auto", "auto")
    assert same.edge_labels == made.scene.edge_labels
    assert same.info == made.scene.info


def test_search_takes_words_expressions_and_refuses_nonsense() -> None:
    made = graph_scene(opened(XNNPACK), "forward")
    assert made is not None
    assert search_nodes(made, "") is None
    assert search_nodes(made, "no such operator") == ()
    words = search_nodes(made, "LINEAR")
    assert words
    assert words == search_nodes(made, "/lin.ar/")
    with pytest.raises(FilterError):
        search_nodes(made, "/(/")


def test_selection_of_an_instruction_lights_its_nodes_in_every_graph() -> None:
    session = opened(XNNPACK)
    index = join_index(session, "forward")
    step, names = next((step, names) for step, names in index.instruction_nodes.items() if names)
    selection = Selection(SelectionKind.INSTRUCTION, "forward", instruction=step)
    for name in ("compiled", "instructions"):
        made = graph_scene(session, "forward", name)
        assert made is not None
        found = selected_nodes(made, selection, index, name)
        assert found
        if name == "compiled":
            assert set(found) == set(names)


def test_selection_of_a_delegate_lights_all_it_took() -> None:
    session = opened(XNNPACK)
    made = graph_scene(session, "forward")
    assert made is not None
    selection = Selection(SelectionKind.DELEGATE, "forward", delegate=3)
    found = selected_nodes(made, selection, join_index(session, "forward"), "compiled")
    assert len(found) == sum(node.delegate == 3 for node in made.graph.nodes) > 1


@pytest.mark.parametrize("flat", [True, False])
def test_opened_boxes_are_kept_for_each_graph_alone(flat):
    one = boxes_scope("A/forward/", "compiled", flat)
    other = boxes_scope("A/forward/", "compiled", not flat)
    boxes = frozenset({("block", "0"), ("block",)})
    texts = with_opened_boxes(frozenset(), one, boxes)
    assert opened_boxes(texts, one) == boxes
    assert opened_boxes(texts, other) is None
    both = with_opened_boxes(texts, other, ())
    assert opened_boxes(both, other) == frozenset()
    assert opened_boxes(both, one) == boxes


def test_delegates_are_titled_with_the_tags_of_their_partitions() -> None:
    record = Path(devtools_app.sample_data.__file__).parent / "demo/keyword_spotter.etrecord"
    scene = graph_scene(load_session([record]), "forward")
    assert scene is not None
    titles = sorted(one.title for one in scene.scene.info.values() if "delegate" in one.title)
    found = [re.fullmatch(r"XNNPACK · delegate (\d) \((tag\d)\)", title) for title in titles]
    assert [one[1] for one in found if one] == list("01234")
    assert {one[2] for one in found if one} == {f"tag{number}" for number in range(5)}


def test_second_lines_are_made_when_they_are_seen(monkeypatch) -> None:
    made = graph_scene(opened(XNNPACK), "forward")
    assert made is not None
    asked: list[object] = []
    text = scene_module.shape_text
    monkeypatch.setattr(scene_module, "shape_text", lambda one: asked.append(one) or text(one))
    lines = with_sublabels(made, "backend", "auto", "auto").sublabels
    assert not asked
    assert len(lines) == len(made.graph.nodes)
    first = lines[0]
    assert lines[0] is first
    assert len(asked) == 1
    assert lines[:2] == [first, lines[1]]
    assert list(lines)[-1] == lines[-1]
    with pytest.raises(IndexError):
        lines[len(lines)]
