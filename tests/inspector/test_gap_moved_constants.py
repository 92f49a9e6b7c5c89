"""Constants that a compiler has moved before it keeps them, and what they tell of steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from inspector.join.lowered_kinds import recorded_of_kinds
from inspector.numerics import moved_contents
from inspector.numerics.flat_graph import FlatGraph
from inspector.numerics.moved_contents import constant_contents
from inspector.numerics.payload_walk import walked
from inspector.numerics.report import INSIDE
from inspector.numerics.same_steps import content
from schema.etrecord import TensorData
from schema.graph import Argument, GraphNode, GraphValue, NodeKind, TensorMeta
from tests.conftest import DATA
from tests.inspector.test_gap_payload_walk import _gap
from tests.inspector.test_gap_same_steps import net, step

_FLOAT = 6
_ITEMS = np.arange(6, dtype="<f4").reshape(2, 3)


def _constant(items: np.ndarray, strides: tuple[int, ...] = (3, 1)) -> TensorData:
    return TensorData(_FLOAT, (2, 3), strides, data=memoryview(items.tobytes()))


def _moving(operator: str, sizes: tuple[int, ...], **given: object) -> FlatGraph:
    return _moving_to("made", "c", operator, sizes, given)


def _moving_to(
    name: str, read: str, operator: str, sizes: tuple[int, ...], given: Mapping[str, object]
) -> FlatGraph:
    graph = net((name, operator, read))
    (node,) = graph.nodes
    args = (Argument("x", (read,)), *(Argument(key, literal=one) for key, one in given.items()))
    own = replace(node, node=replace(node.node, args=args))
    meta = {((), name): GraphValue(name, tensor=TensorMeta(_FLOAT, sizes))}
    return replace(graph, nodes=(own,), meta=meta)


@pytest.mark.parametrize(
    ("operator", "given", "asked"),
    [
        ("aten::permute_copy", {"dims": [1, 0]}, _ITEMS.T),
        ("aten::transpose_copy", {"dim0": 0, "dim1": 1}, _ITEMS.T),
        ("aten::view_copy", {}, _ITEMS.reshape(3, 2)),
        ("aten::unsqueeze_copy", {}, _ITEMS.reshape(2, 1, 3)),
        ("aten::expand_copy", {}, np.broadcast_to(_ITEMS, (4, 2, 3))),
    ],
)
def test_moved_constant_has_the_content_of_its_elements(
    operator: str, given: dict[str, object], asked: np.ndarray
) -> None:
    found = constant_contents(_moving(operator, asked.shape, **given), {"c": _constant(_ITEMS)})
    assert found["c"] == content(_FLOAT, _ITEMS.tobytes())
    assert found["made"] == content(_FLOAT, asked.tobytes())


@pytest.mark.parametrize(
    ("operator", "sizes", "given"),
    [
        ("aten::permute_copy", (3, 2), {"dims": [1, 1]}),
        ("aten::permute_copy", (2, 3), {"dims": [1, 0]}),  # its sizes contradict
        ("aten::view_copy", (7,), {}),
        ("aten::expand_copy", (4, 3), {}),
        ("aten::expand_copy", (3,), {}),
        ("aten::expand_copy", (1 << 40, 2, 3), {}),
        ("aten::relu", (2, 3), {}),
    ],
)
def test_what_is_no_move_has_no_content(
    operator: str, sizes: tuple[int, ...], given: dict[str, object]
) -> None:
    found = constant_contents(_moving(operator, sizes, **given), {"c": _constant(_ITEMS)})
    assert "made" not in found


@pytest.mark.parametrize(("stored", "known"), [("<i8", True), ("<i4", True), ("<f8", False)])
def test_constant_that_a_record_casts_has_the_content_of_its_real_values(
    stored: str, known: bool
) -> None:
    """A hardswish adds an integer 3, which is an input of its own and cast to float32."""
    code = {"<i8": 4, "<i4": 3, "<f8": 7}[stored]
    given = TensorData(code, (2, 3), (3, 1), data=memoryview(_ITEMS.astype(stored).tobytes()))
    graph = _moving("dim_order_ops::_to_dim_order_copy", (2, 3))
    found = constant_contents(graph, {"c": given})
    assert (found.get("made") == content(_FLOAT, _ITEMS.tobytes())) == known
    assert ("made" in found) == known


def test_elements_of_a_constant_are_read_in_their_order() -> None:
    turned = TensorData(_FLOAT, (3, 2), (1, 3), data=memoryview(_ITEMS.tobytes()))
    found = constant_contents(_moving("aten::relu", (3, 2)), {"c": turned})
    assert found["c"] == content(_FLOAT, _ITEMS.T.tobytes())


@pytest.mark.parametrize(
    "damaged",
    [
        _constant(_ITEMS, (4, 1)),  # beyond its bytes
        _constant(_ITEMS, (-3, 1)),
        _constant(_ITEMS, (3,)),
        replace(_constant(_ITEMS), data=None),
        replace(_constant(_ITEMS), data=memoryview(b"123")),
        replace(_constant(_ITEMS), big_endian=True),
        replace(_constant(_ITEMS), sizes=(1 << 40, 1 << 40), strides=(0, 0)),
    ],
)
def test_constant_that_cannot_be_read_has_no_content(damaged: TensorData) -> None:
    assert constant_contents(_moving("aten::view_copy", (6,)), {"c": damaged}) == {}


def test_moved_constants_are_held_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moved_contents, "_MOST_HELD", _ITEMS.nbytes)
    graph = _moving("aten::view_copy", (6,))
    behind = _moving_to("again", "made", "aten::view_copy", (6,), {})
    meta = {**graph.meta, **behind.meta}
    both = replace(graph, nodes=(*graph.nodes, *behind.nodes), meta=meta)
    assert {*constant_contents(both, {"c": _constant(_ITEMS)})} == {"c", "made"}


@pytest.mark.parametrize("told", [True, False])
def test_products_of_one_value_are_told_apart_by_their_constants(told: bool) -> None:
    graph = net(
        ("one", "aten::bmm", "x", "p"),
        ("other", "aten::bmm", "x", "q"),
        p="1:p",
        q="1:q",
    )
    held = ("1:q", "1:p") if told else ("1:r", "1:s")
    events = [
        step("MATMUL", "p_x a", "second", _FLOAT, a=held[0]),
        step("MATMUL", "p_x b", "first", _FLOAT, b=held[1]),
    ]
    found = walked(graph, graph.nodes, {}, {"one", "other"}, events, {"p_x": ((), "x")})
    writers = {name: one.writes[0] for name, one in found.items()}
    assert writers == ({"one": "first", "other": "second"} if told else {})


def _call(name: str, target: str) -> GraphNode:
    return GraphNode(name, NodeKind.CALL, target)


_CONV, _CLAMPED = "aten.convolution.default", "et_vk.conv_with_clamp.default"


@pytest.mark.parametrize(
    ("kinds", "joined"),
    [
        ((_CLAMPED, _CONV, _CLAMPED), 3),  # fused with an activation, or not
        ((_CLAMPED, _CONV), 0),
        ((_CONV, _CONV, _CONV), 3),
        ((_CONV, _CLAMPED, "aten.relu.default"), 0),
        ((_CONV, "aten.relu.default", _CLAMPED, _CONV), 3),
    ],
)
def test_kinds_of_one_operator_are_counted_together(kinds: tuple[str, ...], joined: int) -> None:
    recorded = [_call(f"conv_{place}", _CONV) for place in range(3)]
    payload = [_call(f"step_{place}", kind) for place, kind in enumerate(kinds)]
    found = recorded_of_kinds(payload, recorded)
    own = [one.name for one in payload if one.target != "aten.relu.default"]
    pairs = {name: (f"conv_{place}", False) for place, name in enumerate(own)}
    assert found == (pairs if joined else {})


@pytest.mark.slow
@pytest.mark.parametrize(("name", "least"), [("tosa_spectral", 20), ("tosa_spectral_int8", 27)])
def test_products_with_constants_of_a_stock_payload_are_found(
    name: str, least: int, tmp_path: Path
) -> None:
    """Without contents of moved constants 5 of each are."""
    run = _gap(DATA / "backends" / name, tmp_path)
    rows = [row for row in run.rows if row.place == INSIDE and row.total is not None]
    assert len(rows) >= least
    assert all(row.total is not None and row.total.max_abs < 1e-5 for row in rows)
    assert run.first_divergence() is None
