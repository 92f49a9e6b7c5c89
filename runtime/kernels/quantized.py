"""Kernels of quantized operators: quantize, choose parameters, embedding, matmul.

Source: quantized_decomposed operators of the stock quantized library. Quantization multiplies by
the reciprocal of the scale in float32 and rounds half to even.
"""

# ruff: noqa: PLR0913 - the arguments are those of the operators

from __future__ import annotations

from ctypes import c_float
from functools import partial
from typing import Any

import torch

from runtime.errors import invalid_argument
from runtime.kernels.rule import Rule, result

Tensor = torch.Tensor
_BYTE = 8
_OUT = "Tensor(a!) out) -> Tensor(a!)"
_PARAMS = "Tensor(a!) scale_out, Tensor(b!) zero_point_out) -> (Tensor(a!), Tensor(b!))"
_EMBEDDING = (
    "(Tensor weight, Tensor weight_scales, Tensor? weight_zero_points, int weight_quant_min, "
    "int weight_quant_max, Tensor indices, "
)


_EXACT = 1 << 23  # sums of integers below it are exact in float32
_SHORT = (torch.int8, torch.uint8, torch.int16)


def _rounded(values: Tensor, scale: Tensor, zero: Tensor, low: int, high: int) -> Tensor:
    quantized = (values.float() * scale.float().reciprocal()).round_() + zero
    return quantized.clamp_(low, high)


def _quantize(
    values: Tensor, scale: float, zero: int, low: int, high: int, dtype: torch.dtype
) -> Tensor:
    if not scale or abs(zero) >= _EXACT:
        return _quantize_by(values, torch.tensor(scale), torch.tensor(zero), low, high, dtype)
    reciprocal = _single(1.0 / _single(scale))
    quantized = (values.float() * reciprocal).round_()
    return (quantized.add_(zero) if zero else quantized).clamp_(low, high).to(dtype)


def _single(number: float) -> float:
    """Return a number in the precision of float32."""
    return c_float(number).value


def _quantize_by(
    values: Tensor, scale: Tensor, zero: Tensor, low: int, high: int, dtype: torch.dtype
) -> Tensor:
    shape = (1,) * min(values.dim(), 1)
    return _rounded(values, scale.reshape(shape), zero.reshape(shape), low, high).to(dtype)


def _dequantize(
    values: Tensor,
    scale: float,
    zero: int,
    low: int,
    high: int,
    dtype: torch.dtype,
    *,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    if values.dtype not in _SHORT or abs(zero) >= _EXACT:
        return _dequantize_by(
            values, torch.tensor(scale), torch.tensor(zero), low, high, dtype, out_dtype=out_dtype
        )
    centred = values.to(torch.float32)
    real = (centred.sub_(zero) if zero else centred).mul_(_single(scale))
    return real if out_dtype is None else real.to(out_dtype)


def _dequantize_by(
    values: Tensor,
    scale: Tensor,
    zero: Tensor,
    low: int,
    high: int,
    dtype: torch.dtype,
    *,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    del low, high, dtype
    shape = (1,) * min(values.dim(), 1)
    return _real(values, scale.reshape(shape), zero.reshape(shape), out_dtype)


def _real(values: Tensor, scale: Tensor, zero: Tensor, dtype: torch.dtype | None) -> Tensor:
    centred = (values.to(torch.int64) - zero.to(torch.int64)).to(torch.float32)
    return (centred * scale.float()).to(dtype or torch.float32)


def _along(parameter: Tensor, rank: int, axis: int) -> Tensor:
    axis += rank if axis < 0 else 0
    if not 0 <= axis < rank:
        raise invalid_argument(f"axis {axis} of a tensor of {rank} dimensions")
    return parameter.reshape([-1 if dim == axis else 1 for dim in range(rank)])


def _quantize_channels(
    values: Tensor,
    scales: Tensor,
    zeros: Tensor,
    axis: int,
    low: int,
    high: int,
    dtype: torch.dtype,
) -> Tensor:
    scale, zero = (_along(entry, values.dim(), axis) for entry in (scales, zeros))
    return _rounded(values, scale, zero, low, high).to(dtype)


def _dequantize_channels(
    values: Tensor,
    scales: Tensor,
    zeros: Tensor | None,
    axis: int,
    low: int,
    high: int,
    dtype: torch.dtype,
    *,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    del low, high, dtype
    zeros = torch.zeros_like(scales, dtype=torch.int64) if zeros is None else zeros
    scale, zero = (_along(entry, values.dim(), axis) for entry in (scales, zeros))
    return _real(values, scale, zero, out_dtype)


def _quantize_tokens(
    values: Tensor, scales: Tensor, zeros: Tensor, low: int, high: int, dtype: torch.dtype
) -> Tensor:
    shape = (*values.shape[:-1], 1)
    return _rounded(values, scales.reshape(shape), zeros.reshape(shape), low, high).to(dtype)


def _dequantize_tokens(
    values: Tensor,
    scales: Tensor,
    zeros: Tensor,
    low: int,
    high: int,
    dtype: torch.dtype,
    output_dtype: torch.dtype,
) -> Tensor:
    del low, high, dtype
    shape = (*values.shape[:-1], 1)
    return _real(values, scales.reshape(shape), zeros.reshape(shape), output_dtype)


def _qparams(least: Tensor, most: Tensor, low: int, high: int, eps: float) -> tuple[Tensor, Tensor]:
    least, most = least.double().clamp_(max=0), most.double().clamp_(min=0)
    scale = (most - least).div_(high - low)
    scale = scale.masked_fill_(scale.float() == 0, 0.1).clamp_(min=eps)
    below, above = least.div_(scale), most.div_(scale)
    from_low = low - below
    zero = torch.where(from_low < high + above, from_low, high - above)
    return scale, zero.clamp_(low, high).round_().to(torch.int64)


def _choose_qparams(
    values: Tensor, low: int, high: int, eps: float, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    del dtype
    if not values.numel():
        raise invalid_argument("quantization parameters of a tensor without elements")
    least, most = values.reshape(-1).aminmax(dim=0, keepdim=True)
    return _qparams(least, most, low, high, eps)


def _choose_token_qparams(values: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    del dtype
    least, most = values.aminmax(dim=-1, keepdim=True)
    return _qparams(least, most, -128, 127, torch.finfo(torch.float32).eps)


def _add(
    a: Tensor,
    a_scale: float,
    a_zero: int,
    a_low: int,
    a_high: int,
    b: Tensor,
    b_scale: float,
    b_zero: int,
    b_low: int,
    b_high: int,
    out_scale: float,
    out_zero: int,
    out_low: int,
    out_high: int,
) -> Tensor:
    del a_low, a_high, b_low, b_high
    left = _dequantize(a, a_scale, a_zero, 0, 0, a.dtype)
    right = _dequantize(b, b_scale, b_zero, 0, 0, b.dtype)
    return _quantize(left + right, out_scale, out_zero, out_low, out_high, a.dtype)


def _real_rows(rows: Tensor, scales: Tensor, zeros: Tensor | None) -> Tensor:
    """Return rows as floats; each has a scale, and a zero point, for each of its groups."""
    count, columns = rows.shape
    groups = scales.shape[1] if scales.dim() == 2 else 1
    if columns % groups:
        raise invalid_argument(f"{columns} columns in {groups} groups")
    found = rows.float().reshape(count, groups, columns // groups)
    if zeros is not None:
        found = found - zeros.float().reshape(count, groups, 1)
    return (found * scales.float().reshape(count, groups, 1)).reshape(count, columns)


def _looked_up(
    weight: Tensor, scales: Tensor, zeros: Tensor | None, indices: Tensor, bits: int
) -> Tensor:
    flat = indices.reshape(-1).long()
    rows = weight[flat]  # only these are unpacked
    rows = rows if bits == _BYTE else _unpacked(rows, bits)
    real = _real_rows(rows, scales[flat], None if zeros is None else zeros[flat])
    return real.reshape(*indices.shape, rows.shape[1])


def _embedding_byte(
    weight: Tensor,
    scales: Tensor,
    zeros: Tensor | None,
    low: int,
    high: int,
    indices: Tensor,
    dtype: torch.dtype | None = None,
    *,
    bits: int = _BYTE,
) -> Tensor:
    del low, high
    return _looked_up(weight, scales, zeros, indices, bits).to(dtype or scales.dtype)


_embedding_4bit = partial(_embedding_byte, bits=4)
_embedding_2bit = partial(_embedding_byte, bits=2)


def _unpacked(weight: Tensor, bits: int) -> Tensor:
    """Unpack columns: within a byte the lowest bits come last for 4 bits, first for 2."""
    mask, half = (1 << bits) - 1, 1 << (bits - 1)
    raw = weight.view(torch.uint8)
    shifts = (4, 0) if bits == 4 else (0, 2, 4, 6)
    parts = [((raw >> shift) & mask).to(torch.int8) - half for shift in shifts]
    return torch.stack(parts, -1).reshape(weight.shape[0], -1)


def _mixed_mm(values: Tensor, weight: Tensor, scales: Tensor, zeros: Tensor | None) -> Tensor:
    del zeros
    return values @ (weight.to(values.dtype) * scales.to(values.dtype).reshape(-1, 1))


def _mixed_linear(
    values: Tensor,
    weight: Tensor,
    scales: Tensor,
    zeros: Tensor | None,
    dtype: torch.dtype | None = None,
) -> Any:  # noqa: ANN401 - a tensor
    del zeros
    real = _real_rows(weight, scales, None).to(values.dtype)
    return torch.nn.functional.linear(values, real).to(dtype or values.dtype)


_RANGE = "int quant_min, int quant_max, ScalarType dtype, *, "
_Q = "quantized_decomposed::"
TABLE: dict[str, Rule] = {
    _Q + "add.out": result(
        _add,
        "(Tensor a, float a_scale, int a_zero_point, int a_quant_min, int a_quant_max, Tensor b, "
        "float b_scale, int b_zero_point, int b_quant_min, int b_quant_max, float out_scale, "
        "int out_zero_point, int out_quant_min, int out_quant_max, *, " + _OUT,
    ),
    _Q + "choose_qparams.Tensor_out": result(
        _choose_qparams,
        "(Tensor input, int quant_min, int quant_max, float eps, ScalarType dtype, *, " + _PARAMS,
    ),
    _Q + "choose_qparams_per_token_asymmetric.out": result(
        _choose_token_qparams, "(Tensor input, ScalarType dtype, *, " + _PARAMS
    ),
    _Q + "dequantize_per_channel.out": result(
        _dequantize_channels,
        "(Tensor input, Tensor scales, Tensor? zero_points, int axis, "
        + _RANGE
        + "ScalarType? out_dtype=None, "
        + _OUT,
    ),
    _Q + "dequantize_per_tensor.Tensor_out": result(
        _dequantize_by,
        "(Tensor input, Tensor scale, Tensor zero_point, "
        + _RANGE
        + "ScalarType? out_dtype=None, "
        + _OUT,
    ),
    _Q + "dequantize_per_tensor.out": result(
        _dequantize,
        "(Tensor input, float scale, int zero_point, "
        + _RANGE
        + "ScalarType? out_dtype=None, "
        + _OUT,
    ),
    _Q + "dequantize_per_token.out": result(
        _dequantize_tokens,
        "(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, "
        "ScalarType dtype, ScalarType output_dtype, *, " + _OUT,
    ),
    _Q + "embedding_2bit.dtype_out": result(
        _embedding_2bit, _EMBEDDING + "ScalarType? dtype=None, *, " + _OUT
    ),
    _Q + "embedding_2bit.out": result(_embedding_2bit, _EMBEDDING + "*, " + _OUT),
    _Q + "embedding_4bit.dtype_out": result(
        _embedding_4bit, _EMBEDDING + "ScalarType? dtype=None, *, " + _OUT
    ),
    _Q + "embedding_4bit.out": result(_embedding_4bit, _EMBEDDING + "*, " + _OUT),
    _Q + "embedding_byte.dtype_out": result(
        _embedding_byte, _EMBEDDING + "*, ScalarType? dtype=None, " + _OUT
    ),
    _Q + "embedding_byte.out": result(_embedding_byte, _EMBEDDING + "*, " + _OUT),
    _Q + "mixed_linear.out": result(
        _mixed_linear,
        "(Tensor input, Tensor weight, Tensor weight_scales, Tensor? weight_zero_points, "
        "ScalarType? dtype=None, *, " + _OUT,
    ),
    _Q + "mixed_mm.out": result(
        _mixed_mm,
        "(Tensor input, Tensor weight, Tensor weight_scales, Tensor? weight_zero_points, *, "
        + _OUT,
    ),
    _Q + "quantize_per_channel.out": result(
        _quantize_channels,
        "(Tensor input, Tensor scales, Tensor zero_points, int axis, " + _RANGE + _OUT,
    ),
    _Q + "quantize_per_tensor.Tensor_out": result(
        _quantize_by, "(Tensor input, Tensor scale, Tensor zero_point, " + _RANGE + _OUT
    ),
    _Q + "quantize_per_tensor.out": result(
        _quantize, "(Tensor input, float scale, int zero_point, " + _RANGE + _OUT
    ),
    _Q + "quantize_per_token.out": result(
        _quantize_tokens, "(Tensor input, Tensor scales, Tensor zero_points, " + _RANGE + _OUT
    ),
}
