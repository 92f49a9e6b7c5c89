"""``force_non_static_weights_for_f32_linear``: plain weights stay outside, in each flow."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn

from compiler import to_edge, to_edge_transform_and_lower
from compiler.backends.xnnpack import XnnpackPartitioner
from schema.etrecord.parts.verdicts import NodeOutcome
from tests.compiler.programs import Apply
from tests.compiler.stock import Stock
from tests.compiler.xnnpack import quantizing as q
from tests.compiler.xnnpack.test_dynamic_sizes import assert_runs

pytestmark = pytest.mark.slow
torch.manual_seed(0)
MATRIX, WIDE = torch.randn(32, 8), torch.randn(1, 8)


def lowered(program: Any, *, whole: bool) -> Any:
    partitioner = XnnpackPartitioner(force_non_static_weights_for_f32_linear=True)
    if whole:
        return to_edge_transform_and_lower(program, partitioner=[partitioner])
    return to_edge(program).to_backend(partitioner)


def outside(manager: Any) -> int:
    """Return how many weights the program itself holds and reads."""
    program = manager.exported_program()
    given = program.graph_signature.user_inputs
    nodes = [node for node in program.graph.nodes if node.op == "placeholder" and node.users]
    return sum(node.name not in given for node in nodes)


@pytest.mark.interop
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("sizes", [(3,), (1, 8), (2, 3, 4)])
def test_weights_stay_outside(
    sizes: tuple[int, ...], bias: bool, whole: bool, stock: Stock
) -> None:
    torch.manual_seed(len(sizes))
    module = nn.Sequential(nn.Linear(32, 8, bias=bias), nn.ReLU(), nn.Linear(8, 4, bias=bias))
    module.requires_grad_(requires_grad=False)
    x = torch.randn(*sizes, 32)
    manager = lowered(torch.export.export(module, (x,)), whole=whole)
    assert outside(manager) == 2 + 2 * bias
    verdicts = manager.verdicts["forward"]
    assert all(v.outcome is NodeOutcome.DELEGATED for v in verdicts), verdicts
    assert_runs(manager, module, [(x,)], stock, 1e-5)


@pytest.mark.interop
def test_a_quantized_layer_keeps_its_weight_and_bias_inside(stock: Stock) -> None:
    module = nn.Sequential(nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 5))
    for config in (q.STATIC, q.DYNAMIC):
        program = q.quantized(copy.deepcopy(module), (q.ROW,), config)
        for whole in (False, True):
            manager = lowered(program, whole=whole)
            assert outside(manager) == 0
            (found,) = stock.run_each([(manager.to_executorch().buffer, (q.ROW,))])
            (wanted,) = q.reference(program, (q.ROW,))
            assert not isinstance(found, str), found
            near = 0.03 * wanted.abs().max() + 2.01 * q.quantum(program)
            assert (found[0] - wanted).abs().max() <= near


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: torch.addmm(MATRIX[0], x, MATRIX, beta=2), "beta is 2"),
        (lambda x: torch.addmm(WIDE, x, MATRIX), "has 2 dimensions, not 1"),
        (lambda x: torch.addmm(x[:, :8] * 2, x, MATRIX), "not one value a column"),
    ],
)
def test_what_is_no_plain_layer_is_still_refused(function: Any, reason: str) -> None:
    program = torch.export.export(Apply(function), (torch.randn(3, 32),))
    manager = lowered(program, whole=False)
    assert any(reason in verdict.reason for verdict in manager.verdicts["forward"])
