"""Kernels of attention with a KV cache, of the namespace ``llama``.

Source: the operators of ``extension/llm/custom_ops``. The result of ``update_cache`` is a
placeholder; the cache is written.
"""

# ruff: noqa: PLR0913 - the arguments are those of the operators

from __future__ import annotations

import functools
import math
from typing import Any

import torch

from runtime.errors import invalid_argument
from runtime.kernels.rule import Rule, result

Tensor = torch.Tensor
_sdpa: Any = torch.nn.functional.scaled_dot_product_attention
_OUT = "*, Tensor(a!) out) -> Tensor(a!)"
_PLACE = "SymInt start_pos, "
_OPTIONS = "Tensor? attn_mask=None, float drpout_p=0.0, bool is_causal=False, float? scale=None, "
_ATTENTION = f"(Tensor query, Tensor key, Tensor value, {_PLACE}{_OPTIONS}"
_PARAMETERS = ", ".join(
    f"Tensor? {name}_{what}=None" for name in "qkv" for what in ("zero_points", "scales")
)


def _attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    start_pos: int,
    attn_mask: Tensor | None = None,
    drpout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    """Attend from the positions that begin at ``start_pos`` to the cache before and at them.

    Shapes: query, result: [batch, length, heads, size]; key, value: [batch, context, groups, size]
    """
    del drpout_p
    if attn_mask is not None and is_causal:
        raise invalid_argument("attention has a mask and is causal: only one of them is possible")
    length, end = query.shape[1], key.shape[1]
    if value.shape[1] != end:
        raise invalid_argument(f"keys have {end} positions, values have {value.shape[1]}")
    if attn_mask is None:
        end = _end(start_pos, length, end)
        if is_causal and length > 1:
            attn_mask = torch.ones(length, end, dtype=torch.bool).tril(start_pos)
        blind = None
    else:
        blind = attn_mask.isneginf().all(-1)
    grouped = query.shape[2] != key.shape[2]
    given = query.transpose(1, 2), _by_head(key, end), _by_head(value, end), attn_mask
    found = _sdpa(*given, 0.0, False, scale=scale, enable_gqa=grouped).transpose(1, 2)
    if blind is not None and bool(blind.any()):  # a program that hides all is NaN on a device, too
        found = found.masked_fill(blind[:, None, None], math.nan)
    return found


def _by_head(cache: Tensor, end: int) -> Tensor:
    """Return the first positions of a cache as [batch, groups, end, size], as one view."""
    batch, _, groups, size = cache.shape
    by_batch, by_position, by_group, by_place = cache.stride()
    sizes, strides = (batch, groups, end, size), (by_batch, by_group, by_position, by_place)
    return cache.as_strided(sizes, strides)


def _attend_quantized(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    start_pos: int,
    attn_mask: Tensor | None = None,
    drpout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    q_zero_points: Tensor | None = None,
    q_scales: Tensor | None = None,
    k_zero_points: Tensor | None = None,
    k_scales: Tensor | None = None,
    v_zero_points: Tensor | None = None,
    v_scales: Tensor | None = None,
    is_seq_at_dim_2: bool = False,
) -> Tensor:
    """Attend over int8 values with one scale and zero point for each position and head."""
    given = (
        _real(query, q_scales, q_zero_points),
        _real(key, k_scales, k_zero_points),
        _real(value, v_scales, v_zero_points),
    )
    q, k, v = (one.transpose(1, 2) for one in given) if is_seq_at_dim_2 else given
    found = _attend(q, k, v, start_pos, attn_mask, drpout_p, is_causal, scale)
    return found.transpose(1, 2) if is_seq_at_dim_2 else found


def _real(values: Tensor, scales: Tensor | None, zeros: Tensor | None) -> Tensor:
    if scales is None:
        return values
    found = values.float()
    return (found if zeros is None else found - zeros.float()) * scales.float()


def _update_cache(value: Tensor, cache: Tensor, start_pos: int) -> Tensor:
    length = value.shape[1]
    _end(start_pos, length, cache.shape[1])
    cache.narrow(1, start_pos, length).copy_(value)
    return _placeholder(value.dtype)


@functools.cache
def _placeholder(dtype: torch.dtype) -> Tensor:
    return torch.zeros(1, dtype=dtype)


def _update_and_attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    start_pos: int,
    seq_len: int,
    attn_mask: Tensor | None = None,
    drpout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    if seq_len != query.shape[1]:
        raise invalid_argument(f"seq_len is {seq_len}, the query has {query.shape[1]} positions")
    _update_cache(key, key_cache, start_pos)
    _update_cache(value, value_cache, start_pos)
    return _attend(query, key_cache, value_cache, start_pos, attn_mask, drpout_p, is_causal, scale)


def _end(start: int, length: int, context: int) -> int:
    """Return the end of the positions of a call in the cache.

    Raises: ExecutionError InvalidArgument if the cache is shorter
    """
    if start < 0 or start + length > context:
        raise invalid_argument(
            f"positions {start} to {start + length - 1} are outside of a cache of {context}"
        )
    return start + length


TABLE: dict[str, Rule] = {
    "llama::custom_sdpa.out": result(_attend, _ATTENTION + _OUT),
    "llama::custom_quantized_sdpa.out": result(
        _attend_quantized, f"{_ATTENTION}{_PARAMETERS}, bool is_seq_at_dim_2=False, {_OUT}"
    ),
    "llama::sdpa_with_kv_cache.out": result(
        _update_and_attend,
        "(Tensor query, Tensor key, Tensor value, Tensor(a!) key_cache, Tensor(b!) value_cache, "
        f"{_PLACE}SymInt seq_len, {_OPTIONS}*, Tensor(c!) out) -> Tensor(c!)",
    ),
    "llama::update_cache.out": result(
        _update_cache,
        f"(Tensor value, Tensor(a!) cache, {_PLACE}*, Tensor(b!) out) -> Tensor(b!)",
    ),
}

# What recorded graphs call, where no library has declared these operators.
NAMESPACE = "etscope_attention"
_library: Any = torch.library.Library(NAMESPACE, "DEF")
for _name, _rule in TABLE.items():
    _short = _name.removeprefix("llama::").removesuffix(".out")
    _library.define(f"{_short}{_rule.schema[: _rule.schema.index(', *')]}) -> Tensor")
    _library.impl(_short, _rule.run, "CPU")
