"""Quantization between real values and integers, with scales that are Python floats.

Source: quantized_decomposed operators of torch: the reciprocal of the scale in double precision,
rounding half to even
"""

from __future__ import annotations

from torch import Tensor, dtype, iinfo, round

QUANTIZE = (
    "(Tensor input, float scale, int zero_point, int quant_min, int quant_max, ScalarType dtype"
)


def quantize(x: Tensor, scale: float, zero: int, low: int, high: int, to: dtype) -> Tensor:
    """Return real values as integers."""
    return (round(x.float() * (1.0 / scale)) + zero).clamp(low, high).to(to)


def dequantize(x: Tensor, scale: float, zero: int, low: int, high: int, to: dtype) -> Tensor:
    """Return integers as real values."""
    del low, high, to
    return (x.float() - zero) * scale


def quantize_to(x: Tensor, scale: float, zero: int, to: dtype) -> Tensor:
    """Return real values as integers of the whole range of a dtype."""
    return quantize(x, scale, zero, iinfo(to).min, iinfo(to).max, to)


def real(x: Tensor, scale: float, zero: int) -> Tensor:
    """Return integers as real values."""
    return dequantize(x, scale, zero, 0, 0, x.dtype)
