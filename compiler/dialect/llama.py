"""Operators of attention with a KV cache, with the schemas of the runtime's kernels.

The library of kernels that comes with the runtime declares them in the namespace ``llama``, which
is declared once in a process; these are in a separate one and are renamed on writing.
"""

# ruff: noqa: PLR0913 - the arguments are those of the operators

from __future__ import annotations

from typing import Any

import torch

from compiler.dialect.own_library import OwnLibrary

NAMESPACE = "etscope_llama"
WRITTEN = "llama"

Tensor = torch.Tensor
_ATTENTION = (
    "Tensor query, Tensor key, Tensor value, SymInt start_pos, Tensor? attn_mask=None, "
    "float drpout_p=0.0, bool is_causal=False, float? scale=None"
)
_PARAMETERS = ", ".join(
    f"Tensor? {name}_{what}=None" for name in "qkv" for what in ("zero_points", "scales")
)
_QUANTIZED = f"{_ATTENTION}, {_PARAMETERS}, bool is_seq_at_dim_2=False"
_CACHE = "Tensor value, Tensor(a!) cache, SymInt start_pos"
_library = OwnLibrary(
    NAMESPACE,
    f"custom_sdpa({_ATTENTION}) -> Tensor",
    f"custom_sdpa.out({_ATTENTION}, *, Tensor(a!) out) -> Tensor(a!)",
    f"custom_quantized_sdpa({_QUANTIZED}) -> Tensor",
    f"custom_quantized_sdpa.out({_QUANTIZED}, *, Tensor(a!) out) -> Tensor(a!)",
    f"update_cache({_CACHE}) -> Tensor",
    f"update_cache.out({_CACHE}, *, Tensor(b!) out) -> Tensor(b!)",
)


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    start_pos: int,
    attn_mask: Tensor | None = None,
    drpout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    """Attend from positions that begin at ``start_pos`` to a cache.

    Shapes: query, result: [batch, length, heads, size]; key, value: [batch, context, groups, size]
    """
    del drpout_p
    length = query.shape[1]
    if attn_mask is None:
        key, value = key[:, : start_pos + length], value[:, : start_pos + length]
        if is_causal:
            allowed = torch.ones(length, start_pos + length, dtype=torch.bool)
            attn_mask = allowed.tril(start_pos)
    q, k, v = (one.transpose(1, 2) for one in (query, key, value))
    found = torch.nn.functional.scaled_dot_product_attention(
        q, k, v, attn_mask=attn_mask, scale=scale, enable_gqa=q.shape[1] != k.shape[1]
    )
    return found.transpose(1, 2).contiguous()


def _quantized_attention(
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
    q, k, v = (
        _real(query, q_scales, q_zero_points),
        _real(key, k_scales, k_zero_points),
        _real(value, v_scales, v_zero_points),
    )
    if is_seq_at_dim_2:
        q, k, v = (one.transpose(1, 2) for one in (q, k, v))
    found = _attention(q, k, v, start_pos, attn_mask, drpout_p, is_causal, scale)
    return found.transpose(1, 2).contiguous() if is_seq_at_dim_2 else found


def _real(values: Tensor, scales: Tensor | None, zeros: Tensor | None) -> Tensor:
    if scales is None:
        return values
    found = values.float()
    return (found if zeros is None else found - zeros.float()) * scales.float()


def _update_cache(value: Tensor, cache: Tensor, start_pos: int) -> Tensor:
    cache[:, start_pos : start_pos + value.shape[1]] = value
    return value.new_zeros(1)


def _update_cache_meta(value: Tensor, cache: Tensor, start_pos: int) -> Tensor:
    del cache, start_pos
    return value.new_empty(1)


def _attention_meta(query: Tensor, *_rest: Any, **_more: Any) -> Tensor:  # noqa: ANN401
    return query.new_empty(query.shape)


def _quantized_meta(query: Tensor, *_rest: Any, **_more: Any) -> Tensor:  # noqa: ANN401
    return query.new_empty(query.shape, dtype=torch.float32)


for _name, _run, _meta in (
    ("custom_sdpa", _attention, _attention_meta),
    ("custom_quantized_sdpa", _quantized_attention, _quantized_meta),
    ("update_cache", _update_cache, _update_cache_meta),
):
    _library.impl(_name, _run, "CPU")
    _library.impl(_name, _meta, "Meta")
_packets: Any = getattr(torch.ops, NAMESPACE)
CUSTOM_SDPA: Any = _packets.custom_sdpa.default
UPDATE_CACHE: Any = _packets.update_cache.default
