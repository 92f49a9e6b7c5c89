"""Nodes of a payload told by what they read and make, however its compiler has ordered them."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.numerics.flat_graph import FlatGraph, FlatNode
from inspector.numerics.grades import FLOW, ORDER
from inspector.numerics.payload_flow import by_flow
from inspector.numerics.shared_handles import DelegateEvent, becomes
from schema.graph import Graph, GraphNode, NodeKind

KINDS = {
    "aten::tanh": ("Tanh", 1),
    "aten::sigmoid": ("Sigmoid", 1),
    "aten::add": ("Add", 2),
    "aten::mul": ("Multiply", 2),
    "aten::sub": ("Subtract", 2),
}


def program(made: random.Random, count: int, inputs: int) -> FlatGraph:
    """Return random operators, of which no two of a kind read the same."""
    values = [((), f"in{number}") for number in range(inputs)]
    nodes: list[FlatNode] = []
    seen: set[object] = set()
    while len(nodes) < count:
        operator = made.choice(list(KINDS))
        reads = tuple(made.choice(values) for _ in range(KINDS[operator][1]))
        key = (operator, frozenset(reads), len(set(reads)))
        if key in seen:
            continue
        seen.add(key)
        name = f"n{len(nodes)}"
        node = GraphNode(name, NodeKind.CALL, operator, outputs=(name,))
        nodes.append(FlatNode(len(nodes), (), node, reads, operator))
        values.append(((), name))
    producers = {node.writes[0]: (node, 0) for node in nodes}
    inside = Graph("delegate", (), {}, (), ())
    return FlatGraph(inside, tuple(nodes), producers, {}, {}, frozenset(), (), {(): ""})


def payload(graph: FlatGraph, made: random.Random) -> list[DelegateEvent]:
    """Return the operators as events in another order in which they can run."""
    left, order = list(graph.nodes), []
    while left:
        waiting = {node.writes[0] for node in left}
        ready = [node for node in left if not waiting & set(node.reads)]
        order.append(made.choice(ready))
        left.remove(order[-1])
    return [
        DelegateEvent(
            node.node.name,
            (),
            ORDER,
            (),
            KINDS[node.operator][0],
            tuple(f"p_{name}" for _, name in node.reads),
            (f"p_{node.node.name}",),
        )
        for node in order
    ]


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 1 << 30), count=st.integers(1, 25), inputs=st.integers(1, 4))
def test_every_node_is_told_in_whatever_order_the_payload_has_them(
    seed: int, count: int, inputs: int
) -> None:
    made = random.Random(seed)
    graph = program(made, min(count, 3 * inputs), inputs)
    border = {f"p_in{number}": ((), f"in{number}") for number in range(inputs)}
    found = by_flow(graph, graph.nodes, payload(graph, made), border)
    assert {name: event.name for name, event in found.items()} == {
        node.node.name: node.node.name for node in graph.nodes
    }
    assert all(event.nodes == (name,) for name, event in found.items())
    assert {event.grade for event in found.values()} <= {FLOW, ORDER}


def test_kind_of_which_the_payload_has_more_is_left_out() -> None:
    graph = program(random.Random(4), 6, 3)
    events = payload(graph, random.Random(5))
    more = DelegateEvent("bias", (), ORDER, (), events[0].kind, ("p_in0",), ("p_more",))
    border = {f"p_in{number}": ((), f"in{number}") for number in range(3)}
    found = by_flow(graph, graph.nodes, [*events, more], border)
    left = {node.node.name for node in graph.nodes if becomes(node.operator, more.kind)}
    assert left
    assert left.isdisjoint(found)


@pytest.mark.parametrize("fused", [False, True])
def test_fused_activation_is_no_proof_against_its_readers(fused: bool) -> None:
    graph = program(random.Random(6), 6, 3)
    events = payload(graph, random.Random(7))
    wrong = [
        DelegateEvent(e.name, (), ORDER, (), e.kind, e.reads, e.writes, fused=fused and not at)
        for at, e in enumerate(events)
    ]
    border = {f"p_in{number}": ((), f"in{number}") for number in range(3)}
    found = by_flow(graph, graph.nodes, wrong, border)
    assert all(name == event.name for name, event in found.items())
    assert found
