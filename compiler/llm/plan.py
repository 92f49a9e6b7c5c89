"""What a language model takes in memory, by the length of its context; nothing is built."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from compiler.llm.config import LlmConfig
from compiler.llm.decoder import angles_per_position
from compiler.llm.model import DTYPES, cache_of, sizes_of
from compiler.llm.nano_gpt import NanoGptSizes
from compiler.llm.quantization import linear_word, table_word
from compiler.llm.recipe_words import partitioners_of
from compiler.llm.size_checks import TransformersSizes
from compiler.llm.transformers_source import empty_model, kept_elements
from compiler.quantize.weight_words import group_of, has_kernel, is_four_bits
from schema.backends import BACKENDS

_PARAMETER_BYTES = 4  # a scale, a zero point


@dataclass(frozen=True)
class LengthPlan:
    """Bytes for one length of the context.

    Attributes:
        context: positions
        weights: parameters, and tables by position
        cache: keys and values with their scales
    """

    context: int
    weights: int
    cache: int


@dataclass(frozen=True)
class ModelShape:
    """The sizes of a model that count.

    Attributes:
        linear: parameters of linear layers
        table: parameters of the embedding
        tokens: rows of the embedding
        rest: other parameters
        windows: of the layers, each with a cache; 0 for none
        groups: of keys and values
        head: size of one
        kept: elements of a state that all positions share
        per_position: elements of the tables that have a row for each position
        positions: rows of these tables at least
    """

    linear: int
    table: int
    tokens: int
    rest: int
    windows: tuple[int, ...]
    groups: int
    head: int
    kept: int = 0
    per_position: int = 0
    positions: int = 0


def shape_of(config: LlmConfig) -> ModelShape:
    """Return the parameters of a model, counted from its sizes.

    Raises: LlmConfigError, FamilyError, OSError
    """
    sizes, _ = sizes_of(config)
    if isinstance(sizes, TransformersSizes):
        return _counted(sizes, cached=config.model.use_kv_cache)
    if isinstance(sizes, NanoGptSizes):
        width, layers = sizes.n_embd, sizes.n_layer
        each = 12 * width * width
        table = sizes.vocab_size * width
        norms = 2 if sizes.bias else 1
        rest = layers * (13 if sizes.bias else 2) * width + norms * width
        head, none = width // sizes.n_head, (0,) * layers
        shape = ModelShape(layers * each, table, sizes.vocab_size, rest, none, sizes.n_head, head)
        return replace(shape, per_position=width, positions=sizes.block_size)
    head, groups = sizes.size_of_head, sizes.groups
    attention = sizes.dim * head * (2 * sizes.n_heads + 2 * groups)
    linear = sizes.n_layers * (attention + 3 * sizes.dim * sizes.hidden_dim)
    table = sizes.vocab_size * sizes.dim
    linear += 0 if sizes.tie_word_embeddings else table
    norms = 4 if sizes.sandwich_norms else 2
    rest = sizes.n_layers * norms * sizes.dim + sizes.dim
    rest += sizes.n_layers * 2 * head if sizes.use_qk_norm else 0
    if sizes.attention_qkv_bias:
        rest += sizes.n_layers * head * (sizes.n_heads + 2 * groups)
    rest += sizes.n_layers * sizes.dim if sizes.attention_out_bias else 0
    rest += sizes.n_layers * (2 * sizes.hidden_dim + sizes.dim) if sizes.mlp_bias else 0
    windows = sizes.window_of_layers
    shape = ModelShape(linear, table, sizes.vocab_size, rest, windows, groups, head)
    return replace(shape, per_position=angles_per_position(sizes, cache_of(config)))


def _counted(sizes: TransformersSizes, *, cached: bool) -> ModelShape:
    """Return the parameters of a module of transformers, by the layers that hold them."""
    model = empty_model(sizes)
    untyped: Any = model
    every = {id(one): one.numel() for one in untyped.parameters()}
    tables = {
        id(one.weight): one.weight.numel()
        for one in untyped.modules()
        if isinstance(one, nn.Embedding)
    }
    linear = {
        id(one.weight): one.weight.numel()
        for one in untyped.modules()
        if isinstance(one, nn.Linear) and id(one.weight) not in tables
    }
    table, many = sum(tables.values()), sum(linear.values())
    rest = sum(every.values()) - table - many
    each, kept = kept_elements(model) if cached else (0, 0)
    pairs = each // 2  # keys and values of all layers, as one layer with heads of one element
    return ModelShape(many, table, sizes.vocab_size, rest, (0,), pairs, 1, kept)


def plan_lengths(config: LlmConfig, lengths: Sequence[int]) -> list[LengthPlan]:
    """Return the bytes of weights and cache by length of the context.

    Raises: errors of ``shape_of``
    """
    shape, cache = shape_of(config), cache_of(config)
    item = DTYPES[config.model.dtype_override].itemsize
    given = config.quantization
    whole = "int8" if given.pt2e_quantize else ""
    stored = linear_word(given) or whole
    if stored and _holds_floats(config) and not has_kernel(stored):
        stored = ""
    linear = _bytes(shape.linear, stored, item)
    word = table_word(given)
    table = shape.table * item
    if word:
        group = group_of(word)
        scales = shape.table // group if group else shape.tokens
        table = shape.table * int(word[0]) // 8 + scales * _PARAMETER_BYTES
    weights = linear + table + shape.rest * item
    step = shape.per_position * item
    row = shape.head * (1 if cache.quantized else item)
    row += 2 * _PARAMETER_BYTES if cache.quantized else 0
    each = 2 * shape.groups * row if cache.used else 0

    def positions(length: int) -> int:
        own = replace(cache, length=length, call=min(cache.call, length))
        return sum(own.kept(window) for window in shape.windows)

    kept = shape.kept * item
    return [
        LengthPlan(one, weights + step * max(one, shape.positions), each * positions(one) + kept)
        for one in lengths
    ]


def _holds_floats(config: LlmConfig) -> bool:
    """Return whether a backend of the program holds weights as floats that it has no kernel for."""
    chosen = partitioners_of(config)
    return any(
        backend.holds_half_bytes_as_floats
        for backend in BACKENDS.values()
        if any(one.alias in chosen for one in backend.partitioners)
    )


def _bytes(count: int, word: str, item: int) -> int:
    """Return the bytes of weights that a word quantizes."""
    if not word:
        return count * item
    group = group_of(word)
    scales = count // group * _PARAMETER_BYTES if group else 0
    return (count // 2 if is_four_bits(word) else count) + scales
