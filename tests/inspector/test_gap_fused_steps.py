"""Steps of a payload with the norm and the activation behind them folded in, and no others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from inspector.graph.delegate_inside import InsideNode, InsideValue
from inspector.numerics.flat_graph import FlatGraph, FlatNode
from inspector.numerics.grades import ORDER
from inspector.numerics.payload_flow import payload_event
from inspector.numerics.payload_walk import walked
from inspector.numerics.shared_handles import DelegateEvent
from schema.graph import Graph, GraphNode, GraphValue, NodeKind
from schema.payloads.vulkan import tables

_NORM = "aten::_native_batch_norm_legit_no_training"


def net(*calls: tuple[str, ...], results: Sequence[str] = ()) -> FlatGraph:
    """Return a graph of calls: name, operator and what it reads."""
    nodes: list[FlatNode] = []
    for name, operator, *reads in calls:
        node = GraphNode(name, NodeKind.CALL, operator, outputs=(name,))
        nodes.append(FlatNode(len(nodes), (), node, tuple(((), one) for one in reads), operator))
    makers = {one.writes[0]: (one, 0) for one in nodes}
    users = {value: tuple(one for one in nodes if value in one.reads) for value in makers}
    left = frozenset(((), name) for name in results)
    return FlatGraph(
        Graph("delegate", (), {}, (), ()), tuple(nodes), makers, {}, users, left, (), {(): ""}
    )


def step(kind: str, reads: str, made: str, *, fused: bool = False) -> DelegateEvent:
    """Return an event of a payload."""
    event = DelegateEvent(f"{kind}_{made}", (), ORDER, (), kind, tuple(reads.split()), (made,))
    return replace(event, fused=fused)


def writers(graph: FlatGraph, events: Sequence[DelegateEvent]) -> dict[str, tuple[str, ...]]:
    """Return node -> what its event writes, and the nodes that are part of it."""
    names = {one.node.name for one in graph.nodes}
    found = walked(graph, graph.nodes, {}, names, events, {"p_x": ((), "x")})
    return {name: (one.writes[0], *one.nodes) for name, one in found.items()}


@pytest.mark.parametrize(
    ("kind", "activation"),
    [
        ("aten.split_with_sizes_copy.default", ""),
        ("aten.max_pool2d_with_indices.default", ""),
        ("llama.sdpa_with_kv_cache.default", ""),
        ("SplitWithSizes", ""),
        *((kind, "clamp") for kind in sorted(tables.CLAMPED)),
    ],
)
def test_only_what_a_payload_says_is_fused_with_an_activation(kind: str, activation: str) -> None:
    made = GraphValue("v1", kind="tensor")
    node = GraphNode("one", NodeKind.CALL, kind, outputs=("v1",))
    event = payload_event(
        InsideNode(0, node, (InsideValue("output", made, None),), activation, inserted=False)
    )
    assert event.fused == bool(activation)
    assert (event.kind, event.writes) == (kind, ("v1",))


@pytest.mark.parametrize("normed", [True, False])
@pytest.mark.parametrize("count", [1, 2, 10])
def test_convolutions_in_a_chain_have_the_values_of_their_activations(
    count: int, normed: bool
) -> None:
    calls: list[tuple[str, ...]] = []
    events: list[DelegateEvent] = []
    before = "x"
    for number in range(count):
        calls.append((f"conv{number}", "aten::convolution", before))
        if normed:
            calls.append((f"norm{number}", _NORM, calls[-1][0]))
        calls.append((f"relu{number}", "aten::relu", calls[-1][0]))
        before = f"relu{number}"
        read = f"v{number - 1}" if number else "p_x"
        events.append(
            step("et_vk.conv_with_clamp.default", f"{read} w{number}", f"v{number}", fused=True)
        )
    found = writers(net(*calls, results=[before]), events)
    parts = ["conv", "norm", "relu"] if normed else ["conv", "relu"]
    assert found == {
        f"relu{number}": (f"v{number}", *(f"{part}{number}" for part in parts))
        for number in range(count)
    }


def test_operands_of_a_sum_are_told_apart_by_what_is_fused_into_them() -> None:
    """Backwards from the sum, whose value is known: only one operand has an activation."""
    graph = net(
        ("plain", "aten::convolution", "y"),
        ("conv", "aten::convolution", "z"),
        ("relu", "aten::relu", "conv"),
        ("sine", "aten::sin", "plain"),
        ("out", "aten::add", "sine", "relu"),
        ("last", "aten::exp", "out"),
    )
    events = [
        step("aten.sin.default", "a", "b"),
        step("et_vk.conv_with_clamp.default", "k w", "c", fused=True),
        step("aten.add.Tensor", "b c", "d"),
        step("aten.exp.default", "d", "e"),
    ]
    found = walked(graph, graph.nodes, {}, {"relu", "sine"}, events, {"e": ((), "last")})
    assert {name: one.writes[0] for name, one in found.items()} == {"relu": "c", "sine": "b"}


@pytest.mark.parametrize(
    "behind",
    [
        [("tanh", "aten::tanh", "conv")],  # no activation that a clamp is
        [("relu", "aten::relu", "conv"), ("sine", "aten::sin", "conv")],  # another reader
        [],
    ],
)
def test_fused_step_without_its_activation_has_no_value(behind: list[tuple[str, ...]]) -> None:
    graph = net(("conv", "aten::convolution", "x"), *behind)
    event = step("et_vk.conv_with_clamp.default", "p_x w", "v", fused=True)
    assert not writers(graph, [event])


def test_norm_in_front_of_a_sum_of_two_values_is_in_the_convolution() -> None:
    """A norm that is a step of its own adds a constant; a residual is none."""
    graph = net(
        ("conv", "aten::convolution", "x"),
        ("norm", _NORM, "conv"),
        ("out", "aten::add", "norm", "x"),
    )
    events = [step("CONV2D", "p_x w", "c"), step("ADD", "c p_x", "d")]
    assert writers(graph, events) == {"norm": ("c", "conv", "norm"), "out": ("d", "out")}
    apart = [step("CONV2D", "p_x w", "c"), step("ADD", "c b", "n"), step("ADD", "n p_x", "d")]
    assert "norm" not in writers(graph, apart)
