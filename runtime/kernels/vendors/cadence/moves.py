"""Operators of programs for Cadence that move or choose values, and rotary embeddings.

Source: backends/cadence/aot/ref_implementations.py of release 1.5.1
"""

# ruff: noqa: PLR0913 - the arguments are those of the operators

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from runtime.errors import invalid_argument
from runtime.kernels.vendors.bounds import check_dtype
from runtime.kernels.vendors.quantizing import quantize_to, real

_linalg: Any = torch.linalg
_BITS = 8


def copied(source: Tensor, task: int = 0, channel: int = 0) -> Tensor:
    """Return the elements that a transfer between memories copies."""
    del task, channel
    return source.clone()


def svd(
    x: Tensor, full_matrices: bool = False, compute_uv: bool = True, driver: str | None = None
) -> tuple[Tensor, ...]:
    """Return a singular value decomposition."""
    if not compute_uv:
        raise invalid_argument("compute_uv=False has no reference")
    made: tuple[Tensor, ...] = _linalg.svd(x, full_matrices, driver=driver)
    return tuple(one.contiguous() for one in made)


def where(condition: Tensor, yes: float, no: float) -> Tensor:
    """Return one of two numbers for each element."""
    check_dtype("condition", condition, torch.bool)
    return torch.where(condition, yes, no)


def embedding(
    weight: Tensor,
    scales: Tensor,
    zeros: Tensor | None,
    indices: Tensor,
    pruned: bool = False,
) -> Tensor:
    """Return rows of a quantized table, with a scale for each group of columns."""
    if pruned:
        raise invalid_argument("pruned weights have no reference")
    groups = scales.shape[1] if scales.dim() == 2 else 1
    blocks = weight.float().reshape(weight.shape[0], groups, -1)
    zero = 0 if zeros is None else zeros.float().reshape(-1, groups, 1)
    return ((blocks - zero) * scales.reshape(-1, groups, 1)).reshape(weight.shape)[indices]


def packed_mask(mask: Tensor, threshold: float) -> Tensor:
    """Return eight elements of a mask as a byte, the first in the lowest bit; 1 is masked."""
    check_dtype("mask", mask, torch.bool, torch.float32)
    if not mask.dim() or mask.shape[-1] % _BITS:
        raise invalid_argument(f"a mask of shape {[*mask.shape]}")
    out = ~mask if mask.dtype is torch.bool else mask < threshold
    bits = out.reshape(*mask.shape[:-1], -1, _BITS).int() << torch.arange(_BITS)
    return bits.sum(-1).to(torch.uint8)


def rope(x: Tensor, sin: Tensor, cos: Tensor, pos: Tensor | None) -> Tensor:
    """Return a rotation of pairs of neighbours."""
    heads, sin, cos = _angles(x, sin, cos, pos)
    even, odd = heads[..., ::2], heads[..., 1::2]
    pairs = (even * cos - odd * sin, even * sin + odd * cos)
    return torch.stack(pairs, -1).reshape(x.shape)


def rope_halves(x: Tensor, sin: Tensor, cos: Tensor, pos: Tensor | None) -> Tensor:
    """Return a rotation of pairs half a head apart, in the order of the vendor's reference."""
    heads, sin, cos = _angles(x, sin, cos, pos)
    half = heads.shape[-1] // 2
    low, high = heads[..., :half], heads[..., half:]
    first, second = low * cos - high * sin, high * cos + low * sin
    return torch.cat([first.reshape(-1, 1), second.reshape(-1, 1)], -2).reshape(x.shape)


def quantized_rope(
    x: Tensor,
    sin: Tensor,
    cos: Tensor,
    pos: Tensor | None,
    x_scale: float,
    x_zero: int,
    scale: float,
    zero: int,
) -> Tensor:
    """Return a rotation of quantized pairs half a head apart."""
    return quantize_to(rope_halves(real(x, x_scale, x_zero), sin, cos, pos), scale, zero, x.dtype)


def _angles(
    x: Tensor, sin: Tensor, cos: Tensor, pos: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    if x.dim() not in (4, 5) or x.shape[0] != 1:
        raise invalid_argument(f"an input of shape {[*x.shape]}")
    heads = x.reshape(*x.shape[:3], -1)
    length, size = heads.shape[1], heads.shape[3]
    if any(one.shape[-1] * 2 != size or one.shape[0] < length for one in (sin, cos)):
        raise invalid_argument(f"angles of shapes {[*sin.shape]} and {[*cos.shape]}")
    if pos is not None:
        sin, cos = sin[pos], cos[pos]
    return heads, sin.unsqueeze(1), cos.unsqueeze(1)
