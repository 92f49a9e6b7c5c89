"""The join of a payload goes on behind what its compiler took apart."""

from __future__ import annotations

from dataclasses import replace

import pytest

from inspector.files.load import load_session
from inspector.graph.delegate_inside import executed_inside
from inspector.join.lowered_kinds import becomes, operation
from inspector.numerics.flat_graph import FlatGraph
from inspector.numerics.shared_handles import DelegateEvent, distinguished
from tests.conftest import DATA
from tests.inspector.test_gap_payload_places import Sizes, _call, _found, _graph, _step

_SIZES = (2, 3)


def _named(graph: FlatGraph, steps: list[DelegateEvent]) -> dict[str, str]:
    given = replace(graph, inputs=(((), "x"),))
    return {name: one.name for name, one in _found(given, steps).items()}


def test_kinds_of_payloads_are_no_operators_of_the_same_letters() -> None:
    """SELECT of TOSA takes one of two values; a selection of a tensor is a slice there."""
    assert operation("aten.select_copy.int") == "select"
    assert operation("SELECT") == operation("aten.where.self") == "where"


@pytest.mark.parametrize(
    ("operator", "kind"),
    [
        ("aten::cat", "CONCAT"),
        ("aten::ge", "GREATER_EQUAL"),
        ("aten::bitwise_and", "LOGICAL_AND"),
        ("aten::logical_not", "LOGICAL_NOT"),
        ("aten::neg", "NEGATE"),
        ("quantized_decomposed::quantize_per_tensor", "quantize"),
        ("quantized_decomposed::dequantize_per_channel", "dequantize"),
    ],
)
def test_operators_with_another_name_in_a_payload(operator: str, kind: str) -> None:
    assert becomes(operator, kind)


def test_rounding_and_its_inverse_of_one_handle_have_a_step_each() -> None:
    """Core ML has both; were neither compared, what reads them would seem to be off by one."""
    graph = _graph(
        _SIZES,
        _call("q", "quantized_decomposed::quantize_per_tensor", "x", _SIZES),
        _call("d", "quantized_decomposed::dequantize_per_tensor", "q", _SIZES),
    )
    steps = [_step("quantize", "p_x", "a", _SIZES), _step("dequantize", "a", "b", _SIZES)]
    events = [replace(one, nodes=("q", "d")) for one in steps]
    found, _ = distinguished(graph.nodes, events)
    assert {name: one.name for name, one in found.items()} == {"q": "a", "d": "b"}


def test_linear_layer_that_became_a_convolution_is_found_by_what_it_reads() -> None:
    graph = _graph(
        _SIZES,
        _call("fc", "aten::linear", "x weight", (2, 4)),
        _call("out", "aten::tanh", "fc", (2, 4)),
    )
    steps = [_step("CONV2D", "p_x w", "a", (2, 4)), _step("TANH", "a", "b", (2, 4))]
    assert _named(graph, steps) == {"fc": "a", "out": "b"}


def _taken_apart(last: str) -> FlatGraph:
    return _graph(
        _SIZES,
        _call("soft", "aten::log1p", "x", _SIZES),
        _call("sum", "aten::add", "x soft", _SIZES),
        _call("out", last, "sum", _SIZES),
    )


def test_operator_that_reads_a_known_value_beside_an_unknown_one_is_the_only_such_node() -> None:
    steps = [
        _step("MUL", "p_x c", "a", _SIZES),
        _step("LOG", "a", "b", _SIZES),
        _step("ADD", "b p_x", "c", _SIZES),
        _step("TANH", "c", "d", _SIZES),
    ]
    found = _named(_taken_apart("aten::tanh"), steps)
    assert found == {"soft": "b", "sum": "c", "out": "d"}
    assert "sum" not in _named(_taken_apart("aten::erf"), steps)  # nothing reads both alike


def test_one_of_two_operators_that_read_the_same_known_value_is_not_chosen() -> None:
    steps = [
        _step("LOG", "p_x", "b", _SIZES),
        _step("EXP", "p_x", "e", _SIZES),
        _step("ADD", "b p_x", "c", _SIZES),
        _step("ADD", "e p_x", "f", _SIZES),
        _step("TANH", "c", "d", _SIZES),
        _step("TANH", "f", "g", _SIZES),
    ]
    assert "sum" not in _named(_taken_apart("aten::tanh"), steps)


def test_order_of_operands_counts_where_it_changes_the_result() -> None:
    graph = _graph(
        _SIZES,
        _call("soft", "aten::log1p", "x", _SIZES),
        _call("less", "aten::sub", "x soft", _SIZES),
        _call("out", "aten::tanh", "less", _SIZES),
    )
    steps = [_step("LOG", "p_x", "b", _SIZES), _step("TANH", "c", "d", _SIZES)]
    straight = [steps[0], _step("SUB", "p_x b", "c", _SIZES), steps[1]]
    turned = [steps[0], _step("SUB", "b p_x", "c", _SIZES), steps[1]]
    assert _named(graph, straight).get("less") == "c"
    assert "less" not in _named(graph, turned)


@pytest.mark.parametrize(
    ("operator", "given"),
    [
        ("aten::split_with_sizes_copy", {"split_sizes": (2, 4), "dim": 1}),
        ("aten::split_copy", {"split_size": 2, "dim": -1}),
    ],
)
def test_first_part_of_a_split_is_the_slice_that_takes_its_elements(
    operator: str, given: dict[str, object]
) -> None:
    graph = _graph(
        (3, 6),
        _call("parts", operator, "x", (3, 2), **given),
        _call("out", "aten::tanh", "parts", (3, 2)),
    )
    steps = [
        _step("SLICE", "p_x", "b", (3, 2), cut=((0, 0, 3, 1), (1, 2, 4, 1))),
        _step("SLICE", "p_x", "a", (3, 2), cut=((0, 0, 3, 1), (1, 0, 2, 1))),
        _step("TANH", "a", "c", (3, 2)),
    ]
    assert _named(graph, steps) == {"parts": "a", "out": "c"}


def test_slice_of_a_slice_is_one_slice_that_takes_its_elements() -> None:
    rows: Sizes = (1, 6)
    graph = _graph(
        (4, 6),
        _call("rows", "aten::slice_copy", "x", (2, 6), dim=0, start=2, end=4),
        _call("row", "aten::select_copy", "rows", (6,), dim=0, index=1),
        _call("out", "aten::tanh", "row", (6,)),
    )
    steps = [
        _step("SLICE", "p_x", "a", rows, cut=((0, 3, 4, 1), (1, 0, 6, 1))),
        _step("TANH", "a", "b", rows),
    ]
    assert _named(graph, steps).get("out") == "b"


def test_constant_that_is_copied_into_the_layout_of_a_device_is_known_by_its_content() -> None:
    session = load_session([DATA / "backends/vulkan_attention.pte"])
    inside = executed_inside(session, "forward", 0)
    copied = {one.node.outputs[0] for one in inside.nodes if "prepack" in one.node.target}
    reads = [
        value
        for one in inside.nodes
        for value in one.values
        if value.value.name in copied and not value.role.startswith("output")
    ]
    assert reads
    assert all(one.constant is not None for one in reads)


def _normalized(power: int) -> FlatGraph:
    """A vector divided by its length, which is at least something."""
    return _graph(
        _SIZES,
        _call("squares", "aten::pow", "x", _SIZES, exponent=power),
        _call("sum", "aten::sum", "squares", (2, 1), dim=1),
        _call("length", "aten::pow", "sum", (2, 1), exponent=0.5),
        _call("out", "aten::div", "x length", _SIZES),
    )


@pytest.mark.parametrize("power", [2, 3])
def test_squares_and_divisions_are_found_as_products(power: int) -> None:
    steps = [
        _step("MUL", "p_x p_x", "a", _SIZES),
        _step("REDUCE_SUM", "a", "b", (2, 1)),
        _step("POW", "b half", "c", (2, 1)),
        _step("RECIPROCAL", "c", "d", (2, 1)),
        _step("MUL", "p_x d", "e", _SIZES),
    ]
    found = _named(_normalized(power), steps)
    squares = {"squares": "a", "sum": "b", "length": "c", "out": "e"}
    assert found == (squares if power == 2 else {})
