"""The module of a configuration, with its weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from compiler.llm.attention import CacheOptions
from compiler.llm.config import NANO_GPT, LlmConfig, LlmConfigError
from compiler.llm.decoder import Decoder, DecoderSizes
from compiler.llm.families import LARGEST_CONFIG, check_class, sizes_of_folder, sizes_of_params
from compiler.llm.lora import add_adapter, read_adapter
from compiler.llm.nano_gpt import NanoGpt, NanoGptSizes
from compiler.llm.safetensors import CheckpointError, read_checkpoint
from compiler.llm.size_checks import OwnSizes, Sizes, TransformersSizes
from compiler.llm.transformers_source import (
    TransformersDecoder,
    check_options,
    empty_model,
    transformers_model,
)
from schema.errors import FormatError
from schema.objects.codec import read_object

DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


@dataclass(frozen=True)
class BuiltModel:
    """A module and its known facts.

    Attributes:
        module: in evaluation mode
        sizes: its sizes
        config: ``config.json`` of its checkpoint, empty without one
        cache: how it keeps keys and values
    """

    module: nn.Module
    sizes: Sizes
    config: Mapping[str, Any]
    cache: CacheOptions


def sizes_of(config: LlmConfig) -> tuple[Sizes, Mapping[str, Any]]:
    """Return the sizes of the model, and ``config.json`` of its checkpoint.

    Raises: FamilyError, LlmConfigError, OSError
    """
    base = config.base
    folder = _folder(config)
    if folder is not None and base.params is None:
        sizes, content = sizes_of_folder(folder)
    else:
        typed = isinstance(base.params, dict)
        sizes = sizes_of_params(base.model_class or NANO_GPT, _params(config), closed=typed)
        content: Mapping[str, Any] = dict[str, Any]()
    if isinstance(sizes, TransformersSizes):
        check_options(config, sizes.model_type)
        return sizes, content or sizes.content
    return _with_windows(config, sizes), content


def _folder(config: LlmConfig) -> Path | None:
    given = config.base.checkpoint
    if given is None:
        return None
    path = Path(given)
    if path.is_dir():
        return path
    if not path.is_file():
        raise LlmConfigError(f"base.checkpoint: {given}: file not found")
    return path.parent if (path.parent / "config.json").is_file() else None


def _params(config: LlmConfig) -> dict[str, Any]:
    given = config.base.params
    if given is None:
        if config.base.model_class not in ("", NANO_GPT):
            check_class(config.base.model_class)
            words = f"{config.base.model_class} needs sizes, or a checkpoint with config.json"
            raise LlmConfigError(f"base.params: {words}")
        return {}
    if not isinstance(given, str):
        return given
    try:
        return read_object(Path(given), "sizes of a model", LARGEST_CONFIG)
    except FileNotFoundError as error:
        raise LlmConfigError(f"base.params: {given}: file not found") from error
    except FormatError as error:
        raise LlmConfigError(f"base.params: {error}") from error


def _with_windows(config: LlmConfig, sizes: OwnSizes) -> OwnSizes:
    """Return sizes with the windows of ``model``."""
    model = config.model
    pattern = model.local_global_attention
    sink = model.use_attention_sink
    if pattern is None and sink is None:
        return sizes
    if isinstance(sizes, NanoGptSizes):
        name = "local_global_attention" if pattern is not None else "use_attention_sink"
        raise LlmConfigError(f"model.{name}: {NANO_GPT} attends to all positions")
    if sink is not None:
        pattern = (int(sink.split(",")[1]),)
    assert pattern is not None
    if sizes.n_layers % len(pattern):
        words = f"{len(pattern)} windows, which do not divide the {sizes.n_layers} layers"
        raise LlmConfigError(f"model.local_global_attention: {words}")
    windows = tuple(pattern[at % len(pattern)] for at in range(sizes.n_layers))
    return replace(sizes, windows=windows)


def cache_of(config: LlmConfig) -> CacheOptions:
    """Return how keys and values are kept."""
    model, sink = config.model, config.model.use_attention_sink
    fixed = (one.export_seq_len or 0 for one in config.multimethod.methods)
    return CacheOptions(
        used=model.use_kv_cache,
        length=config.export.max_context_length,
        custom=model.use_kv_cache and model.use_sdpa_with_kv_cache,
        quantized=model.quantize_kv_cache,
        sink=int(sink.split(",")[0]) if sink else 0,
        call=max(config.export.max_seq_length, *fixed, 0),
    )


def build_model(config: LlmConfig) -> BuiltModel:
    """Return the module of a configuration, with weights of its checkpoint or random ones.

    Raises: LlmConfigError, FamilyError, CheckpointError, OSError
    """
    sizes, content = sizes_of(config)
    cache, given = cache_of(config), config.base.checkpoint
    if isinstance(sizes, NanoGptSizes) and cache.length > sizes.block_size:
        if given is not None:
            words = f"{cache.length} is more than the {sizes.block_size} positions of the model"
            raise LlmConfigError(f"export.max_context_length: {words}")
        sizes = replace(sizes, block_size=cache.length)
    weights = None if given is None else read_checkpoint(Path(given))
    untyped: Any = torch
    with untyped.random.fork_rng(devices=[]):
        untyped.manual_seed(config.base.seed)
        try:
            module = _module(config, sizes, cache, weights)
        except RuntimeError as error:
            if "allocate" not in str(error):
                raise
            words = f"weights and a cache of {cache.length:,} positions need more memory"
            raise LlmConfigError(f"export.max_context_length: {words} than there is") from error
        if weights is None:
            _initialize(module)
    if weights is not None and not isinstance(sizes, TransformersSizes):
        load_weights(module, weights, sizes)
    if config.base.lora_config is not None:
        add_adapter(module, read_adapter(config.base.lora_config))
    if isinstance(sizes, TransformersSizes):
        every = config.debug.generate_full_logits
        module = TransformersDecoder(module, cache, all_logits=every)
    return BuiltModel(module.eval(), sizes, content, cache)


def _module(
    config: LlmConfig,
    sizes: Sizes,
    cache: CacheOptions,
    weights: Mapping[str, torch.Tensor] | None,
) -> nn.Module:
    """Return the module of a family; one of transformers has its weights already."""
    dtype, every = DTYPES[config.model.dtype_override], config.debug.generate_full_logits
    if isinstance(sizes, NanoGptSizes):
        return NanoGpt(sizes, cache, all_logits=every, dtype=dtype)
    if isinstance(sizes, DecoderSizes):
        return Decoder(sizes, cache, all_logits=every, dtype=dtype)
    return transformers_model(sizes, dtype, weights)


def empty_module(config: LlmConfig, sizes: Sizes) -> nn.Module:
    """Return the module of a configuration without memory for its weights, and without a cache.

    Raises: FamilyError, CheckpointError, OSError
    """
    if isinstance(sizes, TransformersSizes):
        module = empty_model(sizes)
    else:
        if isinstance(sizes, DecoderSizes):
            sizes = replace(sizes, rope_scaling={})  # which has no weights
        with torch.device("meta"):
            module = _module(config, sizes, CacheOptions(length=1), None)
    if config.base.lora_config is not None:
        add_adapter(module, read_adapter(config.base.lora_config))
    return module


def _initialize(module: nn.Module) -> None:
    """Draw random weights of the usual size, so that logits of many layers stay small."""
    for one in module.modules():
        if isinstance(one, nn.Linear | nn.Embedding):
            nn.init.normal_(one.weight, std=0.05)
            bias: Any = getattr(one, "bias", None)
            if bias is not None:
                nn.init.zeros_(bias)


def load_weights(module: nn.Module, weights: Mapping[str, torch.Tensor], sizes: OwnSizes) -> None:
    """Copy the weights of a checkpoint into a module.

    Raises: CheckpointError naming missing, unknown or unfitting ones
    """
    gpt = isinstance(sizes, NanoGptSizes)
    found = _gpt2_names(weights) if gpt else _split(weights, sizes)
    wanted = dict(module.named_parameters())
    tied = {"lm_head.weight": "wte.weight" if gpt else "model.embed_tokens.weight"}
    for name, parameter in wanted.items():
        if name not in found:
            raise CheckpointError(f"the checkpoint has no {name}")
        given = found[name]
        if given.shape != parameter.shape:
            words = f"shape {list(given.shape)}, the model has {list(parameter.shape)}"
            raise CheckpointError(f"{name} of the checkpoint has {words}")
        with torch.no_grad():
            parameter.copy_(given)
    unknown = [n for n in found if n not in wanted and n not in tied and "rotary_emb" not in n]
    if unknown:
        raise CheckpointError(f"the model has no {', '.join(unknown[:5])} of the checkpoint")


def _gpt2_names(weights: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return weights of GPT-2 by the names here; its layers store transposed matrices."""
    found: dict[str, torch.Tensor] = {}
    for name, tensor in weights.items():
        short = name.removeprefix("transformer.")
        if short.endswith((".attn.bias", ".attn.masked_bias")):
            continue  # masks of the positions
        turned = short.endswith((".c_attn.weight", ".c_proj.weight", ".c_fc.weight"))
        found[short] = tensor.t() if turned else tensor
    return found


def _text_name(name: str) -> str:
    """Return the name of a weight of a model of images and text, empty for one of images."""
    for prefix in ("model.vision_tower.", "model.multi_modal_projector."):
        if name.startswith((prefix, prefix.removeprefix("model."))):
            return ""
    for prefix in ("language_model.", "model.language_model."):
        if name.startswith(prefix):
            rest = name.removeprefix(prefix)
            return rest if rest.startswith(("model.", "lm_head.")) else f"model.{rest}"
    return name


def _split(weights: Mapping[str, torch.Tensor], sizes: OwnSizes) -> dict[str, torch.Tensor]:
    """Return weights with the fused projections of Phi as single ones."""
    assert isinstance(sizes, DecoderSizes)
    found: dict[str, torch.Tensor] = {}
    size = sizes.size_of_head
    for name, tensor in weights.items():
        name = _text_name(name)
        if not name:
            continue
        stem, _, rest = name.partition(".qkv_proj.")
        if rest:
            counts = [n * size for n in (sizes.n_heads, sizes.groups, sizes.groups)]
            parts: Any = torch.split(tensor, counts)
            for letter, part in zip("qkv", parts, strict=True):
                found[f"{stem}.{letter}_proj.{rest}"] = part
            continue
        stem, _, rest = name.partition(".gate_up_proj.")
        if rest:
            found[f"{stem}.gate_proj.{rest}"], found[f"{stem}.up_proj.{rest}"] = tensor.chunk(2)
            continue
        found[name] = tensor
    return found
