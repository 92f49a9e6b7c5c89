"""A GPT-2 shaped decoder, the small default: learned positions, layer norms, GELU."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from typing_extensions import override

from compiler.llm.activations import ACTIVATIONS
from compiler.llm.attention import Attend, CacheOptions, CallPositions, place_of

Tensor = torch.Tensor


@dataclass(frozen=True)
class NanoGptSizes:
    """Sizes of a GPT, with the names of its configuration files."""

    vocab_size: int = 256
    block_size: int = 256
    n_layer: int = 4
    n_head: int = 4
    n_embd: int = 128
    bias: bool = True
    act_fn: str = "gelu"


class NanoGpt(nn.Module):
    """Token and position embeddings, blocks of attention and a hidden layer, logits."""

    def __init__(
        self, sizes: NanoGptSizes, cache: CacheOptions, *, all_logits: bool, dtype: torch.dtype
    ) -> None:
        super().__init__()
        self.cache, self.all_logits = cache, all_logits
        width = sizes.n_embd
        self.wte = nn.Embedding(sizes.vocab_size, width, dtype=dtype)
        self.wpe = nn.Embedding(sizes.block_size, width, dtype=dtype)
        self.h = nn.ModuleList(_Block(sizes, cache, dtype) for _ in range(sizes.n_layer))
        self.ln_f = nn.LayerNorm(width, bias=sizes.bias, dtype=dtype)
        self.lm_head = nn.Linear(width, sizes.vocab_size, bias=False, dtype=dtype)
        self.lm_head.weight = self.wte.weight

    @override
    def forward(self, tokens: Tensor, input_pos: Tensor | None = None) -> Tensor:
        """Return logits of the last position, or of all."""
        place = place_of(tokens, input_pos, self.cache)
        x = self.wte(tokens) + self.wpe(place.positions)
        for block in self.h:
            x = block(x, place)
        x = self.ln_f(x)
        return self.lm_head(x if self.all_logits else x[:, -1, :])


class _Block(nn.Module):
    def __init__(self, sizes: NanoGptSizes, cache: CacheOptions, dtype: torch.dtype) -> None:
        super().__init__()
        width = sizes.n_embd
        self.heads, self.activation = sizes.n_head, ACTIVATIONS[sizes.act_fn]
        self.ln_1 = nn.LayerNorm(width, bias=sizes.bias, dtype=dtype)
        self.attn = nn.ModuleDict(
            {
                "c_attn": nn.Linear(width, 3 * width, bias=sizes.bias, dtype=dtype),
                "c_proj": nn.Linear(width, width, bias=sizes.bias, dtype=dtype),
                "attend": Attend(cache, self.heads, self.heads, width // self.heads, dtype),
            }
        )
        self.ln_2 = nn.LayerNorm(width, bias=sizes.bias, dtype=dtype)
        self.mlp = nn.ModuleDict(
            {
                "c_fc": nn.Linear(width, 4 * width, bias=sizes.bias, dtype=dtype),
                "c_proj": nn.Linear(4 * width, width, bias=sizes.bias, dtype=dtype),
            }
        )

    @override
    def forward(self, x: Tensor, place: CallPositions) -> Tensor:
        batch, count, width = x.shape
        parts = self.attn["c_attn"](self.ln_1(x)).split(width, dim=2)
        query, keys, values = (one.reshape(batch, count, self.heads, -1) for one in parts)
        found = self.attn["attend"](query, keys, values, place)
        x = x + self.attn["c_proj"](found.reshape(batch, count, width))
        hidden = self.activation(self.mlp["c_fc"](self.ln_2(x)))
        return x + self.mlp["c_proj"](hidden)
