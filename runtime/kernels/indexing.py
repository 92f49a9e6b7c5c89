"""Kernels that index, scatter, concatenate and permute elements."""

from __future__ import annotations

from runtime.kernels.rule import Rule, result
from runtime.untyped import aten

TABLE: dict[str, Rule] = {
    "aten::cat.out": result(aten.cat.default),
    "aten::flip.out": result(aten.flip.default),
    "aten::gather.out": result(aten.gather.default),
    "aten::index.Tensor_out": result(aten.index.Tensor),
    "aten::index_put.out": result(aten.index_put.default),
    "aten::index_select.out": result(aten.index_select.default),
    "aten::masked_fill.Scalar_out": result(aten.masked_fill.Scalar),
    "aten::masked_scatter.out": result(aten.masked_scatter.default),
    "aten::masked_select.out": result(aten.masked_select.default),
    "aten::nonzero.out": result(aten.nonzero.default),
    "aten::repeat_interleave.Tensor_out": result(aten.repeat_interleave.Tensor),
    "aten::roll.out": result(aten.roll.default),
    "aten::scatter.src_out": result(aten.scatter.src),
    "aten::scatter.value_out": result(aten.scatter.value),
    "aten::scatter_add.out": result(aten.scatter_add.default),
    "aten::scatter_reduce.two_out": result(aten.scatter_reduce.two),
    "aten::select_scatter.out": result(aten.select_scatter.default),
    "aten::slice_scatter.out": result(aten.slice_scatter.default),
    "aten::stack.out": result(aten.stack.default),
    "aten::tril.out": result(aten.tril.default),
    "aten::where.self_out": result(aten.where.self),
}
