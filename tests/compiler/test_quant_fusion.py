"""Fused quantized operators: which are fused, and that the stock kernels give equal numbers."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import pytest
import torch
from torch import nn

import compiler
from compiler import ExecutorchBackendConfig, ops, to_edge
from compiler.dialect.quantized import packed, unpacked
from schema import program as pte
from tests.compiler.programs import Apply
from tests.compiler.stock import Stock

pytestmark = pytest.mark.slow

_q = ops.edge.quantized_decomposed
_aten = ops.edge.aten
_FUSING = ExecutorchBackendConfig(do_quant_fusion_and_const_prop=True)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # torch's, that its quantization has moved
    importlib.import_module("torch.ao.quantization.fx._decomposed")


def _dq(x: Any, scale: float, zero: int, dtype: Any = torch.uint8) -> Any:
    low, high = (-128, 127) if dtype == torch.int8 else (0, 255)
    return torch.ops.quantized_decomposed.dequantize_per_tensor(x, scale, zero, low, high, dtype)


def _quantize(x: Any, scale: float, zero: int, dtype: Any = torch.uint8) -> Any:
    low, high = (-128, 127) if dtype == torch.int8 else (0, 255)
    return torch.ops.quantized_decomposed.quantize_per_tensor(x, scale, zero, low, high, dtype)


def _sum(x: Any, y: Any, dtype: Any = torch.uint8) -> Any:
    return _dq(x, 0.1, 30, dtype) + _dq(y, 0.2, 40, dtype)


def _read_twice(x: Any, y: Any) -> Any:
    positive = _sum(x, y).relu()
    return _quantize(positive, 0.3, 9), positive.neg()


# name: function of two tensors, their element type, whether one operator is left
SUMS: dict[str, tuple[Any, Any, bool]] = {
    "sum": (lambda x, y: _quantize(_sum(x, y), 0.3, 50), torch.uint8, True),
    "relu": (lambda x, y: _quantize(_sum(x, y).relu(), 0.3, 100), torch.uint8, True),
    "relu from zero": (lambda x, y: _quantize(_sum(x, y).relu(), 0.3, 0), torch.uint8, True),
    "number": (lambda x, y: _quantize(_dq(x, 0.1, 3) + 2.5, 0.3, 5) + y, torch.uint8, False),
    "rows": (lambda x, y: _quantize(_sum(x, y[:1]), 0.3, 50), torch.uint8, False),
    "relu read twice": (_read_twice, torch.uint8, False),
    # The kernel ends the process at numbers below zero.
    "signed": (
        lambda x, y: _quantize(_sum(x, y, torch.int8), 0.3, 5, torch.int8),
        torch.int8,
        False,
    ),
}


def _targets(manager: compiler.EdgeProgramManager) -> list[Any]:
    nodes = manager.exported_program().graph.nodes
    return [node.target for node in nodes if node.op == "call_function"]


def _sum_inputs(dtype: Any) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(4)
    first, second = (torch.randint(0, 120, (4, 5)).to(dtype) for _ in range(2))
    return first, second


@pytest.mark.parametrize("name", SUMS)
def test_sums_are_fused_where_the_kernel_can_take_them(name: str) -> None:
    function, dtype, is_fused = SUMS[name]
    inputs = _sum_inputs(dtype)
    manager = to_edge(torch.export.export(Apply(function), inputs))
    changed = manager.transform([compiler.QuantFusionPass()])
    assert (_q.add.default in _targets(changed)) is is_fused
    if not is_fused:
        return
    assert _targets(changed) == [_q.add.default]
    assert changed.exported_program().module()(*inputs).equal(function(*inputs))
    (node,) = (n for n in changed.exported_program().graph.nodes if n.op == "call_function")
    (added,) = (n for n in manager.exported_program().graph.nodes if n.target is _aten.add.Tensor)
    assert node.meta["debug_handle"] == added.meta["debug_handle"]


def test_sum_of_sizes_known_at_run_time_is_left() -> None:
    rows = torch.export.Dim("rows", min=2, max=8)
    inputs = _sum_inputs(torch.uint8)
    shapes = ({0: rows}, {0: rows})
    function = SUMS["sum"][0]
    exported = torch.export.export(
        Apply(lambda x, y: function(x, y)), inputs, dynamic_shapes=(shapes,)
    )
    changed = to_edge(exported).transform([compiler.QuantFusionPass()])
    assert _q.add.default not in _targets(changed)


@pytest.mark.interop
def test_sums_give_equal_numbers_on_the_stock_kernels(stock: Stock) -> None:
    programs: list[tuple[bytes, Any]] = []
    wanted: list[Any] = []
    for function, dtype, _ in SUMS.values():
        inputs = _sum_inputs(dtype)
        edge = to_edge(torch.export.export(Apply(function), inputs))
        programs.append((edge.to_executorch(_FUSING).buffer, inputs))
        wanted.append(function(*inputs))
    for name, found, expected in zip(SUMS, stock.run_each(programs), wanted, strict=True):
        assert not isinstance(found, str), (name, found)
        every = expected if isinstance(expected, tuple) else (expected,)
        for one, other in zip(found, every, strict=True):
            assert one.equal(other), name


class _Rows(nn.Module):
    """A table that is dequantized row by row and then looked up."""

    def __init__(self, low: int, high: int, columns: int = 8, dtype: Any = torch.int8) -> None:
        super().__init__()
        torch.manual_seed(low + high)
        self.register_buffer("rows", torch.randint(low, high + 1, (10, columns)).to(dtype))
        self.register_buffer("scales", torch.rand(10) + 0.1)
        self.register_buffer("zeros", torch.randint(0, 5, (10,)))

    def forward(self, places: torch.Tensor) -> torch.Tensor:
        """Return rows as they are, and some of them twice."""
        rows: Any = self.rows
        bounds = (0, 255) if rows.dtype == torch.uint8 else (-128, 127)
        weight = torch.ops.quantized_decomposed.dequantize_per_channel(
            rows, self.scales, self.zeros, 0, *bounds, rows.dtype
        )
        return nn.functional.embedding(places, weight)


def _by_torchao(bits: int, group: int, mapping: str, dtype: Any = torch.float32) -> nn.Module:
    """Return an embedding that torchao has quantized, by groups of columns or (0) by row."""
    from torchao.quantization import quantize_
    from torchao.quantization.granularity import PerAxis, PerGroup
    from torchao.quantization.quant_api import IntxWeightOnlyConfig
    from torchao.quantization.quant_primitives import MappingType

    torch.manual_seed(bits)
    module = nn.Sequential(nn.Embedding(10, 16), nn.Linear(16, 3)).to(dtype).eval()
    config = IntxWeightOnlyConfig(
        weight_dtype=getattr(torch, f"int{bits}"),
        granularity=PerGroup(group) if group else PerAxis(0),
        mapping_type=MappingType[mapping],
    )
    quantize_(module, config, lambda one, _: isinstance(one, nn.Embedding))
    return module


# name: how to make the module, and the kernel
TABLES: dict[str, tuple[Any, str]] = {
    "bytes": (lambda: _Rows(-100, 100), "embedding_byte"),
    "unsigned": (lambda: _Rows(0, 200, dtype=torch.uint8), "embedding_byte"),
    "nibbles": (lambda: _Rows(-8, 7), "embedding_4bit"),
    "pairs of bits": (lambda: _Rows(-2, 1), "embedding_2bit"),
    "odd columns": (lambda: _Rows(-8, 7, columns=7), "embedding_byte"),
    "columns in pairs": (lambda: _Rows(-2, 1, columns=6), "embedding_4bit"),
    **{
        f"torchao {bits} {group} {mapping}": (
            lambda bits=bits, group=group, mapping=mapping: _by_torchao(bits, group, mapping),
            {8: "embedding_byte", 4: "embedding_4bit", 2: "embedding_2bit"}[bits],
        )
        for bits in (8, 4, 2)
        for group, mapping in ((0, "SYMMETRIC"), (4, "ASYMMETRIC"))
    },
    "half": (lambda: _by_torchao(4, 8, "ASYMMETRIC", torch.float16), "embedding_4bit"),
}
_PLACES = torch.tensor([[1, 7], [9, 0]])


@pytest.fixture(scope="module")
def tables() -> dict[str, Any]:
    """Exported programs by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torchao's, about itself
        return {
            name: torch.export.export(made().eval(), (_PLACES,))
            for name, (made, _) in TABLES.items()
        }


def test_tables_are_looked_up_packed(tables: dict[str, Any]) -> None:
    for name, exported in tables.items():
        program = to_edge(exported).to_executorch(_FUSING)
        (plan,) = pte.decode(program.buffer).plans
        names = [op.name for op in plan.operators]
        assert [f"quantized_decomposed::{TABLES[name][1]}"] == [n for n in names if "embed" in n], (
            name
        )
        assert not any("dequantize" in n for n in names), name


@pytest.mark.interop
def test_tables_give_equal_numbers_on_the_stock_kernels(
    stock: Stock, tables: dict[str, Any]
) -> None:
    programs = [
        (to_edge(exported).to_executorch(_FUSING).buffer, (_PLACES,))
        for exported in tables.values()
    ]
    for (name, exported), found in zip(tables.items(), stock.run_each(programs), strict=True):
        assert not isinstance(found, str), (name, found)
        wanted = exported.module()(_PLACES)
        assert (found[0] - wanted).abs().max() <= (1e-3 if name == "half" else 1e-6), name


def test_table_that_is_not_known_keeps_its_bytes() -> None:
    manager = to_edge(torch.export.export(_Rows(-8, 7).eval(), (_PLACES,)))
    (gone,) = (
        n for n in manager.exported_program().graph.nodes if n.target is _aten.embedding.default
    )
    known = compiler.QuantFusionPass(node_value_dict={})
    changed = manager.transform([known, compiler.ConstantPropPass()])
    assert _targets(changed) == [_q.embedding_byte.default]
    (node,) = (n for n in changed.exported_program().graph.nodes if n.op == "call_function")
    assert node.meta["debug_handle"] == gone.meta["debug_handle"]


def test_places_in_32_bits_are_left_to_the_plain_embedding() -> None:
    exported = torch.export.export(_Rows(-8, 7).eval(), (_PLACES.to(torch.int32),))
    manager = to_edge(exported).transform([compiler.QuantFusionPass()])
    assert _aten.embedding.default in _targets(manager)


@pytest.mark.parametrize("bits", [2, 4])
def test_packed_numbers_are_unpacked_to_the_same(bits: int) -> None:
    rows = torch.arange(-(1 << bits - 1), 1 << bits - 1, dtype=torch.int8).repeat(3, 2)
    assert unpacked(packed(rows, bits), bits).equal(rows)
    assert packed(rows, bits).shape == (3, rows.shape[1] * bits // 8)
