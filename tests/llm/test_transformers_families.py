"""Families of the transformers package: tokens of our runtime are those without a cache."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from compiler.errors import CompileError
from compiler.llm.config import config_of
from compiler.llm.export import export_llm
from compiler.llm.model import build_model
from compiler.llm.plan import plan_lengths
from runtime import Runtime
from runtime.llm.generation import GenerationConfig
from runtime.llm.text_runner import TextRunner
from tests.llm.configs import generated

pytestmark = pytest.mark.zoo

SIZES = {
    "vocab_size": 96,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
PAIRS = {"num_key_value_heads": 2}
EXPERTS = {"num_local_experts": 4, "num_experts_per_tok": 2}
HEADS = {  # of latent attention
    "kv_lora_rank": 16,
    "q_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 8,
}
LATENT = {  # keys and values of other sizes than heads have
    **HEADS,
    "n_routed_experts": 4,
    "moe_intermediate_size": 32,
    "first_k_dense_replace": 1,
    "n_group": 1,
    "topk_group": 1,
    "num_experts_per_tok": 2,
}
MIXED = {
    **PAIRS,
    "num_hidden_layers": 4,
    "head_dim": 8,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "shared_expert_intermediate_size": 32,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
}
BAMBA = {**PAIRS, "mamba_n_heads": 8, "mamba_d_state": 8, "attn_layer_indices": [1]}
FALCON = {  # attention beside a state space in each layer
    **PAIRS,
    "head_dim": 8,
    "mamba_d_ssm": 64,
    "mamba_n_heads": 8,
    "mamba_d_head": 8,
    "mamba_d_state": 8,
    "mamba_n_groups": 1,
}
KIMI = {  # latent attention beside a state that decays by channel
    **{name: size for name, size in LATENT.items() if name != "q_lora_rank"},
    "num_hidden_layers": 3,
    "num_experts": 4,
    "num_experts_per_token": 2,
    "layer_types": ["linear_attention", "full_attention", "linear_attention"],
    "mlp_layer_types": ["dense", "sparse", "sparse"],
    "linear_head_dim": 8,
    "linear_num_heads": 4,
}
KINDS = ["sliding_attention", "full_attention"]
LINEAR = ["linear_attention", "full_attention"]
LLAMA4 = {
    **PAIRS,
    **EXPERTS,
    "intermediate_size_mlp": 64,
    "head_dim": 8,
    "attention_chunk_size": 16,
}
MANY = {
    "opt": {"ffn_dim": 64, "word_embed_proj_dim": 32},  # positions counted by a mask
    "camembert": {"is_decoder": True},  # positions begin behind that of the padding
    "biogpt": {},
    "falcon": {},  # one head of keys for all
    "falcon+alibi": {"alibi": True, "multi_query": False},  # which takes distances from a mask
    "bloom": {},
    "ctrl": {"dff": 64},  # which counts positions in Python unless it is given them
    "xglm": {"d_model": 32, "num_layers": 2, "attention_heads": 4, "ffn_dim": 64},
    "big_bird": {"is_decoder": True, "attention_type": "original_full"},  # masks what is so far
    "mvp": {"d_model": 32, "decoder_layers": 2, "decoder_attention_heads": 4},  # counts in Python
    "stablelm": {**PAIRS, "use_parallel_residual": True, "qk_layernorm": True},
    "starcoder2": {**PAIRS, "sliding_window": 8},
    "granite": {**PAIRS, "logits_scaling": 2.0, "attention_multiplier": 0.2},
    "mixtral": {**PAIRS, **EXPERTS},
    "deepseek_v3": LATENT,
    "deepseek_v32": {  # chooses the positions that it attends to by keys of their own
        **LATENT,
        "num_key_value_heads": 4,
        "index_n_heads": 2,
        "index_head_dim": 8,
        "index_topk": 4,
    },
    "gpt_neox_japanese": {},  # an empty tensor is concatenated
    "cohere2": {**PAIRS, "sliding_window": 8},
    "gpt_oss": {**PAIRS, **EXPERTS, "head_dim": 8, "sliding_window": 8, "layer_types": KINDS},
    "nemotron": PAIRS,
    "phimoe": {**PAIRS, **EXPERTS},
    "olmo3": {**PAIRS, "sliding_window": 8, "layer_types": KINDS},
    "exaone4": {**PAIRS, "head_dim": 8, "sliding_window": 8, "layer_types": KINDS},
    "gemma4_text": {  # a table of embeddings for each layer, heads of two sizes
        **PAIRS,
        "head_dim": 8,
        "global_head_dim": 16,
        "sliding_window": 8,
        "layer_types": KINDS,
        "vocab_size_per_layer_input": 96,
        "hidden_size_per_layer_input": 8,
        "num_kv_shared_layers": 0,
    },
    "gemma3n_text": {  # activations above a quantile, the last layers read keys of earlier ones
        **PAIRS,
        "num_hidden_layers": 4,
        "head_dim": 8,
        "sliding_window": 8,
        "layer_types": KINDS * 2,
        "intermediate_size": [64] * 4,
        "vocab_size_per_layer_input": 96,
        "hidden_size_per_layer_input": 8,
        "num_kv_shared_layers": 2,
        "laurel_rank": 8,
        "altup_num_inputs": 2,
        "activation_sparsity_pattern": [0.5, 0.0, 0.0, 0.0],
    },
    "modernbert-decoder": {"local_attention": 8, "global_attn_every_n_layers": 2},
    "diffllama": PAIRS,  # attention is a difference of two
    "jais2": PAIRS,
    "laguna": PAIRS,
    "minicpm3": {**HEADS, "num_key_value_heads": 4},
    "nanochat": PAIRS,
    "youtu": {**HEADS, "num_key_value_heads": 4},
    "whisper": {  # counts the layers of an encoder that the decoder alone has not
        "num_hidden_layers": 1,
        "d_model": 32,
        "decoder_layers": 2,
        "decoder_attention_heads": 4,
        "decoder_ffn_dim": 64,
        "max_target_positions": 64,
    },
}
ONE = {  # one token a call
    "mamba": {"state_size": 8},
    "mamba2": {"state_size": 8, "num_heads": 8, "head_dim": 8, "n_groups": 1, "chunk_size": 8},
    "bamba": BAMBA,  # infinity in config.json
    "lfm2": {**PAIRS, "layer_types": ["conv", "full_attention"]},
    "qwen3_next": MIXED,
    "falcon_h1": FALCON,
    "kimi_linear": KIMI,
    "zamba2": {  # one layer of attention is used several times
        **PAIRS,
        "num_hidden_layers": 4,
        "mamba_d_state": 8,
        "mamba_headdim": 8,
        "n_mamba_heads": 8,
        "layers_block_type": ["mamba", "hybrid"] * 2,
    },
}
FIXED = {"llama4_text": LLAMA4}  # one token a call, where the configuration says so
RECURRENT = {**PAIRS, "num_hidden_layers": 3, "head_dim": 8, "lru_width": 32}
WHOLE = {  # without a cache
    "gpt_neo": {"attention_types": [[["global", "local"], 1]], "window_size": 8},
    "rwkv": {"attention_hidden_size": 32, "context_length": 64},
    "xlstm": {"hidden_size": 64, "num_heads": 4, "num_blocks": 2},
    "minimax": {**PAIRS, **EXPERTS, "head_dim": 8, "layer_types": LINEAR, "block_size": 8},
}
RECURRENT_GEMMA = {"recurrent_gemma": RECURRENT}
LONGCAT = {  # loops over the experts that the tokens chose
    "longcat_flash": {
        **LATENT,
        "num_layers": 2,
        "num_key_value_heads": 4,
        "head_dim": 8,
        "qk_head_dim": 16,
        "ffn_hidden_size": 64,
        "expert_ffn_hidden_size": 32,
        "moe_topk": 2,
        "zero_expert_num": 2,
    }
}
ALL = {
    **MANY,
    **ONE,
    **FIXED,
    **WHOLE,
    **RECURRENT_GEMMA,
    **LONGCAT,
    "mpt": {"d_model": 32, "n_layers": 2},
}


def _saved(folder: Path, kind: str) -> Any:
    transformers: Any = pytest.importorskip("transformers")
    torch.manual_seed(0)
    family = kind.partition("+")[0]
    sizes = transformers.AutoConfig.for_model(family, **{**SIZES, **ALL[kind]})
    made = transformers.AutoModelForCausalLM.from_config(sizes, dtype=torch.float32).eval()
    made.save_pretrained(folder)
    return made


def _config(folder: Path, *, dynamic: bool = True, cache: bool = True, **more: Any) -> Any:
    model = {"use_kv_cache": cache, "enable_dynamic_shape": dynamic}
    lengths = {"max_seq_length": 16, "max_context_length": 32}
    base = {"checkpoint": str(folder)}
    return config_of({"base": base, "model": model, "export": lengths, **more})


@pytest.mark.parametrize("kind", [*MANY, *ONE, *FIXED])
def test_tokens_are_those_without_a_cache(tmp_path: Path, kind: str) -> None:
    eager = _saved(tmp_path, kind)
    program = export_llm(_config(tmp_path, dynamic=kind not in FIXED)).buffer
    loaded = Runtime.get().load_program(program)
    is_dynamic = bool(loaded.load_method("enable_dynamic_shape").execute([])[0])
    assert is_dynamic is (kind in MANY)
    method = loaded.load_method("forward")

    def step(tokens: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
        width = tokens.shape[1] if is_dynamic else 1
        parts = tokens.split(width, 1)
        return [method.execute([one, place + at])[0] for at, one in enumerate(parts)][-1]

    prompt = [1, 5, 9, 77, 3]
    found = generated(step, prompt, 20, cache=True)
    with torch.no_grad():
        logits = eager(torch.tensor([prompt + found]), use_cache=False).logits[0]
    assert found == logits[len(prompt) - 1 : -1].argmax(-1).tolist()
    assert generated(step, prompt, 20, cache=True) == found, "the first text is still seen"


@pytest.mark.parametrize("kind", WHOLE)
def test_families_without_a_static_cache_say_what_to_do_and_run_without(
    tmp_path: Path, kind: str
) -> None:
    eager = _saved(tmp_path, kind)
    cached = _config(tmp_path)
    with pytest.raises(CompileError, match=r"no static cache for .*; export it without$"):
        export_llm(cached)
    config = replace(cached, model=replace(cached.model, use_kv_cache=False))
    if kind != "gpt_neo":  # the others count the tokens in Python
        with pytest.raises(CompileError, match=r"^model.enable_dynamic_shape: its modules do not"):
            export_llm(config)
        config = replace(config, model=replace(config.model, enable_dynamic_shape=False))
    program = export_llm(config).buffer
    tokens = torch.randint(0, SIZES["vocab_size"], (1, 16))
    found = Runtime.get().load_program(program).load_method("forward").execute([tokens])[0]
    with torch.no_grad():
        expected = eager(tokens, use_cache=False).logits[:, -1]
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["kimi_linear", "xlstm", "minimax"])
def test_calls_of_one_length_generate_the_tokens_of_eager(tmp_path: Path, kind: str) -> None:
    """Families that export for a number of tokens only, without a cache."""
    eager = _saved(tmp_path, kind)
    whole = {"debug": {"generate_full_logits": True}}
    (tmp_path / "model.pte").write_bytes(
        export_llm(_config(tmp_path, cache=False, dynamic=False, **whole)).buffer
    )
    runner, prompt = TextRunner(tmp_path / "model.pte", "bytes"), [1, 5, 9, 77, 3]
    found = runner.generate_tokens(prompt, GenerationConfig(ignore_eos=True)).tokens
    assert len(found) == 16 - len(prompt) + 1
    with torch.no_grad():
        logits = eager(torch.tensor([prompt + found]), use_cache=False).logits[0]
    assert found == logits[len(prompt) - 1 : -1].argmax(-1).tolist()


@pytest.mark.parametrize(
    ("kind", "more", "sentence"),
    [
        ("recurrent_gemma", {"dynamic": False}, "calls of one token each differ from one of all"),
        ("llama4_text", {}, "or with model.enable_dynamic_shape=false"),
        *[
            ("longcat_flash", more, "modules of longcat_flash branch on values of tensors")
            for more in ({}, {"dynamic": False}, {"cache": False})
        ],
        (
            "mamba",
            {"multimethod": {"methods": [{"method_name": "prefill", "export_seq_len": 4}]}},
            "prefill: export_seq_len: expected 1, found 4",
        ),
    ],
)
def test_what_cannot_be_exported_is_one_sentence(
    tmp_path: Path, kind: str, more: dict[str, Any], sentence: str
) -> None:
    _saved(tmp_path, kind)
    with pytest.raises(CompileError) as caught:
        export_llm(_config(tmp_path, **more))
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_family_without_a_decoder_alone_is_one_short_sentence() -> None:
    pytest.importorskip("transformers")
    sizes = {"vocab_size": 96, "d_model": 32, "num_layers": 1}
    base = {"model_class": "t5", "params": sizes}
    with pytest.raises(CompileError) as caught:
        export_llm(config_of({"base": base}))
    assert str(caught.value).endswith("transformers has no decoder alone for model_type 't5'")


@pytest.mark.parametrize("kind", ["falcon", "deepseek_v3", "deepseek_v32", "mamba", "bamba"])
def test_planned_caches_are_those_of_the_program(tmp_path: Path, kind: str) -> None:
    _saved(tmp_path, kind)
    config = _config(tmp_path)
    meta = Runtime.get().load_program(export_llm(config).buffer).metadata("forward")
    names = ("keys", "values", "indexer_keys", "conv_states", "recurrent_states")
    attributes = [meta.attribute_tensor_meta(at) for at in range(meta.num_attributes())]
    held = sum(one.nbytes() for one in attributes if one.name().split(".")[-1].startswith(names))
    assert [one.cache for one in plan_lengths(config, [32])] == [held]


def test_a_state_that_is_not_known_without_weights_is_one_sentence(tmp_path: Path) -> None:
    _saved(tmp_path, "mpt")
    with pytest.raises(CompileError, match="what 'mpt' keeps of a text is not known"):
        plan_lengths(_config(tmp_path), [32])


@pytest.mark.parametrize("kind", ["qwen3_moe", "apertus"])
def test_members_that_only_the_modules_look_for_are_taken(kind: str) -> None:
    """Their configuration class has no size of heads, their files have."""
    pytest.importorskip("transformers")
    params = {**SIZES, **PAIRS, "head_dim": 16}
    base = {"model_class": kind, "params": params}
    chosen = config_of({"base": base, "export": {"max_seq_length": 8, "max_context_length": 8}})
    shapes = {name: one.shape for name, one in build_model(chosen).module.named_parameters()}
    assert shapes["model.layers.0.self_attn.q_proj.weight"] == (64, 32)
    params["heads_dim"] = 16
    with pytest.raises(CompileError, match=r"^base.params: unknown name 'heads_dim'"):
        build_model(config_of({"base": base}))


@pytest.mark.parametrize("cache", [False, True])
@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("minicpm3", {**HEADS, "num_key_value_heads": 2}),
        ("youtu", {**HEADS, "num_key_value_heads": 2}),
        ("llama", {"num_key_value_heads": 3}),
        ("nanochat", {"num_key_value_heads": 3}),
    ],
)
def test_sizes_that_do_not_fit_together_are_told_from_a_missing_cache(
    kind: str, more: dict[str, Any], cache: bool
) -> None:
    base = {"model_class": kind, "params": {**SIZES, **more}}
    if kind == "llama":
        base = {"params": {"model_type": "llama", **SIZES, **more}}
    with pytest.raises(CompileError) as caught:
        export_llm(config_of({"base": base, "model": {"use_kv_cache": cache}}))
    assert "static cache" not in str(caught.value)
    assert str(caught.value).startswith("base.")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "more", "sentence"),
    [
        ("helium", {"vocab_size": "96"}, "base.params.vocab_size: expected int, found '96'"),
        ("helium", {"hidden_act": "gelus"}, "base.params.hidden_act: unknown value 'gelus'"),
        (
            "helium",
            {"rope_parameters": {"rope_type": "yarnn"}},
            "base.params.rope_parameters.rope_type: unknown value 'yarnn'",
        ),
        ("ministral", {"layer_types": KINDS[:1]}, "base.params: `num_hidden_layers` (2) must be"),
        ("vit", {}, "base.params: 'vit' has no text to generate"),
    ],
)
def test_errors_of_the_package_name_the_member(
    kind: str, more: dict[str, Any], sentence: str
) -> None:
    pytest.importorskip("transformers")
    params = {} if kind == "vit" else {**SIZES, **PAIRS, **more}
    with pytest.raises(CompileError) as caught:
        build_model(config_of({"base": {"model_class": kind, "params": params}}))
    assert str(caught.value).startswith(sentence)
