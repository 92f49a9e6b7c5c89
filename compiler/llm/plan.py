"""What a language model takes in memory, by the length of its context; nothing is built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from compiler.llm.config import LlmConfig
from compiler.llm.decoder import angles_per_position
from compiler.llm.model import DTYPES, cache_of, empty_module, sizes_of
from compiler.llm.nano_gpt import NanoGptSizes
from compiler.llm.quantization import linear_word, table_word
from compiler.llm.recipe_words import partitioners_of
from compiler.llm.size_checks import TransformersSizes
from compiler.llm.transformers_source import kept_elements
from compiler.quantize.weight_words import UNQUANTIZED, bits_of, group_of, has_kernel
from compiler.quantize.weights import WeightModes, layer_words
from schema.backends import BACKENDS

_PARAMETER_BYTES = 4  # a scale, a zero point
_POSITIONS = "wpe"  # path of the table of positions that are learned


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
class LayerShape:
    """A layer whose weight may be quantized.

    Attributes:
        path: of its module
        weight: number of its weight; layers that share one have the same
        rows: of the weight
        elements: of the weight
        is_table: whether it is an embedding
    """

    path: str
    weight: int
    rows: int
    elements: int
    is_table: bool


@dataclass(frozen=True)
class ModelShape:
    """The sizes of a model that count.

    Attributes:
        parameters: of all layers, without those by position
        layers: linear ones and embeddings
        windows: of the layers, each with a cache; 0 for none
        groups: of keys and values
        head: size of one
        kept: elements of a state that all positions share
        per_position: elements of the tables that have a row for each position
        positions: rows of these tables at least, where they are learned
    """

    parameters: int
    layers: Sequence[LayerShape]
    windows: tuple[int, ...]
    groups: int
    head: int
    kept: int = 0
    per_position: int = 0
    positions: int = 0


def shape_of(config: LlmConfig) -> ModelShape:
    """Return the sizes of a model, counted from its module without weights.

    Raises: LlmConfigError, FamilyError, CheckpointError, OSError
    """
    sizes, _ = sizes_of(config)
    model: Any = empty_module(config, sizes)
    # a module without memory has the numbers of its weights for as long as it is kept
    modules = dict(model.named_modules(remove_duplicate=False))
    learned = model.wpe.weight.numel() if isinstance(sizes, NanoGptSizes) else 0
    layers = [
        LayerShape(path, id(one.weight), one.weight.shape[0], one.weight.numel(), is_table)
        for path, one in modules.items()
        if (is_table := isinstance(one, nn.Embedding)) or isinstance(one, nn.Linear)
        if not (learned and path == _POSITIONS)
    ]
    many = sum(one.numel() for one in model.parameters()) - learned
    if isinstance(sizes, TransformersSizes):
        each, kept = kept_elements(model) if config.model.use_kv_cache else (0, 0)
        # keys and values of all layers, as one layer with heads of one element
        return ModelShape(many, layers, (0,), each // 2, 1, kept)
    if isinstance(sizes, NanoGptSizes):
        width, none = sizes.n_embd, (0,) * sizes.n_layer
        shape = ModelShape(many, layers, none, sizes.n_head, width // sizes.n_head)
        return replace(shape, per_position=width, positions=sizes.block_size)
    windows, head = sizes.window_of_layers, sizes.size_of_head
    shape = ModelShape(many, layers, windows, sizes.groups, head)
    return replace(shape, per_position=angles_per_position(sizes, cache_of(config)))


def plan_lengths(config: LlmConfig, lengths: Sequence[int]) -> list[LengthPlan]:
    """Return the bytes of weights and cache by length of the context.

    Raises: errors of ``shape_of``, QuantizeError for words of layers that do not exist
    """
    shape, cache = shape_of(config), cache_of(config)
    item = DTYPES[config.model.dtype_override].itemsize
    words = _words(config, shape)
    weights = _weight_bytes(config, shape, words, item)
    learned = words.get(_POSITIONS, "") if shape.positions else ""
    step = _bytes(1, shape.per_position, learned, item)
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


def _words(config: LlmConfig, shape: ModelShape) -> dict[str, str]:
    """Return the word of each quantized layer by path.

    Raises: QuantizeError for a word of a layer that the model has not
    """
    given = config.quantization
    word = "int8" if given.pt2e_quantize else linear_word(given)
    linears = [one.path for one in shape.layers if not one.is_table]
    tables = [one.path for one in shape.layers if one.is_table]
    tables += [_POSITIONS] if shape.positions else []
    how = WeightModes(word or UNQUANTIZED, table_word(given), given.modules)
    return layer_words(how, linears, tables)


def _weight_bytes(config: LlmConfig, shape: ModelShape, words: Mapping[str, str], item: int) -> int:
    """Return the bytes of weights; one that layers hold in two ways is stored in both."""
    floats = _holds_floats(config)
    stored: dict[tuple[int, str], int] = {}
    for one in shape.layers:
        word = words.get(one.path, "")
        if not one.is_table and word and floats and not has_kernel(word):
            word = ""
        stored[one.weight, word] = _bytes(one.rows, one.elements, word, item)
    layered = {one.weight: one.elements for one in shape.layers}
    rest = shape.parameters - sum(layered.values())
    return rest * item + sum(stored.values())


def _bytes(rows: int, count: int, word: str, item: int) -> int:
    """Return the bytes of a weight that a word quantizes."""
    if not word:
        return count * item
    group = group_of(word)
    scales = count // group if group else rows
    return count * bits_of(word) // 8 + scales * _PARAMETER_BYTES
