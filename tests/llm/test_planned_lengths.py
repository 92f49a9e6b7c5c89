"""The plan of a length against the module that has it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from compiler.llm.compat.backends import BackendConfig, XNNPackConfig
from compiler.llm.config import LlmConfig
from compiler.llm.export import export_llm
from compiler.llm.model import build_model
from compiler.llm.plan import plan_lengths
from compiler.llm.quantization import QuantizationConfig
from compiler.quantize.program import QuantizeError
from tests.llm.configs import CACHE, CUSTOM, config

_BIASES = {"attention_qkv_bias": True, "attention_out_bias": True, "mlp_bias": True}
_YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}
_DYNAMIC = {"rope_type": "dynamic", "factor": 2.0, "max_position_embeddings": 16}
SHAPES: dict[str, LlmConfig] = {
    "nano": config(model=CACHE),
    "nano_without_bias": config(bias=False),
    "llama": config("llama3", CUSTOM),
    "llama_without_cache": config("llama3"),
    "biases": config("llama3", CACHE, **_BIASES),
    "phi": config("phi_4_mini", CACHE, tie_word_embeddings=True, head_dim=32),
    "qwen3": config("qwen3_0_6b", {**CACHE, "dtype_override": "fp16"}, head_dim=32),
    "gemma2": config("gemma2", CACHE, windows=[6, 0]),
    "gemma3": config("gemma3", CACHE, windows=[6, 0], local_rope_theta=1000.0),
    "yarn": config("llama3", CACHE, rope_scaling=_YARN),
    "dynamic": config("llama3", CACHE, rope_scaling=_DYNAMIC),
    "rolls": config("mistral", CACHE, windows=[4, 4]),
}


def _with_length(chosen: LlmConfig, length: int) -> LlmConfig:
    export = replace(chosen.export, max_seq_length=8, max_context_length=length)
    return replace(chosen, export=export)


def _held(chosen: LlmConfig) -> int:
    """Return the bytes of parameters and tables of a module, a cache and frequencies apart."""
    module = build_model(chosen).module
    kept: list[torch.Tensor] = [*module.parameters()]
    names = ("cosine", "sine")
    kept += [one for name, one in module.named_buffers() if name.rpartition(".")[2] in names]
    return sum(one.numel() * one.element_size() for one in kept)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("length", [24, 200, 1024])
def test_planned_weights_are_those_of_the_module_of_each_length(name: str, length: int) -> None:
    planned: Any
    (planned,) = plan_lengths(_with_length(SHAPES[name], 40), [length])
    assert planned.weights == _held(_with_length(SHAPES[name], length))


@pytest.mark.slow
def test_a_file_grows_with_the_length_as_planned() -> None:
    sizes = [len(export_llm(_with_length(SHAPES["llama"], one)).buffer) for one in (64, 512)]
    short, long = plan_lengths(SHAPES["llama"], (64, 512))
    assert sizes[1] - sizes[0] == pytest.approx(long.weights - short.weights, rel=0.02)


@pytest.mark.parametrize(
    ("words", "same"),
    [
        ({"qmode": "8da4w:group=64"}, {"qmode": "8da4w", "group_size": 64}),
        ({"pt2e_quantize": "xnnpack_dynamic"}, {"qmode": "int8"}),
    ],
)
def test_words_that_mean_the_same_are_planned_alike(words: dict[str, Any], same: Any) -> None:
    plain = SHAPES["llama"]
    one, two, floats = (
        plan_lengths(replace(plain, quantization=QuantizationConfig(**given)), [64])[0]
        for given in (words, same, {})
    )
    assert one == two
    assert one.weights < floats.weights


@pytest.mark.slow
@pytest.mark.parametrize(
    "word", ["8da4w", "8da8w", "4w", "int8", "int8:group=32", "8da8w:group=32"]
)
def test_weights_that_a_backend_holds_as_floats_are_planned_as_floats(word: str) -> None:
    chosen = replace(
        _with_length(config("llama3", CACHE, dim=192, n_layers=1, hidden_dim=384), 16),
        backend=BackendConfig(xnnpack=XNNPackConfig(enabled=True)),
        quantization=QuantizationConfig(qmode=word),
    )
    planned: Any
    (planned,) = plan_lengths(chosen, [16])
    assert len(export_llm(chosen).buffer) == pytest.approx(planned.weights, rel=0.1)


_TIED = {"tie_word_embeddings": True}
QUANTIZED: dict[str, tuple[LlmConfig, dict[str, Any]]] = {
    "one_kind": (SHAPES["llama"], {"modules": {"model.layers.*.mlp.up_proj": "int8"}}),
    "all_but": (SHAPES["llama"], {"qmode": "int8", "modules": {"model.layers.1": "none"}}),
    "nested": (
        config("llama3", CACHE, hidden_dim=1024),
        {"qmode": "8da4w", "modules": {"model.layers.0": "int8", "model.layers.0.mlp": "4w"}},
    ),
    "tied_head": (config("llama3", CACHE, **_TIED, vocab_size=4096), {"qmode": "int8"}),
    "tied_table": (
        config("llama3", CACHE, **_TIED, vocab_size=4096),
        {"embedding_quantize": "4,32"},
    ),
    "tied_whole": (
        config("llama3", CACHE, **_TIED, hidden_dim=1024),
        {"pt2e_quantize": "xnnpack_dynamic"},
    ),
    "nano": (
        config(model=CACHE, block_size=2048),
        {"modules": {"h": "int8"}, "embedding_quantize": "8,0"},
    ),
    "float_positions": (
        config(model=CACHE, block_size=2048, vocab_size=4096),
        {"embedding_quantize": "8,0", "modules": {"wpe": "none"}},
    ),
    "positions": (config(model=CACHE, block_size=2048), {"modules": {"wpe": "4:group=32"}}),
    "table": (
        config("llama3", CACHE, vocab_size=4096),
        {"qmode": "int8", "modules": {"model.embed_tokens": "4:group=32"}},
    ),
    "nano_layer": (config(model=CACHE), {"modules": {"h.1.attn": "4w"}}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", QUANTIZED)
def test_files_grow_by_the_planned_weights_of_modules(name: str) -> None:
    plain, words = QUANTIZED[name]
    chosen = replace(plain, quantization=QuantizationConfig(**words))
    planned = [plan_lengths(one, [48])[0].weights for one in (plain, chosen)]
    stored = [len(export_llm(one).buffer) for one in (plain, chosen)]
    saved = planned[0] - planned[1]
    assert stored[0] - stored[1] == pytest.approx(saved, abs=max(abs(saved) * 0.1, 16_000))


def test_a_word_for_a_module_that_the_model_has_not_is_no_plan() -> None:
    words = QuantizationConfig(modules={"model.layers.7": "int8"})
    with pytest.raises(QuantizeError, match=r"model\.layers\.7: no linear layer"):
        plan_lengths(replace(SHAPES["llama"], quantization=words), [24])
