"""Each rule: what it takes runs on the stock kernels as in eager, what it refuses has a reason."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from compiler import to_edge_transform_and_lower
from compiler.backends.xnnpack import (
    XnnpackDynamicallyQuantizedPartitioner,
    XnnpackPartitioner,
)
from compiler.backends.xnnpack.configs import ALL_PARTITIONER_CONFIGS
from compiler.pipeline.edge_manager import EdgeProgramManager
from schema.etrecord.parts.verdicts import NodeOutcome
from tests.compiler.stock import Stock
from tests.compiler.xnnpack.cases import NARROW_TYPES, REFUSED, TAKEN, Case

pytestmark = pytest.mark.slow


def lowered(case: Case, **options: Any) -> EdgeProgramManager:
    program = torch.export.export(case.module.eval(), case.inputs, dynamic_shapes=case.dynamic)
    return to_edge_transform_and_lower(program, partitioner=XnnpackPartitioner(**options))


def left(manager: EdgeProgramManager) -> list[str]:
    """Return what was not delegated, and why."""
    verdicts = manager.verdicts["forward"]
    return [f"{v.operator}: {v.reason}" for v in verdicts if v.outcome is not NodeOutcome.DELEGATED]


@pytest.mark.interop
@pytest.mark.parametrize("name", TAKEN)
def test_what_a_rule_takes_runs_on_the_stock_kernels_as_in_eager(name: str, stock: Stock) -> None:
    managers = [lowered(case) for case in TAKEN[name]]
    assert [left(manager) for manager in managers] == [[]] * len(managers)
    programs = [
        (manager.to_executorch().buffer, case.inputs)
        for manager, case in zip(managers, TAKEN[name], strict=True)
    ]
    for case, found in zip(TAKEN[name], stock.run_each(programs), strict=True):
        wanted = case.module(*case.inputs)
        assert not isinstance(found, str), found
        torch.testing.assert_close(found[0], wanted.detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.interop
@pytest.mark.parametrize("name", NARROW_TYPES)
def test_narrow_floats_run_on_the_stock_kernels_as_in_eager(name: str, stock: Stock) -> None:
    for case in NARROW_TYPES[name]:
        manager = lowered(case, enable_bf16=True)
        assert not left(manager)
        ((found,),) = stock.run_each([(manager.to_executorch().buffer, case.inputs)])
        wanted = case.module(*case.inputs)
        torch.testing.assert_close(found, wanted.detach(), rtol=2e-2, atol=1e-2)


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_rule_refuses_has_a_verdict_with_the_offending_value(name: str) -> None:
    for case in REFUSED[name]:
        manager = lowered(case)
        found = [v for v in manager.verdicts["forward"] if v.outcome is NodeOutcome.REJECTED]
        assert any(case.reason in v.reason for v in found), (case.reason, manager.verdicts)
        assert all(v.rule in {r.name for r in ALL_PARTITIONER_CONFIGS} for v in found)


def test_every_rule_but_those_of_quantization_has_a_case() -> None:
    assert {r.name for r in ALL_PARTITIONER_CONFIGS if not r.quantizing} == set(TAKEN)


@pytest.mark.parametrize(
    "partitioner", [XnnpackPartitioner, XnnpackDynamicallyQuantizedPartitioner]
)
def test_unknown_options_are_taken_with_a_warning_that_names_them(partitioner: Any) -> None:
    with pytest.warns(UserWarning, match=f"{partitioner.__name__} has no option alpha, force_x"):
        made = partitioner(force_x=True, alpha=1, per_op_mode=True)
    assert made.per_op_mode
    module = torch.nn.Sequential(torch.nn.Linear(8, 5), torch.nn.ReLU())
    program = torch.export.export(module, (torch.randn(3, 8),))
    found = to_edge_transform_and_lower(program, partitioner=made).verdicts["forward"]
    known = partitioner(per_op_mode=True)
    assert found == to_edge_transform_and_lower(program, partitioner=known).verdicts["forward"]
