"""Linear layers of integer weights, whose bias is a step of its own in a payload by Vulkan."""

from __future__ import annotations

import pytest

from inspector.numerics.payload_walk import walked
from inspector.numerics.shared_handles import DelegateEvent
from tests.inspector.test_gap_same_steps import net, step

_DEQUANTIZE = "quantized_decomposed::dequantize_per_channel"
_PACKED = "aten._weight_int8pack_mm.default"
_FLOAT = 6


def _found(operator: str, events: list[DelegateEvent], *weights: str) -> dict[str, str]:
    """Return node -> value of linear layers that read one input."""
    calls: list[tuple[str, ...]] = []
    for number in range(len(weights)):
        view, wide, turned = f"view{number}", f"wide{number}", f"turned{number}"
        operands = {"addmm": (f"b{number}", view, turned), "linear": (view, turned, f"b{number}")}
        calls += [
            (wide, _DEQUANTIZE, f"w{number}"),
            (turned, "aten::permute_copy", wide),
            (view, "aten::view_copy", "x"),
            (f"l{number}", f"aten::{operator}", *operands.get(operator, (view, turned))),
        ]
    contents = {f"w{number}": weight for number, weight in enumerate(weights)}
    graph = net(*calls, scale=0.1, **contents)
    names = {one.node.name for one in graph.nodes}
    found = walked(graph, graph.nodes, {}, names, events, {"p_x": ((), "x")})
    return {name: one.writes[0] for name, one in found.items() if name.startswith("l")}


def _packed(number: int, content: str) -> DelegateEvent:
    return step(_PACKED, "p_x", f"m{number}", _FLOAT, str(number), **{f"p_w{number}": content})


def _sum(reads: str, made: str) -> DelegateEvent:
    return step("aten.add.Tensor", reads, made, _FLOAT, made)


@pytest.mark.parametrize("operator", ["addmm", "linear"])
def test_layer_with_a_bias_has_the_value_of_the_sum(operator: str) -> None:
    events = [_packed(0, "one"), _packed(1, "two"), _sum("m0 p_b0", "s0"), _sum("m1 p_b1", "s1")]
    assert _found(operator, events, "two", "one") == {"l0": "s1", "l1": "s0"}


def test_layer_without_a_bias_is_not_what_is_added_to_it() -> None:
    events = [_packed(0, "one"), _sum("m0 p_b0", "s0")]
    assert _found("mm", events, "one") == {"l0": "m0"}


@pytest.mark.parametrize(
    "events",
    [
        [_packed(0, "one"), _sum("m0 p_x", "s0")],  # of two computed values
        [_packed(0, "one")],  # without a sum
        [_packed(0, "one"), _sum("m0 p_b0", "s0"), _sum("m0 p_b1", "s1")],
        [_packed(0, "other"), _sum("m0 p_b0", "s0")],
        [_packed(0, "one"), _packed(1, "one"), _sum("m0 p_b0", "s0"), _sum("m1 p_b1", "s1")],
    ],
)
def test_what_no_weight_or_bias_shows_is_open(events: list[DelegateEvent]) -> None:
    assert _found("addmm", events, "one") == {}


def test_layers_of_one_weight_are_not_told_apart() -> None:
    events = [_packed(0, "one"), _sum("m0 p_b0", "s0")]
    assert _found("addmm", events, "one", "one") == {}
