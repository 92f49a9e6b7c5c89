"""Nodes that nothing tells apart, and integers between the steps of a payload."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from inspector.numerics.flat_graph import FlatGraph, FlatNode
from inspector.numerics.grades import ORDER
from inspector.numerics.payload_walk import walked
from inspector.numerics.report import INSIDE
from inspector.numerics.same_steps import (
    content,
    filled_contents,
    is_distinctive,
    same_names,
    same_values,
)
from inspector.numerics.shared_handles import DelegateEvent
from schema.etdump import DebugTensor
from schema.graph import Argument, Graph, GraphNode, GraphValue, NodeKind, TensorMeta
from tests.conftest import DATA
from tests.inspector.test_gap_payload_walk import _gap

_CHAR, _INT, _FLOAT = 1, 3, 6
_STEPS = {"quant_min": -128, "quant_max": 127, "zero_point": 0}


def net(*calls: tuple[str, ...], scale: float = 0.1, **contents: str) -> FlatGraph:
    """Return a graph of calls (name, operator, operands) whose values have two elements."""
    nodes: list[FlatNode] = []
    meta = {((), name): _meta(name, _CHAR) for name in contents}
    for name, operator, *reads in calls:
        steps = {"scale": scale, **_STEPS} if "quantize_per" in operator else {}
        given = [Argument("x", (one,)) for one in reads]
        given += [Argument(key, literal=one) for key, one in steps.items()]
        node = GraphNode(name, NodeKind.CALL, operator, tuple(given), (name,))
        nodes.append(FlatNode(len(nodes), (), node, tuple(((), one) for one in reads), operator))
        code = _CHAR if "::quantize_per" in operator else _FLOAT
        meta[(), name] = _meta(name, code)
    makers = {one.writes[0]: (one, 0) for one in nodes}
    users = {value: tuple(one for one in nodes if value in one.reads) for value in makers}
    inside = Graph("delegate", (), {}, (), ())
    return FlatGraph(
        inside, tuple(nodes), makers, meta, users, frozenset(), (), {(): ""}, contents=contents
    )


def _meta(name: str, code: int) -> GraphValue:
    return GraphValue(name, tensor=TensorMeta(code, (2,)))


def step(
    kind: str, reads: str, made: str, code: int = _INT, settings: str = "one", **constants: str
) -> DelegateEvent:
    tensor = DebugTensor(code, (2,), (1,), 0)
    return DelegateEvent(
        f"{kind}_{made}",
        (),
        ORDER,
        ((tensor,),),
        kind,
        (*reads.split(), *constants),
        (made,),
        constants=tuple(constants.items()),
        settings=settings,
    )


Q, DQ = "quantized_decomposed::quantize_per_tensor", "quantized_decomposed::dequantize_per_tensor"


def layer(name: str, operator: str, *reads: str) -> list[tuple[str, ...]]:
    """Return an operator between integers."""
    real = [(f"d_{name}_{one}", DQ, one) for one in reads]
    return [*real, (name, operator, *(one[0] for one in real)), (f"q_{name}", Q, name)]


def integers(graph: FlatGraph, events: list[DelegateEvent]) -> dict[str, str]:
    names = {one.node.name for one in graph.nodes}
    found = walked(graph, graph.nodes, {}, names, events, {"p_x": ((), "x")})
    return {n: one.writes[0] for n, one in found.items() if n.startswith("q_")}


@pytest.mark.parametrize("kind", [("aten::exp", "TABLE"), ("aten::abs", "ABS")])
def test_integers_behind_steps_are_found(kind: tuple[str, str]) -> None:
    operator, own = kind
    graph = net(*layer("add", "aten::add", "x", "x"), *layer("one", operator, "q_add"))
    events = [
        step("RESCALE", "p_x", "wide"),
        step("ADD", "wide wide", "sum"),
        step("RESCALE", "sum", "small", _CHAR),
        step(own, "small", "out", _CHAR),
    ]
    assert integers(graph, events) == {"q_add": "small", "q_one": "out"}


def test_two_tables_of_one_value_are_not_told_apart() -> None:
    graph = net(*layer("one", "aten::exp", "x"), *layer("two", "aten::sin", "x"))
    events = [step("TABLE", "p_x", name, _CHAR, settings=name) for name in ("a", "b")]
    assert not integers(graph, events)


@pytest.mark.parametrize("again", [0.1, 0.2])
def test_what_is_quantized_again_is_the_next_of_its_integers(again: float) -> None:
    """In the same steps it is what it was."""
    graph = net(
        *layer("add", "aten::add", "x", "x"), ("d_more", DQ, "q_add"), ("q_more", Q, "d_more")
    )
    *_, last = graph.nodes
    given = tuple(
        replace(one, literal=again) if one.name == "scale" else one for one in last.node.args
    )
    changed = replace(last, node=replace(last.node, args=given))
    nodes = (*graph.nodes[:-1], changed)
    makers = {one.writes[0]: (one, 0) for one in nodes}
    graph = replace(graph, nodes=nodes, producers=makers)
    events = [
        step("RESCALE", "p_x", "wide"),
        step("ADD", "wide wide", "sum"),
        step("RESCALE", "sum", "small", _CHAR),
    ]
    if again != 0.1:
        assert not integers(graph, events)  # one is missing: it may be the other
        events.append(step("RESCALE", "small", "more", _CHAR, settings="other"))
    more = "small" if again == 0.1 else "more"
    assert integers(graph, events) == {"q_add": "small", "q_more": more}


@pytest.mark.parametrize("clamped", [True, False])
def test_activation_without_a_step_is_in_the_bounds_of_the_integers(clamped: bool) -> None:
    graph = net(
        ("d", DQ, "x"),
        ("sum", "aten::add", "d", "d"),
        ("act", "aten::relu", "sum"),
        ("q_act", Q, "act"),
    )
    events = [
        step("ADD", "p_x p_x", "sum"),
        step("RESCALE", "sum", "small", _CHAR),
        *([step("CLAMP", "small", "out", _CHAR)] if clamped else []),
    ]
    assert integers(graph, events) == {"q_act": "out" if clamped else "small"}


@pytest.mark.parametrize("held", ["same", "other"])
def test_products_by_a_constant_are_matched_by_its_content(held: str) -> None:
    graph = net(*layer("mul", "aten::mul", "x", "c"), c="same")
    events = [step("MUL", "p_x", "out", k=held), step("RESCALE", "out", "small", _CHAR)]
    assert integers(graph, events) == ({"q_mul": "small"} if held == "same" else {})


def test_nodes_that_compute_alike_have_the_step_that_is_left_of_them() -> None:
    graph = net(*layer("one", "aten::exp", "x"), *layer("two", "aten::exp", "x"))
    events = [step("RESCALE", "p_x", "wide"), step("TABLE", "p_x", "a", _CHAR)]
    assert integers(graph, events) == {"q_one": "a", "q_two": "a"}
    assert same_values(graph, graph.nodes)[(), "q_two"] == ((), "q_one")
    random = net(("one", "aten::rand_like", "x"), ("two", "aten::rand_like", "x"))
    assert not same_values(random, random.nodes)


def test_steps_that_compute_alike_are_one_value() -> None:
    alike = [step("MUL", "x", "a", k="2"), step("MUL", "x", "b", l="2"), step("EXP", "b", "c")]
    assert same_names(alike) == {"b": "a"}
    assert not same_names([step("MUL", "x", "a", k="2"), step("MUL", "x", "b", k="3")])
    assert not same_names([step("EXP", "x", "a", settings=one) for one in ("",)] * 2)
    assert not same_names([*alike, step("ADD", "c", "c")])  # written twice: what is read is open


def test_content_of_constants_is_type_and_bytes() -> None:
    data = bytes(range(8))
    assert content(_CHAR, data) == content(_CHAR, memoryview(data)) != content(_INT, data)
    assert is_distinctive(content(_CHAR, data))
    assert not any(
        is_distinctive(content(_FLOAT, np.full(3, one, "<f4").tobytes())) for one in (0, 2)
    )
    assert [content(_CHAR, one) for one in (None, b"", bytes(1 << 17))] == ["", "", ""]


@pytest.mark.parametrize(("number", "made"), [(1.0, 10), (-100.0, -128), (0.26, 3)])
def test_numbers_that_a_graph_fills_and_quantizes_have_a_content(number: float, made: int) -> None:
    graph = net(("full", "aten::full"), ("q_full", Q, "full"))
    first = graph.nodes[0]
    node = replace(first.node, args=(Argument("fill_value", literal=number),))
    found = filled_contents(graph, (replace(first, node=node), graph.nodes[1]))
    assert found["full"] == content(_FLOAT, np.full(2, number, "<f4").tobytes())
    assert found["q_full"] == content(_CHAR, np.full(2, made, "<i1").tobytes())


@pytest.mark.slow
def test_integers_of_a_stock_payload_with_a_norm_are_exact(tmp_path: Path) -> None:
    """It computes its mean twice, and the payload once."""
    run = _gap(DATA / "backends/tosa_normed_int8", tmp_path)
    rows = [row for row in run.rows if row.place == INSIDE and row.total is not None]
    assert len(rows) >= 21  # 1 before what is computed alike was one
    assert all(row.total is not None and row.total.max_abs == 0 for row in rows)
    assert run.first_divergence() is None
