"""Kernels that reduce along dimensions."""

from __future__ import annotations

from runtime.kernels.rule import Rule, result
from runtime.untyped import aten

TABLE: dict[str, Rule] = {
    "aten::amax.out": result(aten.amax.default),
    "aten::amin.out": result(aten.amin.default),
    "aten::any.all_out": result(aten.any.default),
    "aten::any.dims_out": result(aten.any.dims),
    "aten::any.out": result(aten.any.dim),
    "aten::argmax.out": result(aten.argmax.default),
    "aten::argmin.out": result(aten.argmin.default),
    "aten::cumsum.out": result(aten.cumsum.default),
    "aten::linalg_vector_norm.out": result(aten.linalg_vector_norm.default),
    "aten::max.dim_max": result(aten.max.dim),
    "aten::max.unary_out": result(aten.max.default),
    "aten::mean.dtype_out": result(aten.mean.default),
    "aten::mean.out": result(aten.mean.dim),
    "aten::min.dim_min": result(aten.min.dim),
    "aten::min.unary_out": result(aten.min.default),
    "aten::prod.int_out": result(aten.prod.dim_int),
    "aten::prod.out": result(aten.prod.default),
    "aten::sort.values": result(aten.sort.default),
    "aten::sort.values_stable": result(aten.sort.stable),
    "aten::sum.IntList_out": result(aten.sum.dim_IntList),
    "aten::topk.values": result(aten.topk.default),
    "aten::var.correction_out": result(aten.var.correction),
    "aten::var.out": result(aten.var.dim),
    "aten::var_mean.correction_out": result(aten.var_mean.correction),
}
