"""Small language models of several families, and greedy generation with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from compiler.llm.config import LlmConfig, config_of

SMALL = {
    "dim": 64,
    "n_layers": 2,
    "n_heads": 4,
    "n_kv_heads": 2,
    "vocab_size": 96,
    "hidden_dim": 128,
}
NANO = {"n_layer": 2, "n_head": 2, "n_embd": 32, "vocab_size": 96, "block_size": 64}
LENGTHS = {"max_seq_length": 32, "max_context_length": 48}
CACHE = {"use_kv_cache": True}
CUSTOM = {**CACHE, "use_sdpa_with_kv_cache": True}
LONG_ROPE = {
    "rope_type": "longrope",
    "short_factor": [1.1] * 6,
    "long_factor": [2.0] * 6,
    "original_max_position_embeddings": 8,  # a text passes it
    "max_position_embeddings": 64,
}
PROMPT = (1, 5, 9, 77)


def config(
    family: str = "nano_gpt", model: dict[str, Any] | None = None, **params: Any
) -> LlmConfig:
    sizes = {**(NANO if family == "nano_gpt" else SMALL), **params}
    base = {"model_class": family, "params": sizes}
    return config_of({"base": base, "model": model or {}, "export": dict(LENGTHS)})


CASES: dict[str, LlmConfig] = {
    "nano": config(),
    "nano_cache": config(model=CACHE),
    "nano_custom": config(model=CUSTOM),
    "llama": config("llama3_2", CACHE, use_scaled_rope=True),
    "llama_all_heads": config("llama2", CUSTOM, n_kv_heads=4),
    "llama_one_group": config("llama3", CUSTOM, n_kv_heads=1, tie_word_embeddings=True),
    "qwen2": config("qwen2_5_0_5b", CACHE, tie_word_embeddings=True),
    "qwen3_int8_cache": config("qwen3_0_6b", {**CUSTOM, "quantize_kv_cache": True}, head_dim=32),
    "phi_int8_cache": config(
        "phi_4_mini", {**CACHE, "quantize_kv_cache": True}, rope_scaling=LONG_ROPE
    ),
    "gemma2": config(
        "gemma2", CACHE, attn_logit_softcapping=30.0, final_logit_softcapping=20.0, windows=[6, 0]
    ),
    "gemma3": config("gemma3", CACHE, windows=[6, 0], local_rope_theta=1000.0),
    "sink": config("llama3", {**CUSTOM, "use_attention_sink": "2,6"}),
}


def generated(
    step: Callable[..., torch.Tensor], prompt: Sequence[int], count: int, *, cache: bool
) -> list[int]:
    """Return the likeliest tokens behind a prompt."""
    tokens, now, place = list(prompt), list(prompt), 0
    for _ in range(count):
        given = [torch.tensor([now]), torch.tensor([place])] if cache else [torch.tensor([tokens])]
        logits = step(*given)
        place += len(now)
        now = [int(logits.reshape(-1, logits.shape[-1])[-1].argmax())]
        tokens += now
    return tokens[len(prompt) :]
