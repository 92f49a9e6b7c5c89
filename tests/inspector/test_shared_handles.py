"""Nodes that one event inside a delegate stands for, whatever the order of their handles."""

from __future__ import annotations

from itertools import permutations
from types import SimpleNamespace
from typing import Any

import pytest

from inspector.numerics.shared_handles import DelegateEvent, distinguished

NAMES = ("dequantize", "linear", "relu", "quantize")


def _members() -> list[Any]:
    return [
        SimpleNamespace(
            node=SimpleNamespace(name=name), operator=f"aten::{name}", reads=(), writes=()
        )
        for name in (*NAMES, "behind")
    ]


@pytest.mark.parametrize("order", list(permutations(NAMES)))
def test_nodes_of_a_fused_event_are_in_graph_order(order: tuple[str, ...]) -> None:
    event = DelegateEvent("0", (*order, "of another delegate", order[0]), "", ())
    found, shared = distinguished(_members(), [event])
    assert {found[name].nodes for name in NAMES} == {NAMES}
    assert set(found) == set(NAMES)
    assert shared == set()


def test_events_of_the_same_nodes_in_another_order_are_one_group() -> None:
    events = [DelegateEvent("0", NAMES, "", ()), DelegateEvent("1", NAMES[::-1], "", ())]
    found, shared = distinguished(_members(), events)
    assert found == {}
    assert shared == set(NAMES)


def _node(name: str, operator: str, *reads: str) -> Any:
    values = tuple(((), one) for one in reads)
    node = SimpleNamespace(name=name)
    return SimpleNamespace(node=node, operator=operator, reads=values, writes=(((), name),))


def _event(kind: str, *reads: str) -> DelegateEvent:
    nodes = ("first", "view", "second")
    return DelegateEvent(kind, nodes, "", (), kind, reads, (f"of {kind}",))


@pytest.mark.parametrize(
    ("operator", "kind", "reader", "value"),
    [
        ("aten::add", "ADD", "aten::div", "ADD"),  # the step after it is of the reader
        ("aten::add", "ADD", "aten::reciprocal", "ADD"),
        ("aten::addmm", "CONV2D", "aten::div", None),  # the step may be its bias, or of the reader
        ("aten::addmm", "CONV2D", "aten::reciprocal", "CONV2D"),
    ],
)
@pytest.mark.parametrize("seen_through", [False, True])
def test_step_that_a_node_without_an_event_may_have_is_not_taken_for_its_operand(
    operator: str, kind: str, reader: str, value: str | None, seen_through: bool
) -> None:
    behind = [_node("view", "aten::view_copy", "first")] if seen_through else []
    last = _node("second", reader, "view" if seen_through else "first")
    members = [_node("first", operator, "x"), *behind, last]
    events = [_event(kind, "x"), _event("RECIPROCAL", f"of {kind}")]
    found, shared = distinguished(members, events)
    assert (found["first"].name if "first" in found else None) == value
    assert ("first" in shared) is (value is None)


def test_layout_that_a_step_restores_is_that_of_its_node() -> None:
    members = [_node("first", "aten::relu", "x"), _node("second", "aten::div", "first")]
    steps = [_event("CLAMP", "x"), _event("TRANSPOSE", "of CLAMP")]
    behind = _event("RECIPROCAL", "of TRANSPOSE")
    assert distinguished(members, [*steps, behind])[0]["first"].name == "TRANSPOSE"
    members.append(_node("view", "aten::permute_copy", "first"))  # or the step is this one
    assert distinguished(members, [*steps, behind])[0]["first"].name == "CLAMP"


def test_last_of_the_steps_of_a_node_has_its_value() -> None:
    members = [_node("first", "aten::addmm", "x"), _node("second", "aten::tanh", "first")]
    steps = [_event("CONV2D", "x"), _event("RESCALE", "of CONV2D"), _event("TANH", "of RESCALE")]
    found, shared = distinguished(members, steps)
    assert (found["first"].name, found["second"].name, shared) == ("RESCALE", "TANH", set())


@pytest.mark.parametrize("operator", ["_softmax", "argmax", "sigmoid", "mean"])
def test_event_with_the_handles_of_a_whole_call_leaves_others_their_nodes(operator: str) -> None:
    """Handles of a stock Vulkan payload are a counter, from which another call may have its own."""
    members = [
        _node("permute", "aten::permute_copy", "w"),
        _node("linear", "aten::addmm", "x", "permute"),
        _node("last", f"aten::{operator}", "linear"),
    ]
    whole = ("permute", "linear", "last")
    events = [
        DelegateEvent("0", whole, "", (), "aten.linear.default", ("v1",), ("v2",)),
        DelegateEvent("1", ("last",), "", (), f"aten.{operator}.default", ("v2",), ("v3",)),
    ]
    found, shared = distinguished(members, events)
    assert {name: event.name for name, event in found.items()} == {
        "permute": "0",
        "linear": "0",
        "last": "1",
    }
    assert found["linear"].nodes == whole[:2]  # its value is that of the linear layer
    assert shared == set()


@pytest.mark.parametrize(
    ("kind", "known"),
    [
        ("SELECT", False),  # the last step of the quantize node itself, whose handle is lost
        ("RELU", True),  # of another node, which reads the value
    ],
)
def test_last_known_step_of_a_node_is_not_its_value_if_an_open_step_goes_on(
    kind: str, known: bool
) -> None:
    steps = [
        DelegateEvent("0", ("quantize",), "", (), "MUL", ("a",), ("b",)),
        DelegateEvent("1", ("quantize",), "", (), "GREATER", ("a",), ("c",)),
        DelegateEvent("2", (*NAMES, "behind"), "", (), kind, ("c", "b"), ("d",)),
        DelegateEvent("3", (*NAMES, "behind"), "", (), "EXP", ("d",), ("e",)),
    ]
    found, shared = distinguished(_members(), steps)
    assert ("quantize" in found) is known
    assert ("quantize" in shared) is not known
    assert not known or found["quantize"].name == "1"


def test_step_beside_all_nodes_has_none_of_those_it_does_not_compute() -> None:
    """Core ML casts a boolean input: that step has the handles of the whole call, and no node."""
    members = [
        _node("tanh", "aten::tanh", "x"),
        _node("first", "aten::where", "m", "tanh"),
        _node("second", "aten::amax", "first"),
    ]
    whole = ("tanh", "first", "second")
    events = [
        DelegateEvent("cast", whole, "", (), "cast", ("m",), ("v0",)),
        DelegateEvent("tanh", ("tanh",), "", (), "tanh", ("x",), ("v1",)),
        DelegateEvent("tile", ("first",), "", (), "tile", ("v0",), ("v2",)),
        DelegateEvent("select", ("first",), "", (), "select", ("v2", "v1"), ("v3",)),
    ]
    found, shared = distinguished(members, events)
    assert {name: event.name for name, event in found.items()} == {
        "tanh": "tanh",
        "first": "select",
    }
    assert shared == {"second"}
