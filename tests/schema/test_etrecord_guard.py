"""Refused partitions in a record: there and back, in words, and what is none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema.errors import FormatError
from schema.etrecord.parts.guard import PHASES, Refusal, decode_refusals, encode_refusals

REFUSAL = Refusal(
    "forward", 1, "XnnpackBackend", "the real kernels", "initialisation", "it says no", 3, "Elu"
)
REFUSALS = st.builds(
    Refusal,
    delegate=st.integers(0, 9),
    place=st.none() | st.integers(0, 9),
    phase=st.sampled_from(PHASES),
    others=st.lists(st.text()).map(tuple),
)


@given(st.lists(REFUSALS))
def test_refusals_come_back(refusals: list[Refusal]) -> None:
    data = encode_refusals(refusals)
    assert decode_refusals(json.loads(data)) == tuple(refusals)
    assert encode_refusals(refusals) == data


@pytest.mark.parametrize(
    "change",
    [
        {"phase": "never"},
        {"delegate": "1"},
        {"delegate": True},
        {"place": 1.5},
        {"node": None},
        {"others": "abc"},
        {"others": [1]},
    ],
)
def test_refusal_of_another_shape_is_an_error(change: dict[str, Any]) -> None:
    tree = json.loads(encode_refusals([REFUSAL]))
    tree["refusals"][0].update(change)
    with pytest.raises(FormatError, match="etscope/guard_constants"):
        decode_refusals(tree)


@pytest.mark.parametrize("tree", [None, [], {}, {"version": 2}, {"version": 1, "refusals": [{}]}])
def test_other_json_is_an_error(tree: Any) -> None:
    with pytest.raises(FormatError):
        decode_refusals(tree)


def test_refusal_names_the_node_its_line_and_its_rule() -> None:
    known = Refusal(
        **{
            **{name: getattr(REFUSAL, name) for name in Refusal.__slots__},
            "node": "aten_elu_default",
            "exported": "elu",
            "operator": "aten.elu.default",
            "partitioner": "XnnpackPartitioner",
            "rule": "EluConfig",
            "source": "net.py:12",
        }
    )
    assert known.sentence == (
        "partition 1 of forward is refused at initialisation by the real kernels:"
        " aten_elu_default (aten.elu.default) from net.py:12: it says no;"
        " EluConfig of XnnpackPartitioner accepted it"
    )
    assert known.remedies == (
        "--deny-node elu",
        "--deny-op aten.elu.default",
        "--deny-rule EluConfig",
    )
    assert "node 3 (Elu)" in REFUSAL.sentence
    assert REFUSAL.remedies == ()
