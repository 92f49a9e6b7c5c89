"""Attention and rotary embeddings of the Vulkan delegate.

Source: backends/vulkan/runtime/graph/ops/impl/SDPA.cpp and RotaryEmbedding.cpp of release 1.5.1
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def _attended(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float | None) -> Tensor:
    factor = 1.0 / math.sqrt(q.shape[-1]) if scale is None else scale
    weights = q.float() @ k.float().transpose(-2, -1) * factor
    weights = weights if mask is None else weights + mask.float()
    return torch.softmax(weights, -1) @ v.float()


def _sdpa(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, scale: float | None = None
) -> Tensor:
    return _attended(q, k, v, mask, scale)


def _update_cache(value: Tensor, cache: Tensor, start: int, *_: object) -> Tensor:
    cache[:, int(start) : int(start) + value.shape[1]] = value
    return cache


def _custom_sdpa(
    q: Tensor,
    keys: Tensor,
    values: Tensor,
    start: int,
    _mask: Tensor | None = None,
    _dropout: float = 0.0,
    _causal: bool = True,
    scale: float | None = None,
) -> Tensor:
    """Return the attention of new positions to all before them: [batch, position, head, channel].

    The delegate computes the causal mask itself and has no scale of the caller's.
    """
    start, count = int(start), q.shape[1]
    end = start + count
    repeat = q.shape[2] // keys.shape[2]
    k, v = (
        one[:, :end].transpose(1, 2).repeat_interleave(repeat, 1).float() for one in (keys, values)
    )
    later = torch.arange(end) > torch.arange(start, end)[:, None]
    mask = torch.zeros(count, end).masked_fill(later, -math.inf)
    return _attended(q.transpose(1, 2), k, v, mask, scale).transpose(1, 2)


def _with_cache(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    keys: Tensor,
    values: Tensor,
    start: int,
    _length: int,
    *rest: Any,  # noqa: ANN401 - mask, dropout, causality, scale
) -> Tensor:
    _update_cache(k, keys, start)
    _update_cache(v, values, start)
    return _custom_sdpa(q, keys, values, start, *rest)


def _rotary(q: Tensor, k: Tensor, cosines: Tensor, sines: Tensor) -> tuple[Tensor, Tensor]:
    """Rotate neighbouring channels; [batch, position, head, channel]."""
    return _turned(q, cosines, sines), _turned(k, cosines, sines)


def _turned(x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    pairs = x.float().reshape(*x.shape[:-1], -1, 2)
    real, imaginary = pairs[..., 0], pairs[..., 1]
    if cosines.dim() < real.dim() - 1:
        cosines, sines = (one.unsqueeze(-2) for one in (cosines, sines))
    turned = (real * cosines - imaginary * sines, real * sines + imaginary * cosines)
    return torch.stack(turned, -1).flatten(-2)


def _rotary_halves(
    q: Tensor, k: Tensor, cosines: Tensor, sines: Tensor, start: int
) -> tuple[Tensor, Tensor]:
    """Rotate the two halves of the first channels; the rest passes."""
    rows = slice(int(start), int(start) + q.shape[1])
    cosines, sines = (one[rows].unsqueeze(1).float() for one in (cosines, sines))
    return _half_turned(q, cosines, sines), _half_turned(k, cosines, sines)


def _half_turned(x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    count = cosines.shape[-1]
    own = x[..., :count].float()
    first, second = own.chunk(2, -1)
    turned = own * cosines + torch.cat((-second, first), -1) * sines
    return torch.cat((turned, x[..., count:].float()), -1)


def _rotary_interleaved(x: Tensor, pairs: Tensor) -> Tensor:
    """Rotate neighbouring channels by pairs of cosine and sine; [batch, position, channel]."""
    both = pairs.reshape(x.shape[1], x.shape[2] // 2, 2)
    return _turned(x, both[..., 0], both[..., 1])


TABLE: dict[str, Callable[..., Any]] = {
    "et_vk.apply_rotary_emb.default": _rotary,
    "et_vk.apply_rotary_emb_hf.default": _rotary_halves,
    "et_vk.apply_rotary_emb_interleaved.default": _rotary_interleaved,
    **dict.fromkeys(("et_vk.sdpa.default", "sdpa.default"), _sdpa),
    **dict.fromkeys(("llama.custom_sdpa.default", "custom_sdpa.default"), _custom_sdpa),
    **dict.fromkeys(
        ("llama.sdpa_with_kv_cache.default", "sdpa_with_kv_cache.default"), _with_cache
    ),
    **dict.fromkeys(("llama.update_cache.default", "update_cache.default"), _update_cache),
}
