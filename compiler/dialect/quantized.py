"""Operators on quantized tensors, with the schemas of the runtime's quantized kernels.

torch has some of them, but not their out variants; these, and fused operators
unknown to torch, are in a separate namespace and are renamed on writing.
"""

from __future__ import annotations

from typing import Any

import torch

from compiler.dialect.own_library import OwnLibrary

NAMESPACE = "etscope_quantized"
WRITTEN = "quantized_decomposed"

_QUANTIZE = "int quant_min, int quant_max, ScalarType dtype"
_ROW = "Tensor scales, Tensor? zero_points, int axis"
_EMBEDDING = (
    "Tensor weight, Tensor weight_scales, Tensor? weight_zero_points, int weight_quant_min, "
    "int weight_quant_max, Tensor indices"
)
_MIXED = (
    "Tensor input, Tensor weight, Tensor weight_scales, Tensor? weight_zero_points, "
    "ScalarType? dtype=None"
)
_SUM = ", ".join(
    f"Tensor {name}, float {name}_scale, int {name}_zero_point, int {name}_quant_min, "
    f"int {name}_quant_max"
    for name in "ab"
)
_RESULT = "float out_scale, int out_zero_point, int out_quant_min, int out_quant_max"
_OUT = "*, Tensor(a!) out) -> Tensor(a!)"
_CHOSEN = "*, Tensor(a!) scale_out, Tensor(b!) zero_point_out) -> (Tensor(a!), Tensor(b!))"
_library = OwnLibrary(
    NAMESPACE,
    f"add({_SUM}, {_RESULT}) -> Tensor",
    f"add.out({_SUM}, {_RESULT}, {_OUT}",
    f"embedding_byte({_EMBEDDING}) -> Tensor",
    f"embedding_byte.out({_EMBEDDING}, {_OUT}",
    f"embedding_4bit({_EMBEDDING}) -> Tensor",
    f"embedding_4bit.out({_EMBEDDING}, {_OUT}",
    f"embedding_2bit({_EMBEDDING}) -> Tensor",
    f"embedding_2bit.out({_EMBEDDING}, {_OUT}",
    f"mixed_linear({_MIXED}) -> Tensor",
    f"mixed_linear.out({_MIXED}, {_OUT}",
    f"quantize_per_tensor.out(Tensor input, float scale, int zero_point, {_QUANTIZE}, {_OUT}",
    f"quantize_per_tensor.Tensor_out(Tensor input, Tensor scale, Tensor zero_point, {_QUANTIZE}, "
    f"{_OUT}",
    f"quantize_per_channel.out(Tensor input, Tensor scales, Tensor zero_points, int axis, "
    f"{_QUANTIZE}, {_OUT}",
    f"dequantize_per_tensor.out(Tensor input, float scale, int zero_point, {_QUANTIZE}, *, "
    "ScalarType? out_dtype=None, Tensor(a!) out) -> Tensor(a!)",
    f"dequantize_per_tensor.Tensor_out(Tensor input, Tensor scale, Tensor zero_point, {_QUANTIZE}, "
    "*, ScalarType? out_dtype=None, Tensor(a!) out) -> Tensor(a!)",
    f"dequantize_per_channel.out(Tensor input, {_ROW}, {_QUANTIZE}, *, "
    "ScalarType? out_dtype=None, Tensor(a!) out) -> Tensor(a!)",
    "choose_qparams.Tensor_out(Tensor input, int quant_min, int quant_max, float eps, "
    f"ScalarType dtype, {_CHOSEN}",
    f"choose_qparams_per_token_asymmetric.out(Tensor input, ScalarType dtype, {_CHOSEN}",
    f"quantize_per_token.out(Tensor input, Tensor scales, Tensor zero_points, {_QUANTIZE}, {_OUT}",
    f"dequantize_per_token.out(Tensor input, Tensor scales, Tensor zero_points, {_QUANTIZE}, "
    f"ScalarType output_dtype, {_OUT}",
)


def quantized(
    x: torch.Tensor, scale: float, zero_point: int, low: int, high: int, dtype: torch.dtype
) -> torch.Tensor:
    """Return values quantized by a scale and a zero point."""
    return (torch.round(x / scale) + zero_point).clamp(low, high).to(dtype)


def _add(  # noqa: PLR0913 - the arguments of the operator
    a: torch.Tensor,
    a_scale: float,
    a_zero_point: int,
    a_quant_min: int,
    a_quant_max: int,
    b: torch.Tensor,
    b_scale: float,
    b_zero_point: int,
    b_quant_min: int,
    b_quant_max: int,
    out_scale: float,
    out_zero_point: int,
    out_quant_min: int,
    out_quant_max: int,
) -> torch.Tensor:
    del a_quant_min, a_quant_max, b_quant_min, b_quant_max  # they specify the value range of inputs
    total = (a.float() - a_zero_point) * a_scale + (b.float() - b_zero_point) * b_scale
    return quantized(total, out_scale, out_zero_point, out_quant_min, out_quant_max, a.dtype)


def packed(rows: torch.Tensor, bits: int) -> torch.Tensor:
    """Return rows of 2 or 4 bit integers packed into bytes, as the embedding kernels read them.

    With 4 bits the first value of a pair is the upper half, with 2 bits the first of four values is
    lowest.

    Shapes: rows: [n, m] int8, result: [n, m * bits / 8] uint8
    """
    lifted = (rows + (1 << bits - 1)).to(torch.uint8).reshape(rows.shape[0], -1, 8 // bits)
    total = torch.zeros_like(lifted[:, :, 0])
    for place, shift in enumerate(_SHIFTS[bits]):
        total = total | (lifted[:, :, place] << shift)
    return total


def unpacked(rows: torch.Tensor, bits: int) -> torch.Tensor:
    """Return the integers of packed rows.

    Shapes: rows: [n, m] uint8, result: [n, m * 8 / bits] int8
    """
    parts = [(rows >> shift) & ((1 << bits) - 1) for shift in _SHIFTS[bits]]
    flat = torch.stack(parts, dim=-1).reshape(rows.shape[0], -1)
    return flat.to(torch.int8) - (1 << bits - 1)


def _embedding(
    weight: torch.Tensor,
    weight_scales: torch.Tensor,
    weight_zero_points: torch.Tensor | None,
    weight_quant_min: int,
    weight_quant_max: int,
    indices: torch.Tensor,
) -> torch.Tensor:
    del weight_quant_min, weight_quant_max  # they specify the value range of the weight
    rows, scales = weight[indices].float(), weight_scales[indices].float()
    zeros = None if weight_zero_points is None else weight_zero_points[indices].float()
    if weight_scales.dim() == 1:
        scales, zeros = scales.unsqueeze(-1), None if zeros is None else zeros.unsqueeze(-1)
    grouped = rows.reshape(*rows.shape[:-1], scales.shape[-1], -1)
    if zeros is not None:
        grouped = grouped - zeros.unsqueeze(-1)
    return (grouped * scales.unsqueeze(-1)).reshape(rows.shape).to(weight_scales.dtype)


def _embedding_4bit(weight: torch.Tensor, *rest: Any) -> torch.Tensor:  # noqa: ANN401
    return _embedding(unpacked(weight, 4), *rest)


def _embedding_2bit(weight: torch.Tensor, *rest: Any) -> torch.Tensor:  # noqa: ANN401
    return _embedding(unpacked(weight, 2), *rest)


def _mixed_linear(
    x: torch.Tensor,
    weight: torch.Tensor,
    weight_scales: torch.Tensor,
    weight_zero_points: torch.Tensor | None,
    dtype: torch.dtype | None = None,
) -> Any:  # noqa: ANN401 - a tensor
    del weight_zero_points  # the kernel supports none
    grouped = weight.float().reshape(weight.shape[0], -1, weight.shape[1] // _groups(weight_scales))
    real = grouped * weight_scales.float().reshape(weight.shape[0], -1, 1)
    linear: Any = torch.nn.functional.linear
    return linear(x, real.reshape(weight.shape).to(x.dtype)).to(dtype or x.dtype)


def _groups(scales: torch.Tensor) -> int:
    return scales.shape[1] if scales.dim() == 2 else 1


def bits_of(rows: torch.Tensor) -> int:
    """Return the smallest packed bit width that holds the values of a table."""
    if rows.dtype != torch.int8 or not rows.numel():
        return 8
    low, high = int(rows.min()), int(rows.max())
    fits = (b for b in (2, 4) if -(1 << b - 1) <= low and high < 1 << b - 1)
    return next((bits for bits in fits if rows.shape[1] % (8 // bits) == 0), 8)


_SHIFTS: dict[int, tuple[int, ...]] = {4: (4, 0), 2: (0, 2, 4, 6)}
for _name, _function in (
    ("add", _add),
    ("embedding_byte", _embedding),
    ("embedding_4bit", _embedding_4bit),
    ("embedding_2bit", _embedding_2bit),
    ("mixed_linear", _mixed_linear),
):
    _library.impl(_name, _function, "CompositeExplicitAutograd")
own_packets: Any = getattr(torch.ops, NAMESPACE)
ADD: Any = own_packets.add.default
MIXED_LINEAR: Any = own_packets.mixed_linear.default
# by bits per value in the file
EMBEDDINGS: dict[int, Any] = {
    8: own_packets.embedding_byte.default,
    4: own_packets.embedding_4bit.default,
    2: own_packets.embedding_2bit.default,
}
