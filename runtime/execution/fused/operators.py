"""Sets of operators: native out variants, kernels that allocate their result, and views."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_torch: Any = torch
_nn: Any = _torch._C._nn

_SAME_NAME = [
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "ceil",
    "cos",
    "cosh",
    "erf",
    "exp",
    "expm1",
    "floor",
    "log",
    "log10",
    "log1p",
    "log2",
    "logical_not",
    "bitwise_not",
    "neg",
    "reciprocal",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
    "add",
    "sub",
    "mul",
    "div",
    "maximum",
    "minimum",
    "logical_and",
    "logical_or",
    "logical_xor",
    "atan2",
    "addmm",
    "bmm",
    "mm",
    "amax",
    "amin",
    "argmax",
    "argmin",
    "cat",
    "cumsum",
    "clamp",
    "mean",
]
_SCALAR = ("add", "sub", "mul", "div")
_COMPARED = ("eq", "ge", "gt", "le", "lt", "ne")

DIRECT: dict[str, Callable[..., Any]] = {
    **{f"aten::{name}.out": getattr(_torch, name) for name in _SAME_NAME},
    **{f"aten::{name}.Scalar_out": getattr(_torch, name) for name in (*_SCALAR, *_COMPARED)},
    **{f"aten::{name}.Tensor_out": getattr(_torch, name) for name in _COMPARED},
    "aten::_softmax.out": _torch.ops.aten._softmax.out,
    "aten::_log_softmax.out": _torch.ops.aten._log_softmax.out,
    "aten::any.out": _torch.any,
    "aten::div.out_mode": _torch.div,
    "aten::elu.out": _nn.elu,
    "aten::gelu.out": _nn.gelu,
    "aten::hardtanh.out": _nn.hardtanh,
    "aten::leaky_relu.out": _nn.leaky_relu,
    "aten::pow.Tensor_Scalar_out": _torch.pow,
    "aten::pow.Tensor_Tensor_out": _torch.pow,
    "aten::sum.IntList_out": _torch.sum,
    "aten::where.self_out": _torch.where,
}
"""Native out variants, by operator: they write into the slot and allocate nothing.

The sizes of their result follow from the sizes of their inputs and from fixed scalars, so one
checked run proves all runs with inputs of the same sizes.
"""
SCALED = frozenset({"aten::add.Scalar_out", "aten::sub.Scalar_out"})
"""Those whose third argument scales the second (alpha)."""
MATMULS = frozenset({"aten::addmm.out", "aten::bmm.out", "aten::mm.out"})
"""Those that are as fast on strided inputs as on contiguous ones."""

_MORE_FRESH = [
    "add.Scalar_out",
    "clamp.Tensor_out",
    "_native_batch_norm_legit.out",
    "_native_batch_norm_legit_no_training.out",
    "native_layer_norm.out",
    "native_group_norm.out",
    "convolution.out",
    "embedding.out",
    "max_pool2d_with_indices.out",
    "avg_pool2d.out",
    "linear.out",
    "_adaptive_avg_pool2d.out",
    "relu.out",
    "var.out",
    "var.correction_out",
    "max.dim_max",
    "min.dim_min",
    "topk.values",
    "gather.out",
    "index_select.out",
    "index.Tensor_out",
    "stack.out",
    "glu.out",
    "mean.dtype_out",
    "rsub.Scalar_out",
    "masked_fill.Scalar_out",
    "remainder.Scalar_out",
    "tril.out",
    "upsample_nearest2d.vec_out",
    "upsample_bilinear2d.vec_out",
]
_QUANTIZED = [
    "add.out",
    "choose_qparams.Tensor_out",
    "choose_qparams_per_token_asymmetric.out",
    "dequantize_per_channel.out",
    "dequantize_per_tensor.Tensor_out",
    "dequantize_per_tensor.out",
    "dequantize_per_token.out",
    "embedding_2bit.dtype_out",
    "embedding_2bit.out",
    "embedding_4bit.dtype_out",
    "embedding_4bit.out",
    "embedding_byte.dtype_out",
    "embedding_byte.out",
    "mixed_linear.out",
    "mixed_mm.out",
    "quantize_per_channel.out",
    "quantize_per_tensor.Tensor_out",
    "quantize_per_tensor.out",
    "quantize_per_token.out",
]
FRESH = (
    frozenset(DIRECT)
    | {f"aten::{name}" for name in _MORE_FRESH}
    | {f"quantized_decomposed::{name}" for name in _QUANTIZED}
)
"""Operators whose functional kernel always returns newly allocated memory.

For inputs of the same sizes each run of it calls the same operators of torch.
"""

VIEWS = frozenset(
    f"aten::{name}"
    for name in [
        "alias_copy.out",
        "detach_copy.out",
        "expand_copy.out",
        "narrow_copy.out",
        "permute_copy.out",
        "select_copy.int_out",
        "slice_copy.Tensor_out",
        "split_copy.Tensor_out",
        "split_with_sizes_copy.out",
        "squeeze_copy.dim_out",
        "squeeze_copy.dims_out",
        "t_copy.out",
        "transpose_copy.int_out",
        "unbind_copy.int_out",
        "unsqueeze_copy.out",
        "view_copy.out",
    ]
)
"""Operators whose kernel may return a view of its first input, and of no other."""

CONSTANT = frozenset(
    f"aten::{name}.out"
    for name in ("arange", "full", "full_like", "ones", "scalar_tensor", "zeros")
) | {"aten::arange.start_out"}
"""Operators whose result is the same in each run, given the same arguments."""
