"""Compressed weights and quantized values: expanded once, when a payload is loaded.

Source: coremltools optimize/_utils.py
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from runtime.backends.coreml.given import Given, ints, positive
from runtime.untyped import from_buffer
from schema.dtypes.scalar_type import numel
from schema.graph import GraphValue
from schema.payloads.coreml.elements import BITS

_RANGES = {"int8": (-128, 127), "uint8": (0, 255), "int4": (-8, 7), "uint4": (0, 15)}


def packed(value: GraphValue, data: memoryview) -> Tensor:
    """Return the elements of a dtype below a byte, the first in the low bits.

    Raises: ValueError if there are too few
    """
    assert value.tensor is not None
    sizes = tuple(int(size) for size in value.tensor.sizes)
    bits, signed = BITS[value.tensor.dtype]
    held = from_buffer(data, torch.uint8, len(data)) if len(data) else torch.empty(0)
    made = _unpacked(held.to(torch.uint8), bits, numel(sizes))
    if signed:
        half = 1 << (bits - 1)
        made = torch.where(made >= half, made.to(torch.int8) - 2 * half, made.to(torch.int8))
    return made.reshape(sizes)


def _unpacked(held: Tensor, bits: int, count: int) -> Tensor:
    if count * bits > 8 * held.numel():
        raise ValueError(f"{count} elements of {bits} bits in {held.numel()} bytes")
    stream = (held.unsqueeze(-1) >> torch.arange(8, dtype=torch.uint8)) & 1
    rows = stream.reshape(-1)[: count * bits].reshape(count, bits)
    return (rows << torch.arange(bits, dtype=torch.uint8)).sum(-1, dtype=torch.uint8)


def _wide(value: GraphValue, data: memoryview, dtype: torch.dtype) -> Tensor:
    assert value.tensor is not None
    sizes = tuple(int(size) for size in value.tensor.sizes)
    count = numel(sizes)
    stored = getattr(torch, value.tensor.dtype)
    held = from_buffer(data, stored, count) if count else torch.empty(0, dtype=stored)
    return held.to(dtype).reshape(sizes)


def widened(dtype: torch.dtype) -> Callable[[GraphValue, memoryview], Tensor]:
    """Return the reader of a dtype that torch computes with in a wider one only."""

    def read(value: GraphValue, data: memoryview) -> Tensor:
        return _wide(value, data, dtype)

    return read


def _along(value: Tensor, like: Tensor, axis: Given) -> Tensor:
    if value.dim() != 1 or axis is None or like.dim() == 1:
        return value.float()
    dim = positive(axis, like.dim())
    return value.float().reshape([-1 if one == dim else 1 for one in range(like.dim())])


def _quantize(
    input: Tensor,
    scale: Tensor,
    output_dtype: str,
    zero_point: Tensor | None = None,
    axis: Given = None,
) -> Tensor:
    low, high = _RANGES[output_dtype]
    made = torch.round(input / _along(scale, input, axis))
    if zero_point is not None:
        made = made + _along(zero_point, input, axis)
    return made.clamp(low, high)


def _dequantize(
    input: Tensor,
    scale: Tensor,
    zero_point: Tensor | None = None,
    axis: Given = None,
) -> Tensor:
    real = input.float()
    if zero_point is not None:
        real = real - _along(zero_point, input, axis)
    return real * _along(scale, input, axis)


def _affine(quantized_data: Tensor, zero_point: Tensor, scale: Tensor, axis: Given) -> Tensor:
    return _dequantize(quantized_data, scale, zero_point, axis)


def _repeated(value: Tensor, sizes: Sequence[int]) -> Tensor:
    """Return one element for each of a block."""
    for dim, size in enumerate(sizes):
        if value.shape[dim] not in (1, size):
            value = value.repeat_interleave(size // value.shape[dim], dim)
    return value


def _shift_scale(data: Tensor, scale: Tensor, offset: Tensor | None = None) -> Tensor:
    real = data.float()
    if offset is not None:
        real = real - _repeated(offset.float(), data.shape)
    return real * _repeated(scale.float(), data.shape)


def _lut(indices: Tensor, lut: Tensor, shape: Given = None, vector_axis: Given = None) -> Tensor:
    if shape is not None:  # before iOS 18: a packed vector of indices
        sizes = ints(shape)
        bits = int(math.log2(lut.numel()))
        return lut[_unpacked(indices, bits, numel(tuple(sizes))).long()].reshape(sizes)
    count, width = lut.shape[-2:]
    tables = lut
    for dim, size in enumerate(indices.shape):
        if tables.shape[dim] not in (1, size):
            tables = tables.repeat_interleave(size // tables.shape[dim], dim)
    tables = tables.expand(*indices.shape, count, width)
    places = indices.long()[..., None, None].expand(*indices.shape, 1, width)
    made = tables.gather(-2, places).squeeze(-2)
    if width == 1:
        return made.squeeze(-1)
    dim = positive(vector_axis, indices.dim())
    return made.movedim(-1, dim + 1).flatten(dim, dim + 1)


def _sparse(nonzero_data: Tensor, mask: Tensor, shape: Given = None) -> Tensor:
    if shape is not None:  # before iOS 18: a packed vector of bits
        sizes = ints(shape)
        mask = _unpacked(mask, 1, numel(tuple(sizes))).reshape(sizes)
    made = torch.zeros(mask.shape, dtype=nonzero_data.dtype)
    made[mask != 0] = nonzero_data
    return made


def _lut_sparse(
    indices_mask: Tensor, indices_nonzero_data: Tensor, lut: Tensor, vector_axis: Given = None
) -> tuple[Tensor, Tensor]:
    dense = _lut(_sparse(indices_nonzero_data, indices_mask), lut, None, vector_axis)
    mask = indices_mask
    if vector_axis is not None:
        mask = mask.repeat_interleave(lut.shape[-1], positive(vector_axis, mask.dim()))
    return mask, dense[mask != 0]


def _scaled_sparse(
    data_mask: Tensor, nonzero_data: Tensor, scale: Tensor, offset: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    dense = _shift_scale(_sparse(nonzero_data, data_mask), scale, offset)
    return data_mask, dense[data_mask != 0]


def _cast(source_val: Tensor, output_dtype: str = "fp32") -> Tensor:
    del output_dtype  # the value has it
    return source_val


TABLE: dict[str, Callable[..., Any]] = {
    "constexpr_affine_dequantize": _affine,
    "constexpr_blockwise_shift_scale": _shift_scale,
    "constexpr_cast": _cast,
    "constexpr_lut_to_dense": _lut,
    "constexpr_lut_to_sparse": _lut_sparse,
    "constexpr_sparse_blockwise_shift_scale": _scaled_sparse,
    "constexpr_sparse_to_dense": _sparse,
    "dequantize": _dequantize,
    "quantize": _quantize,
}
