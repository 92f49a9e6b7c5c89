"""Sizes of models: from ``config.json`` of a checkpoint, and of known families."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from compiler.llm.config import NANO_GPT
from compiler.llm.decoder import DecoderSizes
from compiler.llm.nano_gpt import NanoGptSizes
from compiler.llm.size_checks import (
    CONFIG_NAMES,
    PARAMS,
    FamilyError,
    OwnSizes,
    Sizes,
    check_config,
    check_names,
    checked,
    content_error,
)
from compiler.llm.transformers_source import check_family, known_names, transformers_sizes
from schema.errors import FormatError
from schema.objects.codec import ContentError, from_json, read_object

Json = Mapping[str, Any]
LARGEST_CONFIG = 16 << 20  # bytes of a configuration
# our name of a size -> that in a config.json
_NAMES = {
    "dim": "hidden_size",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "n_kv_heads": "num_key_value_heads",
    "hidden_dim": "intermediate_size",
    "act_fn": "hidden_act",
    "windows": "layer_types",
    "norm_eps": "rms_norm_eps",
    "local_rope_theta": "rope_local_base_freq",
}
_GPT_NAMES = {"block_size": "n_positions", "act_fn": "activation_function"}


def _common(found: Json) -> dict[str, Any]:
    """Return the fields that all families of decoders share."""
    sizes = {
        "dim": found["hidden_size"],
        "n_layers": found["num_hidden_layers"],
        "n_heads": found["num_attention_heads"],
        "vocab_size": found["vocab_size"],
        "hidden_dim": found["intermediate_size"],
    }
    rope = dict(found.get("rope_parameters") or found.get("rope_scaling") or {})
    if "max_position_embeddings" in found:
        rope.setdefault("max_position_embeddings", found["max_position_embeddings"])
    original = found.get("original_max_position_embeddings")
    if original:
        rope.setdefault("original_max_position_embeddings", original)
    part = found.get("partial_rotary_factor") or rope.get("partial_rotary_factor", 1.0)
    theta = found.get("rope_theta") or rope.get("rope_theta", 10000.0)
    return {
        **sizes,
        "n_kv_heads": found.get("num_key_value_heads") or sizes["n_heads"],
        "head_dim": found.get("head_dim") or 0,
        "norm_eps": found.get("rms_norm_eps", 1e-6),
        "rope_theta": theta,
        "rope_scaling": rope,
        "partial_rotary_factor": part,
        "act_fn": _activation(found),
        "tie_word_embeddings": bool(found.get("tie_word_embeddings", False)),
        "attention_qkv_bias": bool(found.get("attention_bias", False)),
        "attention_out_bias": bool(found.get("attention_bias", False)),
        "mlp_bias": bool(found.get("mlp_bias", False)),
    }


def _activation(found: Json) -> str:
    name = found.get("hidden_activation") or found.get("hidden_act") or "silu"
    known = {"gelu_pytorch_tanh": "gelu_tanh", "gelu_new": "gelu_tanh", "swish": "silu"}
    return known.get(name, name)


def _llama(found: Json) -> dict[str, Any]:
    return _common(found)


def _mistral(found: Json) -> dict[str, Any]:
    window = found.get("sliding_window") or 0
    return {**_common(found), "windows": (window,) * found["num_hidden_layers"]}


def _qwen2(found: Json) -> dict[str, Any]:
    common = {**_common(found), "attention_qkv_bias": True, "attention_out_bias": False}
    return {**common, "windows": _windows(found) if found.get("use_sliding_window") else ()}


def _qwen3(found: Json) -> dict[str, Any]:
    windows = _windows(found) if found.get("use_sliding_window") else ()
    return {**_common(found), "use_qk_norm": True, "windows": windows}


def _gemma(found: Json) -> dict[str, Any]:
    own = {"norm_offset": 1.0, "embedding_scale_factor": float(found["hidden_size"]) ** 0.5}
    tied = found.get("tie_word_embeddings", True)
    act = "gelu_tanh"
    common = {**_common(found), "tie_word_embeddings": tied, "act_fn": act}
    return {**common, **own, "head_dim": found.get("head_dim", 256)}


def _gemma2(found: Json) -> dict[str, Any]:
    scalar = found.get("query_pre_attn_scalar") or 256
    return {
        **_gemma(found),
        "sandwich_norms": True,
        "attn_logit_softcapping": found.get("attn_logit_softcapping") or 0.0,
        "final_logit_softcapping": found.get("final_logit_softcapping") or 0.0,
        "attn_scale": float(scalar) ** -0.5,
        "windows": _windows(found, every=2),
    }


def _gemma3(found: Json) -> dict[str, Any]:
    rope: Any = found.get("rope_parameters") or {}
    whole = _object(rope.get("full_attention")) or found.get("rope_scaling") or {}
    near = _object(rope.get("sliding_attention"))
    theta = whole.get("rope_theta") or found.get("rope_theta") or 1e6
    local = near.get("rope_theta") or found.get("rope_local_base_freq") or 10000.0
    every = found.get("sliding_window_pattern", found.get("_sliding_window_pattern", 6))
    plain = {**found, "rope_parameters": None, "rope_scaling": whole, "rope_theta": theta}
    return {
        **_gemma2(plain),
        "use_qk_norm": True,
        "local_rope_theta": local,
        "windows": _windows(found, every=every),
    }


def _object(found: object) -> Json:
    return cast("Json", found) if isinstance(found, dict) else {}


def _windows(found: Json, every: int = 0) -> tuple[int, ...]:
    """Return the window of each layer: by ``layer_types``, else all but every N-th have one."""
    window, count = found.get("sliding_window") or 0, found["num_hidden_layers"]
    kinds: Any = found.get("layer_types")
    if kinds:
        return tuple(window if kind == "sliding_attention" else 0 for kind in kinds)
    first = found.get("max_window_layers")
    first = count if first is None else first
    if every:
        return tuple(window if (at + 1) % every else 0 for at in range(count))
    return tuple(window if at >= first else 0 for at in range(count))


# by model_type of config.json
_DECODERS: Mapping[str, Callable[[Json], dict[str, Any]]] = {
    "llama": _llama,
    "smollm2": _llama,
    "mistral": _mistral,
    "qwen2": _qwen2,
    "qwen3": _qwen3,
    "phi3": _mistral,
    "gemma": _gemma,
    "gemma2": _gemma2,
    "gemma3_text": _gemma3,
}
# what a config.json may leave out and no shape shows, as transformers has it
_WINDOWED = {"sliding_window": 4096}
_LEFT_OUT: Mapping[str, Json] = {
    "mistral": _WINDOWED,
    "qwen2": {**_WINDOWED, "max_window_layers": 28},
    "qwen3": {**_WINDOWED, "max_window_layers": 28},
    "phi3": {"rms_norm_eps": 1e-5},
    "gemma2": {**_WINDOWED, "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0},
    "gemma3_text": _WINDOWED,
}
# ExecuTorch's names of models, by the family whose shapes they have
MODEL_CLASSES: Mapping[str, str] = {
    NANO_GPT: "gpt2",
    "gpt2": "gpt2",
    "stories110m": "llama",
    "llama2": "llama",
    "llama3": "llama",
    "llama3_1": "llama",
    "llama3_2": "llama",
    "qwen2_5_0_5b": "qwen2",
    "qwen2_5_1_5b": "qwen2",
    "qwen2_5_coder_32b": "qwen2",
    "qwen3_0_6b": "qwen3",
    "qwen3_1_7b": "qwen3",
    "qwen3_4b": "qwen3",
    "phi_4_mini": "phi3",
    "smollm2": "llama",
    "mistral": "mistral",
    "gemma": "gemma",
    "gemma2": "gemma2",
    "gemma3": "gemma3_text",
}


# what a configuration of images and text leaves out of its part for text
_GEMMA3_TEXT: Json = {
    "model_type": "gemma3_text",
    "vocab_size": 262208,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
}


def sizes_of_folder(folder: Path) -> tuple[Sizes, Json]:
    """Return the sizes in ``config.json`` of a checkpoint, and its content.

    Of a model of images and text they are those of its decoder.

    Raises: FamilyError, OSError
    """
    path = folder / "config.json"
    content = _read_object(path)
    text = content.get("text_config")
    if content.get("model_type") == "gemma3" and isinstance(text, dict):
        content = {**content, **_GEMMA3_TEXT, **cast("dict[str, Any]", text)}
    content = {**content, **_generation(folder)}
    return _described(content, str(path)), content


def _described(content: Json, place: str) -> Sizes:
    """Return the sizes in the content of a ``config.json``.

    Raises: FamilyError
    """
    kind = content.get("model_type", "")
    if kind == "gpt2":
        return _gpt2(content, place)
    if not isinstance(kind, str) or kind not in _DECODERS:
        return transformers_sizes(content, place, ", ".join(("gpt2", *_DECODERS)))
    check_config(content, place)
    rope = "rope_parameters" if content.get("rope_parameters") else "rope_scaling"
    content = {**_LEFT_OUT.get(kind, {}), **content}
    return _built(DecoderSizes, _DECODERS[kind](content), place, {**_NAMES, "rope_scaling": rope})


def _read_object(path: Path) -> dict[str, Any]:
    try:
        return read_object(path, "a configuration", LARGEST_CONFIG)
    except FormatError as error:
        raise FamilyError(str(error)) from error


def _generation(folder: Path) -> Json:
    """Return the first and last tokens of ``generation_config.json``, which a chat needs."""
    path = folder / "generation_config.json"
    if not path.is_file():
        return {}
    found = _read_object(path)
    names = ("bos_token_id", "eos_token_id")
    return {name: found[name] for name in names if found.get(name) is not None}


def _gpt2(found: Json, place: str) -> Sizes:
    names = {
        "vocab_size": ("vocab_size",),
        "block_size": ("n_positions", "n_ctx"),
        "n_layer": ("n_layer",),
        "n_head": ("n_head",),
        "n_embd": ("n_embd",),
    }
    given = {
        name: next(found[key] for key in keys if key in found)
        for name, keys in names.items()
        if any(key in found for key in keys)
    }
    act = _activation({"hidden_act": found.get("activation_function", "gelu_new")})
    return _built(NanoGptSizes, {**given, "act_fn": act}, place, _GPT_NAMES)


def sizes_of_params(model_class: str, params: Json, *, closed: bool = False) -> Sizes:
    """Return the sizes of a model class, given some of them by name.

    Args:
        model_class: ExecuTorch's name, or that of a family of the ``transformers`` package
        params: by ExecuTorch's names, or by those of a ``config.json``
        closed: refuse names that a ``config.json`` may have and nothing reads, as of sizes that
            were typed

    Raises: FamilyError for an unknown class or name, or a missing size
    """
    if model_class not in MODEL_CLASSES:
        check_class(model_class)
        of_class = {**params, "model_type": params.get("model_type", model_class)}
        found = transformers_sizes(of_class, PARAMS, ", ".join(MODEL_CLASSES))
        if closed:
            check_names(params, known_names(of_class), PARAMS)
        return found
    family = MODEL_CLASSES[model_class]
    if "model_type" in params or "hidden_size" in params:
        if closed and params.get("model_type", family) in _DECODERS:
            check_names(params, CONFIG_NAMES, PARAMS)
        return _described({"model_type": family, **params}, PARAMS)
    if family == "gpt2":
        return _built(NanoGptSizes, params, PARAMS)
    return _built(DecoderSizes, {**_shape(family), **_executorch(params)}, PARAMS)


def check_class(model_class: str) -> None:
    """Check that a model class is a family here or of the ``transformers`` package.

    Raises: FamilyError
    """
    if model_class not in MODEL_CLASSES:
        check_family(model_class, "base.model_class", ", ".join(MODEL_CLASSES))


def _shape(family: str) -> dict[str, Any]:
    """Return the differences of a family from Llama."""
    if family == "qwen2":
        return {"attention_qkv_bias": True, "norm_eps": 1e-6, "rope_theta": 1e6}
    if family == "qwen3":
        return {"use_qk_norm": True, "norm_eps": 1e-6, "rope_theta": 1e6}
    if family in ("gemma", "gemma2", "gemma3_text"):
        gemma = {"norm_offset": 1.0, "act_fn": "gelu_tanh", "tie_word_embeddings": True}
        more = {"sandwich_norms": family != "gemma", "use_qk_norm": family == "gemma3_text"}
        return {**gemma, **more, "norm_eps": 1e-6}
    return {"partial_rotary_factor": 0.75} if family == "phi3" else {}


def _executorch(params: Json) -> dict[str, Any]:
    """Return the sizes of a parameter file of ExecuTorch with what it leaves to be computed."""
    found = {name: value for name, value in params.items() if name not in _IGNORED}
    if params.get("use_scaled_rope"):
        found["rope_scaling"] = {
            "rope_type": "llama3",
            "factor": params.get("rope_scale_factor", 8),
            "low_freq_factor": 1,
            "high_freq_factor": params.get("high_freq_factor", 4),
            "original_max_position_embeddings": 8192,
        }
    if "rope_freq_base" in found:
        found["rope_theta"] = found.pop("rope_freq_base")
    if "hidden_dim" not in found and isinstance(params.get("dim"), int):
        found["hidden_dim"] = _hidden_dim(params)
    return found


_IGNORED = (
    "multiple_of",
    "ffn_dim_multiplier",
    "use_scaled_rope",
    "rope_scale_factor",
    "high_freq_factor",
    "max_seq_len",
    "max_context_len",
    "max_batch_size",
    "bos_idx",
    "eos_idx",
    "bos_count",
    "eos_count",
    "use_hf_rope",
    "qk_norm_before_rope",
    "model_architecture",
)


def _hidden_dim(params: Json) -> int:
    """Return the width of the hidden layer by the rule of Llama's parameter files."""
    wide = int(2 * 4 * params["dim"] / 3)
    wide = int(wide * params.get("ffn_dim_multiplier", 1))
    step = params.get("multiple_of", 256)
    return step * -(-wide // step)


def _built(
    kind: type[DecoderSizes] | type[NanoGptSizes],
    sizes: Json,
    place: str,
    names: Mapping[str, str] | None = None,
) -> OwnSizes:
    """Return sizes, whose types and values are checked; ``names`` as of ``checked``.

    Raises: FamilyError
    """
    try:
        return checked(from_json(dict(sizes), kind, place, closed=True), place, names)
    except ContentError as error:
        raise content_error(error, place) from error
