"""Graphs as strings: constants keep their values, operators the overload that was called."""

from __future__ import annotations

import math
import struct
from typing import Any

import pytest
import torch

from runtime.execution.fused.agreement import Unoptimized
from runtime.execution.fused.graph_form import KINDS, GraphForm, UnscriptableError

_FLOATS = [
    0.0,
    -0.0,
    1e-5,
    -2.5e-7,
    0.1,
    1 / 3,
    5e-324,
    2.3e-308,
    1.7e308,
    math.inf,
    -math.inf,
    math.nan,
]
_INTEGERS = [0, 1, -1, (1 << 63) - 1, -(1 << 63)]


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize(
    "value",
    [*_FLOATS, *_INTEGERS, True, False, None, "", 'tanh "and" \\ \n more', [], [3, -4], [0.1, 2.0]],
    ids=repr,
)
def test_a_constant_is_returned_as_it_was_given(value: Any, alone: bool) -> None:
    form = GraphForm()
    if value == []:
        found = form.function(form.constructed([], KINDS[list]))()
    else:
        if not alone:
            form.constant(1)
        found = form.function(form.constant(value))()
    assert type(found) is type(value)
    if isinstance(value, float):
        assert struct.pack("<d", found) == struct.pack("<d", value)
    else:
        assert found == value


@pytest.mark.parametrize("value", [torch.float32, torch.int64, torch.strided, torch.device("cpu")])
def test_what_torch_counts_is_taken_by_its_operators(value: Any) -> None:
    form = GraphForm()
    given = [form.constant(None)] * 4
    place = [torch.dtype, torch.layout, torch.device].index(type(value))
    given[place] = form.constant(value)
    given.insert(0, form.constructed([form.constant(2)], KINDS[list]))
    made = form.operator("aten::zeros", "aten::zeros", given, [KINDS[torch.Tensor]])
    found = form.function(made[0])()
    assert value in (found.dtype, found.layout, found.device)


_TENSOR = "aten::mul.Tensor(Tensor self, Tensor other) -> Tensor"
_SCALAR = "aten::mul.Scalar(Tensor self, Scalar other) -> Tensor"


@pytest.mark.parametrize("number", [2, 0.5])
def test_an_operator_that_torch_reads_as_another_overload_is_refused(number: float) -> None:
    for _ in range(2):  # not only when it is seen first
        form = GraphForm()
        given = [form.input(torch.Tensor), form.constant(number)]
        with pytest.raises(UnscriptableError, match="is read as"):
            form.operator(_TENSOR, "aten::mul", given, ["Tensor"], ["Tensor", "Tensor"])
        made = form.operator(_SCALAR, "aten::mul", given, ["Tensor"], ["Tensor", "Scalar"])
        with Unoptimized():
            found = form.function(made[0])(torch.tensor([3.0]))
        assert found.tolist() == [3.0 * number]


def test_truth_values_are_no_numbers_to_graphs() -> None:
    form = GraphForm()
    given = [form.input(torch.Tensor), form.constant(value=True)]
    with pytest.raises(UnscriptableError, match="is read as"):
        form.operator(_SCALAR, "aten::mul", given, ["Tensor"], ["Tensor", "Scalar"])


def test_a_graph_is_refused_where_types_did_not_tell_the_overload() -> None:
    form = GraphForm()
    given = [form.input(torch.Tensor), form.constant(2)]
    made = form.operator("aten::mul.Tensor", "aten::mul", given, ["Tensor"])
    with pytest.raises(UnscriptableError, match=r"aten::mul\.Tensor is read as"):
        form.function(made[0])


def test_graphs_of_one_form_are_one_function() -> None:
    def made(factor: float) -> Any:
        form = GraphForm()
        given = [form.input(torch.Tensor), form.constant(factor)]
        return form.function(form.operator(_SCALAR, "aten::mul", given, ["Tensor"])[0])

    first = made(0.1)
    assert made(0.1) is first
    assert made(0.2) is not first


def test_scalars_are_given_before_tensors() -> None:
    form = GraphForm()
    tensor, number = form.input(torch.Tensor), form.input(int)
    made = form.operator(_SCALAR, "aten::mul", [tensor, number], ["Tensor"])
    with Unoptimized():
        assert form.function(made[0])(3, torch.tensor([2])).tolist() == [6]
