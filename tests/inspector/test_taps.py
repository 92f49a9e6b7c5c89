"""Taps: values inside of delegates as outputs, equal to those ahead of time."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils import _pytree as pytree

from compiler import to_edge_transform_and_lower
from compiler.backends.xnnpack import XnnpackPartitioner
from compiler.compat.taps import (
    FULL_TENSOR,
    STATS,
    StatReducer,
    find_tap_nodes,
    get_reducer,
    select_all,
    select_all_call_function,
    select_any,
    select_by_module_class,
    select_by_module_path,
    select_by_op_type,
    select_not,
    strip_taps_,
    tap_intermediate_outputs_,
)
from inspector.compat.taps import compare_aot_runtime_dataframe, tap_compare
from runtime import Runtime

pytestmark = pytest.mark.slow


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm = nn.Linear(6, 6), nn.LayerNorm(6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(torch.relu(self.linear(x))) + x


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.layers = nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        for layer in self.layers:
            x = layer(x)
        return {"logits": self.head(x), "class": self.head(x).argmax(-1)}


INPUTS = (torch.linspace(-2, 2, 24).reshape(4, 6),)


def exported() -> torch.export.ExportedProgram:
    return torch.export.export(Net().eval(), INPUTS)


def ran(tapped: Any, partitioner: list[Any]) -> tuple[list[Any], list[Any], Any]:
    expected = pytree.tree_leaves(tapped.module()(*INPUTS))
    edge = to_edge_transform_and_lower(tapped, partitioner=partitioner)
    strip_taps_(edge)
    assert find_tap_nodes(edge.exported_program().graph_module) == []
    program = edge.to_executorch()
    found = Runtime.get().load_program(program.buffer).load_method("forward").execute(INPUTS)
    return expected, list(found), program


@pytest.mark.parametrize("partitioner", [[], [XnnpackPartitioner()]], ids=["portable", "xnnpack"])
@pytest.mark.parametrize("reducer", [STATS, "FULL_TENSOR"])
def test_taps_of_every_call_equal_the_values_ahead_of_time(partitioner: Any, reducer: Any) -> None:
    tapped, specs = tap_intermediate_outputs_(exported(), (select_all_call_function(), reducer))
    assert len(specs) >= 10
    expected, found, program = ran(tapped, partitioner)
    assert len(found) == len(expected) == 2 + len(specs)
    for one, other in zip(expected, found, strict=True):
        torch.testing.assert_close(other, one, atol=1e-4, rtol=1e-4)
    delegates = program.executorch_program.execution_plan[0].delegates
    assert bool(delegates) == bool(partitioner)


def test_statistics_are_those_of_the_tensor() -> None:
    values = torch.tensor([[3.0, -4.0, 0.0], [float("nan"), float("inf"), 1.0]])
    row = dict(zip(STATS.fields, STATS.eager(values).tolist(), strict=True))
    assert (row["nan_count"], row["inf_count"], row["zero_count"]) == (1, 1, 1)
    plain = dict(zip(STATS.fields, STATS.eager(values[:1]).tolist(), strict=True))
    assert plain["min"], plain["max"] == (-4, 3)
    assert plain["l2_norm"] == 5
    assert plain["p99_abs"] == 4
    assert math.isclose(plain["rms"], math.sqrt(25 / 3), rel_tol=1e-6)
    assert math.isclose(plain["std"], values[0].std(correction=0).item(), rel_tol=1e-6)


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (select_by_op_type("aten.linear.default"), 4),
        (select_by_module_class("Linear"), 4),
        (select_by_module_class("Block"), 2),
        (select_by_module_path("layers.*", output_only=True), 2),
        (select_by_module_path("layers.0", output_only=False), 4),
        (select_any(select_by_op_type("relu.default"), select_by_op_type("argmax.default")), 3),
        (
            select_all(
                select_by_op_type("linear.default"), select_not(select_by_module_path("head"))
            ),
            2,
        ),
    ],
)
def test_selectors_choose_the_nodes(selector: Any, expected: int) -> None:
    _, specs = tap_intermediate_outputs_(exported(), (selector, FULL_TENSOR))
    assert len(specs) == expected
    assert all(spec.module_class or spec.op_target for spec in specs)


def test_own_reducer_is_traced_into_the_program() -> None:
    own = StatReducer(
        "MAX_LESS_SUM", ("difference",), None, lambda x: (x.amax() - x.sum()).reshape(1)
    )
    tapped, specs = tap_intermediate_outputs_(exported(), (select_by_module_class("Block"), own))
    expected, found, _ = ran(tapped, [XnnpackPartitioner()])
    frame = compare_aot_runtime_dataframe(specs, expected, found)
    assert list(frame["module_path"]) == ["layers.0", "layers.1"]
    assert frame["aot_difference"].tolist() == pytest.approx(
        frame["rt_difference"].tolist(), rel=1e-5
    )


def test_one_call_compares_a_model_with_its_delegated_form() -> None:
    frame, specs = tap_compare(
        Net().eval(),
        INPUTS,
        [XnnpackPartitioner()],
        rules=(select_by_module_class("Linear"), FULL_TENSOR),
    )
    assert len(frame) == len(specs) == 4
    assert (frame["sqnr_db"] > 90).all()
    assert (frame["aot_numel"] == frame["rt_numel"]).all()


def test_what_selects_nothing_is_an_error_or_a_warning() -> None:
    nothing = (select_by_op_type("no.such.op"), STATS)
    with pytest.raises(ValueError, match="selects"):
        tap_intermediate_outputs_(exported(), nothing)
    with pytest.warns(UserWarning, match="selects"):
        assert tap_intermediate_outputs_(exported(), nothing, error_on_empty=False)[1] == []
    with pytest.raises(ValueError, match="empty"):
        tap_intermediate_outputs_(exported(), [])
    with pytest.raises(ValueError, match="unknown reducer 'X'; available: FULL_TENSOR, STATS"):
        get_reducer("X")
    assert len(tap_intermediate_outputs_(exported(), max_taps=3)[1]) == 3
