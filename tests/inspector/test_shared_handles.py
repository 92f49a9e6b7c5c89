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
        SimpleNamespace(node=SimpleNamespace(name=name), operator=f"aten::{name}")
        for name in (*NAMES, "behind")
    ]


@pytest.mark.parametrize("order", list(permutations(NAMES)))
def test_nodes_of_a_fused_event_are_in_graph_order(order: tuple[str, ...]) -> None:
    event = DelegateEvent("0", (*order, "of another delegate", order[0]), False, ())
    found, shared = distinguished(_members(), [event])
    assert {found[name].nodes for name in NAMES} == {NAMES}
    assert set(found) == set(NAMES)
    assert shared == set()


def test_events_of_the_same_nodes_in_another_order_are_one_group() -> None:
    events = [DelegateEvent("0", NAMES, False, ()), DelegateEvent("1", NAMES[::-1], False, ())]
    found, shared = distinguished(_members(), events)
    assert found == {}
    assert shared == set(NAMES)
