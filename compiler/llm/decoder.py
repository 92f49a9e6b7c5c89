"""Decoders of the families Llama, Qwen, Phi, SmolLM, Mistral and Gemma, by their sizes.

Modules are named as in the checkpoints of these families.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from typing_extensions import override

from compiler.llm.activations import ACTIVATIONS
from compiler.llm.attention import Attend, CacheOptions, CallPositions, place_of
from compiler.llm.rotary import Frequencies, rotary_frequencies, rotated, turns_at

Tensor = torch.Tensor


@dataclass(frozen=True)
class DecoderSizes:
    """Sizes of a decoder, with the names of ExecuTorch's parameter files where they exist.

    Attributes:
        head_dim: 0 for the width by the heads
        partial_rotary_factor: the part of a head that is turned
        local_rope_theta: base of the layers with a window, 0 for that of all
        windows: positions by layer that are attended to, 0 for all; empty for all
        norm_offset: added to the weights of norms
        sandwich_norms: norms behind attention and hidden layer too
        attn_scale: of the products, 0 for that of the size of a head
    """

    dim: int
    n_layers: int
    n_heads: int
    vocab_size: int
    hidden_dim: int
    n_kv_heads: int = 0
    head_dim: int = 0
    norm_eps: float = 1e-5
    rope_theta: float = 10000.0
    rope_scaling: Mapping[str, Any] = field(default_factory=dict[str, Any])
    partial_rotary_factor: float = 1.0
    local_rope_theta: float = 0.0
    windows: tuple[int, ...] = ()
    act_fn: str = "silu"
    attention_qkv_bias: bool = False
    attention_out_bias: bool = False
    mlp_bias: bool = False
    use_qk_norm: bool = False
    norm_offset: float = 0.0
    sandwich_norms: bool = False
    embedding_scale_factor: float = 1.0
    attn_logit_softcapping: float = 0.0
    final_logit_softcapping: float = 0.0
    attn_scale: float = 0.0
    tie_word_embeddings: bool = False

    @property
    def size_of_head(self) -> int:
        """Return the size of a head."""
        return self.head_dim or self.dim // self.n_heads

    @property
    def groups(self) -> int:
        """Return the number of heads of keys and values."""
        return self.n_kv_heads or self.n_heads

    @property
    def window_of_layers(self) -> tuple[int, ...]:
        """Return the window of each layer, 0 for none."""
        return self.windows or (0,) * self.n_layers

    def rolls(self, cache: CacheOptions) -> bool:
        """Return whether all caches are rings, so that a text may be longer than the context."""
        return cache.used and all(cache.is_ring(one) for one in self.window_of_layers)


class RMSNorm(nn.Module):
    """Scales rows to a mean square of one, in float32."""

    def __init__(self, size: int, eps: float, offset: float, dtype: torch.dtype) -> None:
        super().__init__()
        self.eps, self.offset = eps, offset
        start = torch.ones(size, dtype=dtype) - offset
        self.weight = nn.Parameter(start)

    @override
    def forward(self, x: Tensor) -> Tensor:
        """Return the scaled rows."""
        wide = x.float()
        found = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        if self.offset:
            return (found * (self.weight.float() + self.offset)).to(x.dtype)
        return found.to(x.dtype) * self.weight


class Decoder(nn.Module):
    """Embeddings, layers, and logits of the last position or of all."""

    def __init__(
        self, sizes: DecoderSizes, cache: CacheOptions, *, all_logits: bool, dtype: torch.dtype
    ) -> None:
        super().__init__()
        self.sizes, self.cache, self.all_logits = sizes, cache, all_logits
        self.model = _Layers(sizes, cache, dtype)
        self.lm_head = nn.Linear(sizes.dim, sizes.vocab_size, bias=False, dtype=dtype)
        if sizes.tie_word_embeddings:
            self.lm_head.weight = self.model.embed_tokens.weight

    @override
    def forward(self, tokens: Tensor, input_pos: Tensor | None = None) -> Tensor:
        """Return the logits."""
        place = place_of(tokens, input_pos, self.cache, rolls=self.sizes.rolls(self.cache))
        x = self.model(tokens, place)
        logits = self.lm_head(x if self.all_logits else x[:, -1, :])
        cap = self.sizes.final_logit_softcapping
        return torch.tanh(logits / cap) * cap if cap else logits


class _Layers(nn.Module):
    def __init__(self, sizes: DecoderSizes, cache: CacheOptions, dtype: torch.dtype) -> None:
        super().__init__()
        self.sizes = sizes
        self.embed_tokens = nn.Embedding(sizes.vocab_size, sizes.dim, dtype=dtype)
        windows = self.windows = sizes.window_of_layers
        self.layers = nn.ModuleList(
            _DecoderLayer(sizes, cache, windows[at], dtype) for at in range(sizes.n_layers)
        )
        self.norm = RMSNorm(sizes.dim, sizes.norm_eps, sizes.norm_offset, dtype)
        self.turns = _turns(sizes, cache, dtype, sizes.rope_theta, sizes.rope_scaling)
        self.near: _Angles | _AngleTables | None = None
        if sizes.local_rope_theta:
            self.near = _turns(sizes, cache, dtype, sizes.local_rope_theta)

    @override
    def forward(self, tokens: Tensor, place: CallPositions) -> Tensor:
        x = self.embed_tokens(tokens)
        if self.sizes.embedding_scale_factor != 1.0:
            x = x * torch.tensor(self.sizes.embedding_scale_factor, dtype=x.dtype)
        turns = self.turns(place.positions)
        near = turns if self.near is None else self.near(place.positions)
        for window, layer in zip(self.windows, self.layers, strict=True):
            x = layer(x, near if window else turns, place)
        return self.norm(x)


def _turns(
    sizes: DecoderSizes,
    cache: CacheOptions,
    dtype: torch.dtype,
    theta: float,
    scaling: Mapping[str, Any] | None = None,
) -> _Angles | _AngleTables:
    """Return cosine and sine by position: kept, or computed where they depend on the call."""
    part = int(sizes.size_of_head * sizes.partial_rotary_factor)
    angles = rotary_frequencies(part, cache.length, theta, scaling)
    if sizes.rolls(cache) or not angles.is_fixed:
        return _Angles(angles, dtype)
    return _AngleTables(angles, cache.length, dtype)


def angles_per_position(sizes: DecoderSizes, cache: CacheOptions) -> int:
    """Return the elements of the tables of cosine and sine for each position, 0 without tables."""
    if sizes.rolls(cache):
        return 0
    part = int(sizes.size_of_head * sizes.partial_rotary_factor)
    scalings: list[Mapping[str, Any]] = [sizes.rope_scaling]
    if sizes.local_rope_theta:
        scalings.append({})
    theta = sizes.rope_theta
    fixed = (rotary_frequencies(part, cache.length, theta, one).is_fixed for one in scalings)
    return 2 * part * sum(fixed)


class _AngleTables(nn.Module):
    """Cosine and sine of the positions of a context, kept."""

    cosine: Tensor
    sine: Tensor

    def __init__(self, angles: Frequencies, length: int, dtype: torch.dtype) -> None:
        super().__init__()
        cosine, sine = turns_at(torch.arange(length), angles)
        self.register_buffer("cosine", cosine.to(dtype), persistent=False)
        self.register_buffer("sine", sine.to(dtype), persistent=False)

    @override
    def forward(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        return self.cosine[positions], self.sine[positions]


class _Angles(nn.Module):
    """Cosine and sine of any position, computed."""

    frequencies: Tensor

    def __init__(self, angles: Frequencies, dtype: torch.dtype) -> None:
        super().__init__()
        self.register_buffer("frequencies", angles.rows, persistent=False)
        self.limit, self.factor, self.dtype = angles.limit, angles.factor, dtype

    @override
    def forward(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        angles = Frequencies(self.frequencies, self.limit, self.factor)
        cosine, sine = turns_at(positions, angles)
        return cosine.to(self.dtype), sine.to(self.dtype)


class _DecoderLayer(nn.Module):
    def __init__(
        self, sizes: DecoderSizes, cache: CacheOptions, window: int, dtype: torch.dtype
    ) -> None:
        super().__init__()
        norm = sizes.dim, sizes.norm_eps, sizes.norm_offset, dtype
        self.self_attn = _Attention(sizes, cache, window, dtype)
        self.mlp = _Hidden(sizes, dtype)
        self.input_layernorm = RMSNorm(*norm)
        self.post_attention_layernorm = RMSNorm(*norm)
        if sizes.sandwich_norms:
            self.pre_feedforward_layernorm = RMSNorm(*norm)
            self.post_feedforward_layernorm = RMSNorm(*norm)
        self.sandwich = sizes.sandwich_norms

    @override
    def forward(self, x: Tensor, turns: tuple[Tensor, Tensor], place: CallPositions) -> Tensor:
        found = self.self_attn(self.input_layernorm(x), turns, place)
        if not self.sandwich:
            x = x + found
            return x + self.mlp(self.post_attention_layernorm(x))
        x = x + self.post_attention_layernorm(found)
        hidden = self.mlp(self.pre_feedforward_layernorm(x))
        return x + self.post_feedforward_layernorm(hidden)


class _Hidden(nn.Module):
    def __init__(self, sizes: DecoderSizes, dtype: torch.dtype) -> None:
        super().__init__()
        wide, bias = sizes.hidden_dim, sizes.mlp_bias
        self.gate_proj = nn.Linear(sizes.dim, wide, bias=bias, dtype=dtype)
        self.up_proj = nn.Linear(sizes.dim, wide, bias=bias, dtype=dtype)
        self.down_proj = nn.Linear(wide, sizes.dim, bias=bias, dtype=dtype)
        self.activation: Any = ACTIVATIONS[sizes.act_fn]

    @override
    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(self.activation(self.gate_proj(x)) * self.up_proj(x))


class _Attention(nn.Module):
    def __init__(
        self, sizes: DecoderSizes, cache: CacheOptions, window: int, dtype: torch.dtype
    ) -> None:
        super().__init__()
        size, heads, groups = sizes.size_of_head, sizes.n_heads, sizes.groups
        bias = sizes.attention_qkv_bias
        self.size, self.window = size, window
        self.q_proj = nn.Linear(sizes.dim, heads * size, bias=bias, dtype=dtype)
        self.k_proj = nn.Linear(sizes.dim, groups * size, bias=bias, dtype=dtype)
        self.v_proj = nn.Linear(sizes.dim, groups * size, bias=bias, dtype=dtype)
        out_bias = sizes.attention_out_bias
        self.o_proj = nn.Linear(heads * size, sizes.dim, bias=out_bias, dtype=dtype)
        self.q_norm: nn.Module = nn.Identity()
        self.k_norm: nn.Module = nn.Identity()
        if sizes.use_qk_norm:
            norm = size, sizes.norm_eps, sizes.norm_offset, dtype
            self.q_norm, self.k_norm = RMSNorm(*norm), RMSNorm(*norm)
        self.attend = Attend(
            cache,
            heads,
            groups,
            size,
            dtype,
            scale=sizes.attn_scale or None,
            window=window,
            softcap=sizes.attn_logit_softcapping,
        )

    @override
    def forward(self, x: Tensor, turns: tuple[Tensor, Tensor], place: CallPositions) -> Tensor:
        batch, count, _ = x.shape
        projections = (self.q_proj, self.k_proj, self.v_proj)
        query, keys, values = (one(x).reshape(batch, count, -1, self.size) for one in projections)
        query, keys = rotated(self.q_norm(query), *turns), rotated(self.k_norm(keys), *turns)
        found = self.attend(query, keys, values, place)
        return self.o_proj(found.reshape(batch, count, -1))
