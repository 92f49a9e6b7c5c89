"""Every kind of node in every element type, on the stock runtime and on both engines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from runtime import Runtime
from schema.payloads.xnnpack.nodes import NODE_KINDS
from tests.runtime.stock import Stock
from tests.runtime.xnnpack.float_cases import float_cases
from tests.runtime.xnnpack.payloads import Case
from tests.runtime.xnnpack.quantized_cases import quantized_cases
from tests.runtime.xnnpack.sessions import gap

pytestmark = [pytest.mark.slow, pytest.mark.interop]
CASES = {case.name: case for case in (*float_cases(), *quantized_cases())}
Found = Callable[[Case], list[Any]]


@pytest.fixture(scope="module")
def wanted(stock: Stock) -> dict[str, Any]:
    """Return what the stock runtime makes of each case."""
    found = stock.each([(case.program, case.inputs) for case in CASES.values()])
    return dict(zip(CASES, found, strict=True))


def outputs(case: Case, engine: str) -> list[torch.Tensor]:
    program = Runtime.get().load_program(case.program)
    found = program.load_method("forward", engine=engine).execute(case.inputs)
    program.unload_method("forward")
    return found


def test_cases_hold_every_kind_that_a_runtime_has() -> None:
    made = {node.xnode_union.kind for case in CASES.values() for node in case.graph.table.xnodes}
    assert {kind for kind, _ in NODE_KINDS} - made == {"ScaledDotProductAttention"}


@pytest.mark.parametrize("name", CASES)
def test_node_on_real_kernels_equals_stock_bit_for_bit(name: str, wanted: dict[str, Any]) -> None:
    found = outputs(CASES[name], "native")
    assert not isinstance(wanted[name], str), wanted[name]
    assert [gap(a, b) for a, b in zip(found, wanted[name], strict=True)] == [0.0] * len(found)


@pytest.mark.parametrize("name", CASES)
def test_node_on_torch_kernels_equals_stock(name: str, wanted: dict[str, Any]) -> None:
    case = CASES[name]
    for ours, stock in zip(outputs(case, "torch"), wanted[name], strict=True):
        if case.step:
            quanta = (ours.double() - stock.double()).abs().max()
            assert (ours.dtype, ours.shape) == (stock.dtype, stock.shape)
            assert float(quanta) <= case.step
        else:
            assert gap(ours, stock) <= case.tolerance
