"""The value of an operator of several steps is that of the last which all of them pass."""

from __future__ import annotations

from inspector.numerics.payload_walk import walked
from inspector.numerics.shared_handles import DelegateEvent
from tests.inspector.test_gap_payload_places import _call, _found, _graph, _step

_SIZES = (2, 3)
_ELU = [  # as TOSA has it, without an operator of its own
    _step("EXP", "p_x", "a", _SIZES),
    _step("SUB", "a one", "b", _SIZES),
    _step("GREATER_EQUAL", "p_x zero", "c", _SIZES),
    _step("SELECT", "c p_x b", "d", _SIZES),
]
_TWO = [_step("EXP", "d", "y", _SIZES), _step("LOG", "d", "z", _SIZES)]


def _names(operators: str, steps: list[DelegateEvent], *, ends: str = "") -> dict[str, str]:
    """Return the steps of nodes in a row, named by their operators; two others read the last."""
    calls, before = [], "x"
    for operator in operators.split():
        calls.append(_call(operator, f"aten::{operator}", before, _SIZES))
        before = operator
    calls += [_call(f"end{one}", f"aten::{one}", before, _SIZES) for one in ends.split()]
    return {name: one.name for name, one in _found(_graph(_SIZES, *calls), steps).items()}


def test_value_of_an_operator_that_two_others_read_is_its_last_step() -> None:
    assert _names("elu", _ELU + _TWO, ends="mish gelu") == {"elu": "d"}


def test_steps_behind_it_are_those_of_the_nodes_behind_it() -> None:
    last = [_step("ADD", "d half", "e", _SIZES), _step("TANH", "e", "f", _SIZES)]
    more = [_step("EXP", "f", "y", _SIZES), _step("LOG", "f", "z", _SIZES)]
    found = _names("elu add tanh", [*_ELU, *last, *more], ends="mish gelu")
    assert found == {"elu": "d", "add": "e", "tanh": "f"}


def test_mean_is_found_behind_its_sums_and_before_a_division_by_a_reciprocal() -> None:
    graph = _graph(
        (2, 3, 4),
        _call("m", "aten::mean", "x", (2, 1, 1)),
        _call("s", "aten::sigmoid", "x", (2, 3, 4)),
        _call("r", "aten::div", "s m", (2, 3, 4)),
    )
    steps = [
        _step("REDUCE_SUM", "p_x", "a", (2, 3, 1)),
        _step("REDUCE_SUM", "a", "b", (2, 1, 1)),
        _step("MUL", "b part", "c", (2, 1, 1)),
        _step("SIGMOID", "p_x", "d", (2, 3, 4)),
        _step("RECIPROCAL", "c", "e", (2, 1, 1)),
        _step("MUL", "d e", "f", (2, 3, 4)),
    ]
    found = {name: one.name for name, one in _found(graph, steps).items()}
    assert found == {"m": "c", "s": "d", "r": "f"}


def test_two_such_operators_in_a_row_are_not_told_apart() -> None:
    more = [_step("MUL", "d d", "e", _SIZES), _step("TANH", "e", "f", _SIZES)]
    end = [_step("EXP", "f", "y", _SIZES), _step("LOG", "f", "z", _SIZES)]
    assert _names("elu mish", [*_ELU, *more, *end], ends="gelu erf") == {}


def test_operator_that_left_no_step_has_none_of_another_node() -> None:
    steps = [_step("MUL", "p_x half", "d", _SIZES), *_TWO]
    assert "elu" not in _names("elu mul", steps, ends="mish gelu")


def test_steps_that_do_not_meet_again_have_no_last_one() -> None:
    steps = [*_ELU[:2], _step("LOG", "p_x", "d", _SIZES)]
    assert _names("elu", steps, ends="mish gelu") == {}


def test_steps_before_a_known_value_are_not_its_own_where_that_has_several_too() -> None:
    """A layer norm behind it is known by the product that reads it: its steps are its own."""
    last = (2, 4)
    graph = _graph(
        _SIZES,
        _call("elu", "aten::elu", "x", _SIZES),
        _call("norm", "aten::native_layer_norm", "elu", _SIZES),
        _call("fc", "aten::mm", "norm weight", last),
        _call("out", "aten::tanh", "fc", last),
    )
    steps = [
        *_ELU,
        _step("MUL", "d factor", "e", _SIZES),
        _step("ADD", "e shift", "f", _SIZES),
        _step("MATMUL", "f w", "g", last),
        _step("TANH", "g", "h", last),
    ]
    names = {one.node.name for one in graph.nodes}
    border = {"p_x": ((), "x"), "h": ((), "out")}
    found = walked(graph, graph.nodes, {}, names, steps, border)
    assert "elu" not in found
    assert found["norm"].name == "f"
