"""Parts of torch's fast path of attention, which has no kernel.

Layers of transformers take it in eval mode where nothing needs a gradient: under ``no_grad``, or
with frozen weights. An exported program then has one operator for a whole layer.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from compiler.untyped import aten

_OF_QUERIES, _OF_KEYS = 0, 1  # kinds of masks: (queries, keys) and (batch, keys); else whole


def _masked(scores: Any, mask: Any, kind: int | None) -> Any:  # noqa: ANN401
    """Return scores (batch, heads, queries, keys) without those that a mask excludes."""
    if mask is None:
        return scores
    excluded = mask != 0  # as the kernel reads a mask of numbers
    if kind == _OF_QUERIES:
        excluded = excluded[None, None]
    elif kind == _OF_KEYS:
        excluded = excluded[:, None, None]
    return scores.masked_fill(excluded, -torch.inf)


def attention(  # noqa: PLR0913 - the arguments of the operator
    query: Any,  # noqa: ANN401
    key: Any,  # noqa: ANN401
    value: Any,  # noqa: ANN401
    embed_dim: int,
    num_head: int,
    qkv_weight: Any,  # noqa: ANN401
    qkv_bias: Any,  # noqa: ANN401
    proj_weight: Any,  # noqa: ANN401
    proj_bias: Any,  # noqa: ANN401
    mask: Any = None,  # noqa: ANN401
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> Any:  # noqa: ANN401
    """Return the output (batch, queries, embed_dim) and the weights, if they are needed."""
    given = (query, key, value)
    weights, biases = qkv_weight.chunk(3), qkv_bias.chunk(3)
    size = embed_dim // num_head
    heads: list[Any] = [
        functional.linear(one, weight, bias).reshape(*one.shape[:2], num_head, size)
        for one, weight, bias in zip(given, weights, biases, strict=True)
    ]
    queries, keys, values = (one.transpose(1, 2) for one in heads)
    scores = torch.matmul(queries * size**-0.5, keys.transpose(-2, -1))
    shares = torch.softmax(_masked(scores, mask, mask_type), -1)
    mixed = torch.matmul(shares, values).transpose(1, 2).flatten(2)
    result = functional.linear(mixed, proj_weight, proj_bias)
    if not need_weights:
        return result, None
    return result, shares.mean(1) if average_attn_weights else shares


def encoder_layer(  # noqa: PLR0913 - the arguments of the operator
    src: Any,  # noqa: ANN401
    embed_dim: int,
    num_heads: int,
    qkv_weight: Any,  # noqa: ANN401
    qkv_bias: Any,  # noqa: ANN401
    proj_weight: Any,  # noqa: ANN401
    proj_bias: Any,  # noqa: ANN401
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Any,  # noqa: ANN401
    norm_bias_1: Any,  # noqa: ANN401
    norm_weight_2: Any,  # noqa: ANN401
    norm_bias_2: Any,  # noqa: ANN401
    ffn_weight_1: Any,  # noqa: ANN401
    ffn_bias_1: Any,  # noqa: ANN401
    ffn_weight_2: Any,  # noqa: ANN401
    ffn_bias_2: Any,  # noqa: ANN401
    mask: Any = None,  # noqa: ANN401
    mask_type: int | None = None,
) -> Any:  # noqa: ANN401
    """Return the output of an encoder layer: attention, then two linear layers."""
    activation = functional.gelu if use_gelu else functional.relu

    def norm(x: Any, weight: Any, bias: Any) -> Any:  # noqa: ANN401
        return functional.layer_norm(x, (embed_dim,), weight, bias, eps)

    x = norm(src, norm_weight_1, norm_bias_1) if norm_first else src
    weights = qkv_weight, qkv_bias, proj_weight, proj_bias
    x = src + attention(x, x, x, embed_dim, num_heads, *weights, mask, False, True, mask_type)[0]
    if not norm_first:
        x = norm(x, norm_weight_1, norm_bias_1)
    inner = norm(x, norm_weight_2, norm_bias_2) if norm_first else x
    inner = activation(functional.linear(inner, ffn_weight_1, ffn_bias_1))
    x = x + functional.linear(inner, ffn_weight_2, ffn_bias_2)
    return x if norm_first else norm(x, norm_weight_2, norm_bias_2)


RULES: dict[Any, Any] = {
    aten._native_multi_head_attention.default: attention,
    aten._transformer_encoder_layer_fwd.default: encoder_layer,
}
