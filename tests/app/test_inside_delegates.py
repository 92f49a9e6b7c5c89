"""The inside of delegates in the window: payload nodes, weights, borders, gaps on the graph."""

from __future__ import annotations

import math
import shlex
from dataclasses import replace

import numpy as np
import pytest

from devtools_app.state.requests import ShowView
from devtools_app.state.state import Gaps, OpenSession, State
from devtools_app.viewmodels.canvas_data import Swatch
from devtools_app.viewmodels.gap_colours import GAP, OWN_GAP, gap_text, node_gaps
from devtools_app.viewmodels.inside_facts import bars
from devtools_app.viewmodels.node_facts import node_facts
from devtools_app.viewmodels.scene import graph_scene, with_sublabels
from devtools_app.viewmodels.scene_overlay import graph_overlay
from inspector.files.session import Session
from inspector.graph.model_graph import COMPILED, model_graph
from inspector.numerics.metrics import Tolerance, measure
from inspector.numerics.report import INSIDE, INSTRUCTION, Row, RunGap
from inspector.profile.join_index import join_index
from inspector.size.weights import node_weights, spread
from inspector.tables.boundaries import boundaries, inserted_nodes
from inspector.tables.facts import FactSheet
from inspector.tables.numeric_gap import selected_row
from inspector.tables.partitions import delegate_sheet, partitions
from inspector.tables.selection import Selection, SelectionKind, Units
from tests.app.sessions import DATA, opened

FLOATS = DATA / "corpus/v1.5.1/convnet_xnnpack"
STEPS = DATA / "corpus/payloads/xnnpack_q8.pte"
CONV = "aten_convolution_default"


@pytest.fixture
def session() -> Session:
    return opened(FLOATS)


def sheet(session: Session, node: str, gap: RunGap | None = None) -> FactSheet:
    chosen = Selection(SelectionKind.NODE, "forward", COMPILED, node)
    return node_facts(session, "forward", chosen, Units(), gap)


def lines(found: FactSheet, title: str) -> dict[str, str]:
    return {
        fact.label: fact.value
        for group in found.groups
        if group.title.startswith(title)
        for fact in group.facts
    }


def test_node_inside_says_its_kind_and_what_is_fused_into_it(session: Session) -> None:
    found = lines(sheet(session, CONV), "In the payload")
    path = shlex.quote(str(FLOATS / "model.pte"))
    assert found["kind"] == "Conv2d"
    assert found["fused activation"] == "relu6"
    assert found["step to it"] == f"etscope step {path} --call 0 --to 2"
    linear = lines(sheet(session, "aten_linear_default"), "In the payload")
    assert linear["step to it"].endswith("--call 1 --to 1")


def test_weights_inside_are_those_of_the_payload_with_their_numbers(session: Session) -> None:
    graph = model_graph(session, "forward")
    assert graph is not None
    node = graph.nodes[graph.by_name[CONV]]
    filters, bias = node_weights(session, "forward", node)
    assert (filters.role, bias.role) == ("filter", "bias")
    assert filters.data is not None
    numbers = np.frombuffer(filters.data, np.float32)
    found = spread(filters)
    assert found is not None
    assert found.facts["min"] == numbers.min()
    assert int(found.counts.sum()) == found.facts["count"] == len(numbers)
    shown = lines(sheet(session, CONV), "Weight: filter")
    assert shown["size"].startswith("float32 [8, 3, 3, 3]")
    assert len(shown["spread"]) == 24


def test_quantized_values_have_their_parameters() -> None:
    session = opened(STEPS)
    graph = model_graph(session, "forward")
    assert graph is not None
    words = "\n".join(sheet(session, node.name).as_text() for node in graph.nodes)
    assert "per tensor, scale " in words
    assert "zero point" in words
    assert "per channel, " in words
    for node in graph.nodes:
        for weight in node_weights(session, "forward", node):
            assert weight.data is not None
            assert spread(weight) is not None


def test_bars_show_a_bin_of_one_element_beside_a_full_one() -> None:
    assert bars([0, 1, 1000]) == " ▁█"
    assert bars([0, 0]) == ""


def test_border_of_a_stock_delegate_counts_what_the_compiler_added(session: Session) -> None:
    made = partitions(session, "forward")
    assert made is not None
    assert made.graph is not None
    added = inserted_nodes(session, "forward", 0)
    assert {one.node.node.target for one in added} == {"StaticTranspose"}
    assert all(one.ns is not None and one.ns > 0 for one in added)
    found = lines(delegate_sheet(made, 0), "Boundary")
    assert found["in"] == "1 tensor, 12 KiB"
    assert found["added by the compiler"].startswith("2 nodes, 28 KiB written, ")
    events = [fact for group in delegate_sheet(made, 0).groups for fact in group.facts]
    assert [one.badge for one in events if one.label == "operators inside"] == ["inferred"]
    rows = [str(made.tree.rows.columns[0].values[row]) for row in range(made.tree.rows.length)]
    assert sum("added by the compiler" in row for row in rows) == 2
    assert len(boundaries(made.graph)) == len(made.boundaries)


# ---- gaps on the graph
def row(order: int, node: str, error: float | None, **more: object) -> Row:
    one = np.ones(4, np.float32)
    found = None if error is None else measure(one, one + error, "float32", Tolerance())
    made = Row(
        INSIDE,
        "forward",
        0,
        0,
        "op",
        node=node,
        graph_node=node,
        covers=(node,),
        total=found,
        own=found,
        diverges=bool(error and error > 0.1),
        reason="" if found else "no tensors",
        order=order,
    )
    return replace(made, **more)


@pytest.fixture
def compared() -> RunGap:
    rows = (
        row(0, CONV, None),
        row(1, "aten_hardtanh_default", 1e-6, covers=(CONV, "aten_hardtanh_default")),
        row(2, "aten_convolution_default_1", 0.0),
        row(3, "aten_add_tensor", 0.5),
        row(4, "aten_mean_dim", math.nan, place=INSTRUCTION, instruction=1),
    )
    return RunGap("forward", 0, 0, -1, "", "edge", rows)


def test_overlay_is_of_decades_and_names_their_ends(session: Session, compared: RunGap) -> None:
    made = graph_scene(session, "forward")
    assert made is not None
    rows = node_gaps(made, COMPILED, compared)
    found = graph_overlay(made, GAP, "auto", "auto", rows)
    assert found.values is not None
    at = {made.graph.nodes[node].name: float(found.values[node]) for node in rows}
    assert at["aten_convolution_default_1"] == 0
    assert 0 < at["aten_hardtanh_default"] < at["aten_add_tensor"] < at["aten_mean_dim"] == 1
    assert math.isnan(at[CONV])
    (ramp,) = [one for one in found.legend if one.swatch is Swatch.RAMP]
    assert (ramp.low, ramp.high) == ("≤ 1e-07", "≥ 1e+00")
    words = {node: gap_text(one, OWN_GAP) for node, one in rows.items()}
    scene = with_sublabels(made, OWN_GAP, "auto", "auto", words)
    texts = dict(zip(scene.names, scene.sublabels, strict=True))
    assert texts[CONV] == "not compared"
    assert texts["aten_add_tensor"] == "error 0.5 · diverges"
    assert texts["aten_convolution_default_1"] == "equal"


def test_overlay_without_a_comparison_says_where_to_make_one(session: Session) -> None:
    made = graph_scene(session, "forward")
    assert made is not None
    for name in (GAP, OWN_GAP):
        found = graph_overlay(made, name, "auto", "auto")
        assert found.values is None
        assert "Numeric gap" in found.legend[-1].label


def test_row_of_a_selection_is_its_own_or_the_fused_one(session: Session, compared: RunGap) -> None:
    index = join_index(session, "forward")
    for name, order in ((CONV, 1), ("aten_add_tensor", 3), ("aten_mean_dim", 4)):
        found = selected_row(compared, index.of_node(name))
        assert found is not None
        assert found.order == order


def test_node_panel_has_the_gap_and_leads_to_the_view(session: Session, compared: RunGap) -> None:
    found = sheet(session, "aten_add_tensor", compared)
    shown = lines(found, "Numeric gap")
    assert shown["from the reference"].startswith("0.5  100 % of elements")
    links = [fact.link for group in found.groups for fact in group.facts]
    assert ShowView("gap") in links
    assert not lines(sheet(session, "aten_add_tensor"), "Numeric gap")


def test_comparison_of_another_session_colours_nothing(session: Session, compared: RunGap) -> None:
    one, other = (OpenSession("A", session), OpenSession("A", session))
    state = State(sessions=(one,), current="A", method="forward", gaps=Gaps(one, (compared,)))
    assert state.gap is compared
    assert replace(state, method="other").gap is None
    assert replace(state, sessions=(other,)).gap is None
