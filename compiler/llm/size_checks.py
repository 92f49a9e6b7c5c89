"""Checks of the sizes of a model, before any of its weights exist."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, cast

from compiler.errors import CompileError
from compiler.llm.activations import ACTIVATIONS
from compiler.llm.decoder import DecoderSizes
from compiler.llm.nano_gpt import NanoGptSizes
from compiler.llm.rotary import RopeError, rotary_frequencies
from schema.objects.codec import ContentError, from_json

MOST_PARAMETERS = 1 << 40  # more than any model has; larger ones are typing errors
MOST_LAYERS = 4096  # each is built before its weights exist
PARAMS = "base.params"  # sizes in the configuration, which are not those of a file
_DECODER = ("dim", "n_layers", "n_heads", "vocab_size", "hidden_dim")
_GPT = ("vocab_size", "block_size", "n_layer", "n_head", "n_embd")


class FamilyError(CompileError, ValueError):
    """Sizes that describe no known model."""


@dataclass(frozen=True, slots=True)
class TransformersSizes:
    """A decoder of the ``transformers`` package.

    Attributes:
        model_type: its family
        content: of its ``config.json``
        vocab_size: tokens
        n_layers: of the decoder
        place: of the configuration, for messages
    """

    model_type: str
    content: Mapping[str, Any]
    vocab_size: int
    n_layers: int
    place: str


OwnSizes = DecoderSizes | NanoGptSizes
Sizes = OwnSizes | TransformersSizes


@dataclass(frozen=True, slots=True)
class HfSizes:
    """The types of what is read of a ``config.json``; other members are ignored."""

    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    vocab_size: int
    intermediate_size: int
    num_key_value_heads: int | None = None
    head_dim: int | None = None
    rms_norm_eps: float = 1e-6
    rope_theta: float | None = None
    rope_parameters: dict[str, Any] | None = None
    rope_scaling: dict[str, Any] | None = None
    max_position_embeddings: int | None = None
    original_max_position_embeddings: int | None = None
    partial_rotary_factor: float | None = None
    hidden_act: str | None = None
    hidden_activation: str | None = None
    tie_word_embeddings: bool | None = None
    attention_bias: bool | None = None
    mlp_bias: bool | None = None
    sliding_window: int | None = None
    use_sliding_window: bool | None = None
    max_window_layers: int | None = None
    layer_types: list[str] | None = None
    query_pre_attn_scalar: float | None = None
    attn_logit_softcapping: float | None = None
    final_logit_softcapping: float | None = None
    rope_local_base_freq: float | None = None
    sliding_window_pattern: int | None = None


_COUNTS = (
    *("hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads"),
    "head_dim",
)
# null stands for a default, 0 does not
_POSITIVE = ("rope_theta", "rope_local_base_freq", "partial_rotary_factor", "query_pre_attn_scalar")
# and what a config.json says beside its sizes
CONFIG_NAMES = frozenset(one.name for one in fields(HfSizes)) | {
    *("_sliding_window_pattern", "architectures", "attention_dropout", "initializer_range"),
    *("bos_token_id", "eos_token_id", "pad_token_id", "pretraining_tp", "use_cache"),
    *("dtype", "torch_dtype", "model_type", "transformers_version"),
}


def member(place: str, name: str) -> str:
    """Return the path of a size, as messages begin with it.

    Args:
        place: path of a ``config.json``, or ``PARAMS``
        name: of the size
    """
    return f"{place}.{name}" if place == PARAMS else f"{place}: {name}"


def content_error(error: ContentError, place: str) -> FamilyError:
    """Return the error of a size with another type."""
    words = str(error)
    if not error.field:
        return FamilyError(words)
    return FamilyError(words.replace(f"{place}: {error.field}", member(place, error.field), 1))


def check_names(content: Mapping[str, Any], known: frozenset[str], place: str) -> None:
    """Check that a configuration has no other names than those of its family.

    Raises: FamilyError naming the place and an unknown name
    """
    for name in content:
        if name not in known:
            words = f"unknown name {name!r}; available: {', '.join(sorted(known))}"
            raise FamilyError(f"{place}: {words}")


def check_config(content: Mapping[str, Any], place: str) -> None:
    """Check the members of a ``config.json`` that describe a decoder.

    Raises: FamilyError naming the place, the member, what was expected and what was found
    """
    try:
        found = from_json(dict(content), HfSizes, place)
    except ContentError as error:
        raise content_error(error, place) from error
    for name in _COUNTS:
        count = getattr(found, name)
        if count is not None and count < 1:
            raise FamilyError(f"{member(place, name)}: expected at least 1, found {count}")
    for path, value in _positive_members(content):
        if isinstance(value, int | float) and value <= 0:
            raise FamilyError(f"{member(place, path)}: expected above 0, found {value}")
    kinds = found.layer_types
    if kinds is not None and len(kinds) != found.num_hidden_layers:
        layers = found.num_hidden_layers
        words = f"expected one for each of {layers:,} layers, found {len(kinds):,}"
        raise FamilyError(f"{member(place, 'layer_types')}: {words}")


def _positive_members(content: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the members that are above 0, with those of rotary embeddings, by path."""
    for name, value in content.items():
        if name in _POSITIVE:
            yield f"{above}{name}", value
        elif isinstance(value, dict) and (above or name in ("rope_parameters", "rope_scaling")):
            yield from _positive_members(cast("dict[str, Any]", value), f"{above}{name}.")


def checked(sizes: OwnSizes, place: str, names: Mapping[str, str] | None = None) -> OwnSizes:
    """Return sizes that fit together.

    Args:
        sizes: of a model
        place: of the configuration
        names: name of a size -> that in the configuration, where it has another one

    Raises: FamilyError naming the place and the size
    """
    for name, sentence in _problems(sizes):
        whole, dot, part = name.partition(".")
        named = (names or {}).get(whole, whole) + dot + part
        raise FamilyError(f"{member(place, named)}: {sentence}")
    return sizes


def _problems(sizes: OwnSizes) -> Iterator[tuple[str, str]]:
    names = _DECODER if isinstance(sizes, DecoderSizes) else _GPT
    for name in names:
        found: int = getattr(sizes, name)
        if found < 1:
            yield name, f"expected at least 1, found {found}"
        elif found > MOST_LAYERS and name in ("n_layers", "n_layer"):
            yield name, f"expected at most {MOST_LAYERS:,}, found {found:,}"
    for one in fields(sizes):
        number = getattr(sizes, one.name)
        if isinstance(number, float) and not math.isfinite(number):
            yield one.name, f"expected a finite number, found {number}"
    if sizes.act_fn not in ACTIVATIONS:
        yield "act_fn", f"unknown {sizes.act_fn!r}; available: {', '.join(ACTIVATIONS)}"
    if isinstance(sizes, DecoderSizes):
        yield from _decoder_problems(sizes)
    else:
        if sizes.n_embd % sizes.n_head:
            yield "n_head", f"{sizes.n_head} heads do not divide n_embd {sizes.n_embd}"
        count = (12 * sizes.n_layer * sizes.n_embd + sizes.vocab_size) * sizes.n_embd
        yield from _too_many(count)


def _decoder_problems(sizes: DecoderSizes) -> Iterator[tuple[str, str]]:
    for name in ("n_kv_heads", "head_dim"):
        found: int = getattr(sizes, name)
        if found < 0:
            yield name, f"expected at least 0, found {found}"
    if not sizes.head_dim and sizes.dim % sizes.n_heads:
        yield "n_heads", f"{sizes.n_heads} heads do not divide dim {sizes.dim}"
    if sizes.n_heads % sizes.groups:
        yield "n_kv_heads", f"{sizes.groups} heads of keys do not divide n_heads {sizes.n_heads}"
    yield from _rotary_problems(sizes)
    if sizes.windows and len(sizes.windows) != sizes.n_layers:
        words = f"expected one for each of {sizes.n_layers:,} layers, found {len(sizes.windows):,}"
        yield "windows", words
    if min(sizes.windows, default=0) < 0:
        yield "windows", f"expected at least 0, found {min(sizes.windows)}"
    per_layer = (2 * sizes.n_heads + 2 * sizes.groups) * sizes.size_of_head + 3 * sizes.hidden_dim
    yield from _too_many((sizes.n_layers * per_layer + sizes.vocab_size) * sizes.dim)


def _rotary_problems(sizes: DecoderSizes) -> Iterator[tuple[str, str]]:
    if not 0 < sizes.partial_rotary_factor <= 1:
        found_part = sizes.partial_rotary_factor
        yield "partial_rotary_factor", f"expected above 0, at most 1, found {found_part}"
    turned = int(sizes.size_of_head * sizes.partial_rotary_factor)
    if turned < 2 or turned % 2:
        yield "head_dim", f"expected an even number of turned elements, found {turned}"
    if sizes.norm_eps < 0:
        yield "norm_eps", f"expected at least 0, found {sizes.norm_eps}"
    if sizes.rope_theta <= 0:
        yield "rope_theta", f"expected above 0, found {sizes.rope_theta}"
    try:
        rotary_frequencies(turned, 1, sizes.rope_theta, sizes.rope_scaling)
    except RopeError as error:
        yield error.member, error.problem


def _too_many(count: int) -> Iterator[tuple[str, str]]:
    if count > MOST_PARAMETERS:
        yield "dim", f"the sizes make {count:,} parameters, more than {MOST_PARAMETERS:,}"
