"""Values that a payload holds in other steps until it rounds them are not compared."""

from __future__ import annotations

from typing import Any

import pytest

from inspector.numerics.flat_graph import FlatGraph, FlatNode
from inspector.numerics.grades import ORDER
from inspector.numerics.rescaled import rescaled
from inspector.numerics.shared_handles import DelegateEvent
from schema.graph import Argument, Graph, GraphNode, NodeKind

_REAL = "quantized_decomposed::dequantize_per_tensor"
_ROUND = "quantized_decomposed::quantize_per_tensor"
_A, _B, _OUT = 0.5, 0.25, 0.125  # scales of the record


def _graph(kind: str, act: bool) -> FlatGraph:
    """Return a sum of two dequantized values, an activation, and the rounding behind."""
    return _calls(
        ("a", _REAL, _A, "qa"),
        ("b", _REAL, _B, "qb"),
        ("sum", f"aten::{kind}", None, "a", "b"),
        *([("act", "aten::relu", None, "sum")] if act else []),
        ("out", _ROUND, _OUT, "act" if act else "sum"),
    )


def _calls(*calls: tuple[Any, ...]) -> FlatGraph:
    """Return a graph of calls: name, operator, scale and what it reads."""
    nodes: list[FlatNode] = []
    for name, operator, scale, *reads in calls:
        given = tuple(Argument("input", (one,)) for one in reads)
        given += (Argument("scale", literal=scale),) if scale else ()
        node = GraphNode(name, NodeKind.CALL, operator, given, outputs=(name,))
        nodes.append(FlatNode(len(nodes), (), node, tuple(((), one) for one in reads), operator))
    makers = {one.writes[0]: (one, 0) for one in nodes}
    read = {value for one in nodes for value in one.reads}
    users = {value: tuple(one for one in nodes if value in one.reads) for value in read}
    inside = Graph("delegate", (), {}, (), ())
    return FlatGraph(inside, tuple(nodes), makers, {}, users, frozenset(), (), {(): ""})


def _events(
    kind: str, scales: tuple[float, float, float], *, act: bool, swapped: bool = False
) -> list[DelegateEvent]:
    def event(name: str, kind: str, reads: str, scale: float | None = None) -> DelegateEvent:
        return DelegateEvent(name, (), ORDER, (), kind, tuple(reads.split()), (name,), scale=scale)

    found = [
        event("p_a", "dequantize", "i", scales[0]),
        event("p_b", "dequantize", "j", scales[1]),
        event("p_sum", kind, "p_b p_a" if swapped else "p_a p_b"),
    ]
    found += [event("p_act", "relu", "p_sum")] if act else []
    return [*found, event("p_out", "quantize", "p_act" if act else "p_sum", scales[2])]


def _rescaled(graph: FlatGraph, events: list[DelegateEvent], *without: str) -> frozenset[str]:
    by_name = {one.name.removeprefix("p_"): one for one in events}
    matched = {name: one for name, one in by_name.items() if name not in without}
    return rescaled(graph, matched, graph.nodes, events)


@pytest.mark.parametrize("kind", ["add", "sub"])
@pytest.mark.parametrize("act", [False, True])
@pytest.mark.parametrize("divisor", [_A, _B])
def test_sum_divided_by_a_scale_is_in_other_steps(kind: str, act: bool, divisor: float) -> None:
    scales = (_A / divisor, _B / divisor, _OUT / divisor)
    found = _rescaled(_graph(kind, act), _events(kind, scales, act=act))
    assert found == {"a", "b", "sum"} | ({"act"} if act else set())


@pytest.mark.parametrize("swapped", [False, True])
def test_sum_alone_shows_its_factor_by_what_it_adds(swapped: bool) -> None:
    """Which node a dequantization is may be unknown: several read one rounded value."""
    scales = (_A / _B, 1.0, _OUT / _B)
    events = _events("add", scales, act=False, swapped=swapped)
    assert _rescaled(_graph("add", False), events, "a", "b") == {"sum"}


@pytest.mark.parametrize(
    ("scales", "why"),
    [
        ((_A, _B, _OUT), "the same steps"),
        ((_A / _B, 1.0, _OUT), "the rounding does not take the factor out"),
        ((_A / _B, 2.0, _OUT / _B), "the operands have two factors"),
        ((_A * (1 + 2**-11), _B * (1 - 2**-11), _OUT), "scales in half precision"),
    ],
)
def test_wrong_scales_are_compared(scales: tuple[float, float, float], why: str) -> None:
    found = _rescaled(_graph("add", False), _events("add", scales, act=False), "a", "b")
    assert not found, why


@pytest.mark.parametrize("reader", ["matmul", "quantize"])
def test_value_that_is_read_otherwise_too_is_compared(reader: str) -> None:
    events = _events("add", (_A / _B, 1.0, _OUT / _B), act=False)
    other = DelegateEvent("p_other", (), ORDER, (), reader, ("p_sum",), ("p_other",), scale=_OUT)
    assert not _rescaled(_graph("add", False), [*events, other])


def test_step_for_several_nodes_is_rounded_by_the_readers_of_all() -> None:
    """The record dequantizes integers for each reader, the payload once."""
    graph = _calls(
        ("b", _REAL, _B, "qb"),
        ("b2", _REAL, _B, "qb"),
        ("a", _REAL, _A, "qa"),
        ("sum", "aten::add", None, "a", "b"),
        ("out", _ROUND, _OUT, "sum"),
        ("sum2", "aten::sub", None, "a", "b2"),
        ("out2", _ROUND, 3 * _OUT, "sum2"),
    )
    events = _events("add", (_A / _B, 1.0, _OUT / _B), act=False)
    events += [
        DelegateEvent("p_sum2", (), ORDER, (), "sub", ("p_a", "p_b"), ("p_sum2",)),
        DelegateEvent(
            "p_out2", (), ORDER, (), "quantize", ("p_sum2",), ("p_out2",), scale=3 * _OUT / _B
        ),
    ]
    matched = {one.name.removeprefix("p_"): one for one in events}
    matched["b2"] = matched["b"]
    assert rescaled(graph, matched, graph.nodes, events) == {"a", "b", "b2", "sum", "sum2"}
