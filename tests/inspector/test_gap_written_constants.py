"""Constants that a payload has as numbers, layouts of integers, and what is kept of both."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from inspector.graph.delegate_inside import InsideNode, InsideValue
from inspector.numerics import payload_places
from inspector.numerics.payload_flow import payload_event
from inspector.numerics.payload_places import ElementPlaces
from inspector.numerics.payload_values import PayloadValues
from inspector.numerics.report import INSIDE
from inspector.numerics.same_steps import content
from inspector.numerics.traced import is_dense
from schema.etdump import DebugTensor
from schema.graph import GraphNode, GraphValue, NodeKind, TensorMeta
from tests.conftest import DATA
from tests.inspector.test_gap_payload_walk import _gap
from tests.inspector.test_gap_same_steps import net, step


def _node(kind: str, *values: GraphValue) -> InsideNode:
    read = [InsideValue(f"input{place}", one, None) for place, one in enumerate(values)]
    made = InsideValue("output0", GraphValue("made"), None)
    return InsideNode(0, GraphNode("one", NodeKind.CALL, kind), (*read, made), "", inserted=False)


@pytest.mark.parametrize("code", [1, 2, 3, 6])
def test_numbers_of_a_payload_have_the_content_of_their_bytes(code: int) -> None:
    kind = {1: "<i1", 2: "<i2", 3: "<i4", 6: "<f4"}[code]
    value = GraphValue("c", TensorMeta(code, (3,)), literal=(1, -2, 3))
    asked = content(code, np.array([1, -2, 3], kind).tobytes())
    assert payload_event(_node("MUL", value)).constants == (("c", asked),)


@pytest.mark.parametrize(
    ("code", "literal"),
    [
        (1, (300,)),  # no integer of 8 bits
        (1, ("%7",)),  # what is not known of a module
        (6, ("%7", 1.0)),
        (1, 5),  # no list
        (1, None),
        (77, (1,)),
        (1, (1,) * (1 << 17)),
        (1, ((1, 2), (3,))),
    ],
)
def test_numbers_that_are_no_elements_have_no_content(code: int, literal: object) -> None:
    value = GraphValue("c", TensorMeta(code, (1,)), literal=literal)
    assert payload_event(_node("MUL", value)).constants == ()


@pytest.mark.parametrize(
    ("start", "size", "cut"),
    [
        ((0, 1), (2, 3), ((0, 0, 2, 1), (1, 1, 4, 1))),
        ((0,), (2, 3), ()),
        (("%1", 0), (2, 3), ()),
        (None, (2, 3), ()),
    ],
)
def test_bounds_of_a_slice_may_be_numbers_of_the_payload(
    start: object, size: object, cut: tuple[tuple[int, ...], ...]
) -> None:
    whole = GraphValue("x", TensorMeta(1, (2, 4)))
    bounds = (GraphValue(name, None, "list", one) for name, one in (("s", start), ("n", size)))
    assert payload_event(_node("SLICE", whole, *bounds)).cut == cut


@pytest.mark.parametrize(
    ("sizes", "strides", "dense"),
    [
        ((2, 3), (3, 1), True),
        ((2, 3), (1, 2), False),
        ((1, 1, 1, 12), (12, 1, 1, 1), True),  # a pool in channels last
        ((1, 4, 1), (9, 1, 5), True),
        ((2, 3), (3,), False),
        ((), (), True),
    ],
)
def test_stride_of_one_element_does_not_matter(
    sizes: tuple[int, ...], strides: tuple[int, ...], dense: bool
) -> None:
    assert is_dense(DebugTensor(1, sizes, strides, 0)) is dense


def test_places_are_kept_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payload_places, "_MOST_PLACES", 100)
    graph = net(("a", "aten::relu", "x"))
    places = ElementPlaces(PayloadValues(graph, graph.nodes, [step("CLAMP", "x", "y")]))
    for count in range(1, 60):
        assert places._in_order(count).tolist() == list(range(count))
        assert sorted(places._channels_last((1, 2, count))) == list(range(2 * count))
    kept = (places._straight, places._last, places._layouts)
    assert sum(one.size for each in kept for one in each.values()) <= 100


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("tosa_summed_int8", 9),
        ("tosa_normed_int8", 21),
        ("vgf_normed_int8", 18),  # 16 without its numbers
    ],
)
def test_integers_of_a_stock_payload_are_found_in_its_layout(
    name: str, least: int, tmp_path: Path
) -> None:
    run = _gap(DATA / "backends" / name, tmp_path)
    rows = [row for row in run.rows if row.place == INSIDE and row.total is not None]
    assert len(rows) >= least
    assert all(row.total is not None and row.total.max_abs == 0 for row in rows)
    assert run.first_divergence() is None
