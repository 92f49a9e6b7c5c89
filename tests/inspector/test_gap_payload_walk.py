"""Nodes of a payload without handles of its own are joined by what its operators compute."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from inspector.files.load import load_session
from inspector.join.kernel_order import match_named_events
from inspector.numerics.element_moves import ElementMove, arrangement
from inspector.numerics.flat_graph import FlatGraph, FlatNode
from inspector.numerics.grades import ORDER
from inspector.numerics.payload_walk import walked
from inspector.numerics.replay.analysis import Options, analyse_gap
from inspector.numerics.report import INSIDE, RunGap
from inspector.numerics.shared_handles import DelegateEvent
from runtime import DebugLevel, EventTracer, Runtime
from schema.graph import Argument, Graph, GraphNode, GraphValue, NodeKind, TensorMeta
from schema.payloads import Payload
from tests.conftest import DATA

_FLOAT = 6  # scalar type


def _gap(stem: Path, folder: Path) -> RunGap:
    made = [folder / "run.etdp", folder / "run.debug"]
    inputs, *_ = torch.load(stem.with_suffix(".pt"))
    tracer = EventTracer(DebugLevel.INTERMEDIATE)
    program = Runtime().load_program(stem.with_suffix(".pte"), tracer=tracer)
    program.load_method("forward").execute(inputs)
    tracer.write(*made)
    files = [stem.with_suffix(".pte"), stem.with_suffix(".etrecord"), *made]
    return analyse_gap(load_session(files), Options(inputs=inputs)).runs[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("tosa_m2", 6),
        ("tosa_steps", 13),
        ("tosa_grouped", 6),
        ("tosa_residual", 17),  # all: with channels last inside, and permuted in the program
        ("xnnpack_residual", 15),  # images that are permuted, all of them
        ("vulkan_residual", 25),  # of 29: the others are of weights
    ],
)
def test_values_of_a_stock_payload_are_found_by_its_operators(
    name: str, least: int, tmp_path: Path
) -> None:
    run = _gap(DATA / "backends" / name, tmp_path)
    rows = [row for row in run.rows if row.place == INSIDE and row.total is not None]
    assert len(rows) >= least
    assert run.first_divergence() is None
    sure = [row.total.max_abs for row in rows if row.total is not None and row.grade != ORDER]
    assert len(sure) >= least - 1
    assert max(sure) < 1e-4


@pytest.mark.slow
def test_calls_that_share_handles_have_the_nodes_that_their_payloads_compute(
    tmp_path: Path,
) -> None:
    """A norm and a clamp are in the convolution before them, and an expansion is none."""
    run = _gap(DATA / "backends/vulkan_moved", tmp_path)
    calls = [row for row in run.rows if row.place != INSIDE]
    assert all(row.total is not None and row.total.max_abs < 1e-5 for row in calls)
    inside = [row for row in run.rows if row.place == INSIDE and row.total is not None]
    assert len(inside) >= 45  # of 52: the others are of weights
    assert all(row.total is not None and row.total.max_abs < 1e-5 for row in inside)


def test_moves_that_put_elements_in_the_same_places_are_equal() -> None:
    straight = arrangement((2, 3, 4), [ElementMove((6, 4)), ElementMove((4, 6), (1, 0))])
    around = arrangement((2, 3, 4), [ElementMove((4, 2, 3), (2, 0, 1)), ElementMove((4, 6))])
    other = arrangement((2, 3, 4), [ElementMove((4, 6))])
    assert straight is not None
    assert np.array_equal(straight, around)
    assert not np.array_equal(straight, other)


@pytest.mark.parametrize(
    "move", [ElementMove((5, 5)), ElementMove((4, 6), (0, 1)), ElementMove((6, 4), (1, 1))]
)
def test_moves_that_contradict_their_sizes_have_no_places(move: ElementMove) -> None:
    assert arrangement((6, 4), [move]) is None


def _side(name: str, kind: str, sizes: tuple[int, ...]) -> tuple[GraphNode, GraphValue]:
    handle = 7 if kind.startswith("aten") else None
    node = GraphNode(name, NodeKind.CALL, kind, outputs=(f"{name}_value",), debug_handle=handle)
    meta = TensorMeta(_FLOAT, sizes)
    return node, GraphValue(f"{name}_value", kind="tensor", tensor=meta)


@pytest.mark.parametrize(("sizes", "handles"), [((2, 4), (7,)), ((4, 4), ())])
def test_only_step_of_a_kind_is_no_node_of_another_size(
    sizes: tuple[int, ...], handles: tuple[int, ...]
) -> None:
    """Of a folded exponential, and a softmax that was taken apart, the step is the softmax's."""
    node, value = _side("aten_exp_default", "aten.exp.default", (8,))
    step, made = _side("EXP_3", "EXP", sizes)
    graph = Graph("payload", (step,), {made.name: made})
    payload = Payload("TOSABackend", "tosa", 0, graph=graph)
    (match,) = match_named_events(payload, ["EXP_3"], [node], {value.name: value})
    assert match is not None
    assert match.handles == handles


def _net(*calls: tuple[str, ...]) -> FlatGraph:
    """Return a graph of calls: name, operator and what it reads."""
    nodes: list[FlatNode] = []
    for name, operator, *reads in calls:
        node = GraphNode(name, NodeKind.CALL, operator, outputs=(name,))
        nodes.append(FlatNode(len(nodes), (), node, tuple(((), one) for one in reads), operator))
    makers = {one.writes[0]: (one, 0) for one in nodes}
    users = {value: tuple(one for one in nodes if value in one.reads) for value in makers}
    inside = Graph("delegate", (), {}, (), ())
    return FlatGraph(inside, tuple(nodes), makers, {}, users, frozenset(), (), {(): ""})


def _event(kind: str, reads: str, made: str) -> DelegateEvent:
    return DelegateEvent(f"{kind}_{made}", (), ORDER, (), kind, tuple(reads.split()), (made,))


@pytest.mark.parametrize("folded", [True, False])
def test_convolution_with_a_folded_norm_has_the_value_of_the_norm(folded: bool) -> None:
    apart = [] if folded else [_event("MUL", "a scale", "b")]
    norm = "a" if folded else "b"
    events = [
        _event("CONV2D", "p_x weight", "a"),
        *apart,
        _event("SIGMOID", norm, "c"),
        _event("MUL", f"{norm} c", "d"),
    ]
    graph = _net(
        ("conv", "aten::convolution", "x"),
        ("norm", "aten::_native_batch_norm_legit_no_training", "conv"),
        ("gate", "aten::sigmoid", "norm"),
        ("out", "aten::mul", "norm", "gate"),
    )
    names = {one.node.name for one in graph.nodes}
    found = walked(graph, graph.nodes, {}, names, events, {"p_x": ((), "x")})
    writers = {name: one.name for name, one in found.items()}
    assert "conv" not in writers
    assert writers.get("norm") == ("CONV2D_a" if folded else None)
    assert writers.get("gate") == ("SIGMOID_c" if folded else None)


@pytest.mark.parametrize("steps", [1, 2])
def test_one_clamp_of_a_payload_has_the_value_of_the_last_of_several(steps: int) -> None:
    """Hardswish has one clamp for each of its bounds, a payload one for both."""
    graph = _net(
        ("low", "aten::clamp", "x"),
        ("high", "aten::clamp", "low"),
        ("out", "aten::mul", "x", "high"),
    )
    made = [
        _event("CLAMP", "p_x" if step == 0 else f"c{step - 1}", f"c{step}") for step in range(steps)
    ]
    events = [*made, _event("MUL", f"p_x c{steps - 1}", "d")]
    found = walked(graph, graph.nodes, {}, {"low", "high", "out"}, events, {"p_x": ((), "x")})
    writers = {name: one.writes[0] for name, one in found.items()}
    assert writers == {"high": f"c{steps - 1}", "out": "d"} | ({"low": "c0"} if steps == 2 else {})


@pytest.mark.slow
def test_integers_of_a_stock_payload_are_found_by_what_they_are_computed_from(
    tmp_path: Path,
) -> None:
    """The activations behind a sum are a step of their own, those behind a layer are not."""
    run = _gap(DATA / "backends/tosa_summed_int8", tmp_path)
    rows = [row for row in run.rows if row.place == INSIDE]
    stored = [row for row in rows if "quantize_per" in row.node and "dequantize" not in row.node]
    compared = [row for row in stored if row.total is not None]
    assert len(compared) == len(stored) == 9
    assert all(row.total is not None and row.total.max_abs == 0 for row in compared)
    assert ORDER not in {row.grade for row in compared}
    clamped = {row.node: row.delegate for row in compared if row.delegate.startswith("CLAMP")}
    assert len(clamped) == 1


def test_slices_of_one_value_are_told_apart_by_where_they_begin() -> None:
    """In any order: that of a payload is its compiler's."""
    nodes: list[FlatNode] = []
    for start in range(3):
        given = (
            Argument("x", ("x",)),
            Argument("dim", literal=0),
            Argument("start", literal=start),
        )
        name = f"slice_{start}"
        node = GraphNode(name, NodeKind.CALL, "aten::slice_copy", given, outputs=(name,))
        nodes.append(FlatNode(start, (), node, (((), "x"),), "aten::slice_copy"))
    makers = {one.writes[0]: (one, 0) for one in nodes}
    inside = Graph("delegate", (), {}, (), ())
    graph = FlatGraph(inside, tuple(nodes), makers, {}, {}, frozenset(), (), {(): ""})
    events = [
        replace(_event("StaticSlice", "p_x", f"w{start}"), given=(0, start)) for start in (2, 0, 1)
    ]
    names = {one.node.name for one in nodes}
    found = walked(graph, nodes, {}, names, events, {"p_x": ((), "x")})
    assert {name: one.writes for name, one in found.items()} == {
        f"slice_{start}": (f"w{start}",) for start in range(3)
    }
