"""Checkpoints on disk: config.json and safetensors, by family."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from compiler.errors import CompileError
from compiler.llm.config import config_of
from compiler.llm.export import exported_llm
from compiler.llm.model import build_model
from compiler.llm.safetensors import write_safetensors
from tests.llm.configs import CACHE, CUSTOM, config

HF: dict[str, Any] = {
    "hidden_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 96,
    "intermediate_size": 128,
    "max_position_embeddings": 256,
}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
SHORT = {"original_max_position_embeddings": 16}
LONG = {"rope_type": "longrope", "short_factor": [1.1] * 6, "long_factor": [2.0] * 6}
GEMMA = {"head_dim": 16, "sliding_window": 6, "query_pre_attn_scalar": 16}
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("llama", {"rope_scaling": LLAMA3, "tie_word_embeddings": True, "head_dim": 16}),
    "llama_yarn": ("llama", {"rope_scaling": {"rope_type": "yarn", "factor": 4.0, **SHORT}}),
    "llama_dynamic": (
        "llama",
        {"rope_scaling": {"rope_type": "dynamic", "factor": 2.0}, "max_position_embeddings": 8},
    ),
    "qwen2": ("qwen2", {}),
    "qwen3": ("qwen3", {"head_dim": 32}),
    "mistral": ("mistral", {"sliding_window": 6}),
    "phi3": ("phi3", {"partial_rotary_factor": 0.75, "pad_token_id": 0}),
    "phi3_long": (
        "phi3",
        {
            "partial_rotary_factor": 0.75,
            "pad_token_id": 0,
            "original_max_position_embeddings": 128,
            "rope_scaling": LONG,
        },
    ),
    "phi3_beyond": (
        "phi3",
        {
            "partial_rotary_factor": 0.75,
            "pad_token_id": 0,
            "original_max_position_embeddings": 8,
            "rope_scaling": LONG,
        },
    ),
    "phi3_window": ("phi3", {"pad_token_id": 0, "sliding_window": 6}),
    "gemma": ("gemma", {"head_dim": 16}),
    "gemma2": ("gemma2", GEMMA),
    "gemma3": ("gemma3_text", GEMMA),
    "gpt2": ("gpt2", {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 128}),
    "olmo2": ("olmo2", {"pad_token_id": 0}),
    "gpt_neox": ("gpt_neox", {"num_key_value_heads": 4, "pad_token_id": 0}),
}
FOREIGN = ("olmo2", "gpt_neox")  # built by transformers itself


def _module(folder: Path, model: dict[str, Any]) -> torch.nn.Module:
    return build_model(
        config_of(
            {
                "base": {"model_class": "", "checkpoint": str(folder)},
                "model": model,
                "export": {"max_seq_length": 64, "max_context_length": 64},
                "debug": {"generate_full_logits": True},
            }
        )
    ).module


@pytest.mark.zoo
@pytest.mark.parametrize("name", FAMILIES)
def test_logits_are_those_of_transformers(tmp_path: Path, name: str) -> None:
    transformers: Any = pytest.importorskip("transformers")
    kind, more = FAMILIES[name]
    given = {"vocab_size": 96, **more} if kind == "gpt2" else {**HF, **more}
    torch.manual_seed(0)
    own = transformers.AutoModelForCausalLM.from_config(
        transformers.AutoConfig.for_model(kind, **given), attn_implementation="eager"
    ).eval()
    for parameter in own.parameters():
        noise = torch.randn_like(parameter) * 0.1
        parameter.data.copy_(noise if parameter.dim() > 1 else parameter.data + noise)
    own.save_pretrained(tmp_path)
    ids = torch.randint(0, 96, (1, 20))
    with torch.no_grad():
        wanted = own(ids).logits
        for model in ({}, CACHE) if name in FOREIGN else ({}, CACHE, CUSTOM):
            found = _module(tmp_path, model)(ids, *([torch.tensor([0])] if model else []))
            torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
    if name in FOREIGN:  # with a cache, in two calls
        module = _module(tmp_path, CACHE)
        with torch.no_grad():
            calls = [module(ids[:, a:b], torch.tensor([a])) for a, b in ((0, 12), (12, 20))]
        torch.testing.assert_close(torch.cat(calls, 1), wanted, rtol=1e-4, atol=1e-4)


def _saved(folder: Path, **changes: Any) -> torch.nn.Module:
    """Write the checkpoint of a small Llama; return its module."""
    params = {"n_layers": 3, "tie_word_embeddings": True, "norm_eps": 1e-6}
    chosen = config("llama3", CACHE, **params)
    chosen = replace(chosen, debug=replace(chosen.debug, generate_full_logits=True))
    module = build_model(chosen).module
    weights = dict(module.named_parameters())
    names = list(weights)
    parts = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for file, mine in parts.items():
        write_safetensors({name: weights[name] for name in mine}, folder / file)
    index = {"weight_map": {name: file for file, mine in parts.items() for name in mine}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    found = {**HF, "model_type": "llama", "rms_norm_eps": 1e-6, "tie_word_embeddings": True}
    found |= {"bos_token_id": 1, "eos_token_id": [2, 3], **changes}
    (folder / "config.json").write_text(json.dumps(found))
    return module


def test_a_folder_of_several_files_is_read(tmp_path: Path) -> None:
    own = _saved(tmp_path)
    ids, place = torch.randint(0, 96, (1, 9)), torch.tensor([0])
    with torch.no_grad():
        assert torch.equal(_module(tmp_path, CACHE)(ids, place), own(ids, place))


def test_the_decoder_of_a_model_of_images_is_read(tmp_path: Path) -> None:
    sizes = {"head_dim": 16, "attn_scale": 0.25, "embedding_scale_factor": 8.0}
    chosen = config("gemma3", CACHE, **sizes)
    chosen = replace(chosen, debug=replace(chosen.debug, generate_full_logits=True))
    own = build_model(chosen).module
    text = {"hidden_size": 64, "num_hidden_layers": 2, "intermediate_size": 128, "head_dim": 16}
    text |= {"num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 96}
    text |= {"query_pre_attn_scalar": 16, "rope_theta": 1e4, "layer_types": ["full_attention"] * 2}
    whole = {"model_type": "gemma3", "text_config": text, "vision_config": {"hidden_size": 8}}
    (tmp_path / "config.json").write_text(json.dumps(whole))
    weights: dict[str, torch.Tensor] = {
        f"language_model.{name}": one for name, one in own.named_parameters()
    }
    weights["vision_tower.embeddings.weight"] = torch.zeros(3)
    write_safetensors(weights, tmp_path / "model.safetensors")
    ids, place = torch.randint(0, 96, (1, 9)), torch.tensor([0])
    with torch.no_grad():
        torch.testing.assert_close(_module(tmp_path, CACHE)(ids, place), own(ids, place))


@pytest.mark.slow
def test_tokens_that_begin_and_end_come_from_the_checkpoint(tmp_path: Path) -> None:
    _saved(tmp_path)
    found = exported_llm(config_of({"base": {"model_class": "", "checkpoint": str(tmp_path)}}))
    assert (found.constants["get_bos_id"], found.constants["get_eos_ids"]) == (1, [2, 3])


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"model_type": "nonsense"}, "unknown model_type 'nonsense'; available: gpt2, llama"),
        ({"model_type": ["llama"]}, "unknown model_type ['llama']; available: gpt2, llama"),
        ({"num_hidden_layers": 4}, "the checkpoint has no model.layers.3"),
        ({"num_hidden_layers": 2}, "the model has no model.layers.2"),
        ({"intermediate_size": 96}, "has shape [128, 64], the model has [96, 64]"),
        ({"rope_scaling": {"rope_type": "ntk"}}, "config.json: rope_scaling: unknown 'ntk'"),
        (
            {"rope_parameters": {"rope_type": "linear", "factor": 0}},
            "config.json: rope_parameters.factor: expected a positive number, found 0",
        ),
        ({"hidden_size": "64"}, "config.json: hidden_size: expected an integer, found '64'"),
        ({"layer_types": ["full_attention"]}, "config.json: layer_types: expected one for each of"),
        ({"num_attention_heads": 0}, "config.json: num_attention_heads: expected at least 1"),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_one_sentence(
    tmp_path: Path, changes: dict[str, Any], sentence: str
) -> None:
    _saved(tmp_path, **changes)
    with pytest.raises(CompileError) as found:
        _module(tmp_path, CACHE)
    assert sentence in str(found.value)


def test_pickled_weights_are_refused(tmp_path: Path) -> None:
    _saved(tmp_path)
    for path in tmp_path.glob("*.safetensors*"):
        path.unlink()
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(CompileError, match="would have to be unpickled"):
        _module(tmp_path, CACHE)


@pytest.mark.zoo
@pytest.mark.parametrize(
    ("changes", "model", "sentence"),
    [
        ({"num_hidden_layers": 4}, CACHE, "the checkpoint has no model.layers.3"),
        ({"num_hidden_layers": 2}, CACHE, "the model has no model.layers.2"),
        ({"vocab_size": 100}, CACHE, "of the checkpoint has shape [96, 64], the model has [100"),
        ({"hidden_size": "64"}, CACHE, "hidden_size"),
        ({"hidden_size": -8}, CACHE, "transformers builds no decoder of model_type 'olmo2'"),
        ({"num_hidden_layers": 10**9}, CACHE, "expected 1 to 4,096 layers, found 1000000000"),
        ({"vocab_size": 1 << 50}, CACHE, "vocab_size: expected less than"),
        ({"quantization_config": {"bits": 4}}, CACHE, "a quantized checkpoint: not supported"),
        ({"model_type": "vit"}, CACHE, "config.json"),
        ({}, CUSTOM, "model.use_sdpa_with_kv_cache: not available for 'olmo2'"),
    ],
)
def test_a_checkpoint_of_another_family_that_does_not_fit_is_one_sentence(
    tmp_path: Path, changes: dict[str, Any], model: dict[str, Any], sentence: str
) -> None:
    transformers: Any = pytest.importorskip("transformers")
    kind = transformers.AutoConfig.for_model("olmo2", **HF, pad_token_id=0)
    transformers.AutoModelForCausalLM.from_config(kind).save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    with pytest.raises(CompileError) as caught:
        _module(tmp_path, model)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_families_that_need_transformers_say_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    (tmp_path / "config.json").write_text(json.dumps({**HF, "model_type": "olmo2"}))
    with pytest.raises(CompileError, match="need transformers: pip install 'etscope"):
        _module(tmp_path, CACHE)
