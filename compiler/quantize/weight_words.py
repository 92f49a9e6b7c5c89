"""Words for quantized weights; free of torch, so that a configuration is checked without it."""

from __future__ import annotations

import re

LINEAR_WORDS = ("8da4w", "8da8w", "4w", "int8")
UNQUANTIZED = "none"
_WORD = re.compile(r"(?P<kind>8da4w|8da8w|4w|int8)(:group=(?P<group>[1-9]\d*))?")
_TABLE = re.compile(r"(?P<bits>2|4|8)(:group=(?P<group>[1-9]\d*))?")
_FOUR_BITS = ("8da4w", "4w")
_DYNAMIC = "8da"  # activations are quantized while a program runs
_GROUP = 32  # of 4 bits, as where nothing else is asked for


def is_weight_word(text: str) -> bool:
    """Return whether a mode of quantization is one of weights."""
    return _WORD.fullmatch(text) is not None


def is_table_word(text: str) -> bool:
    """Return whether a word is one of the tables of embeddings."""
    return _TABLE.fullmatch(text) is not None


def unknown_weight_word(text: str) -> str:
    """Return why a word of linear layers is refused."""
    known = ", ".join((*(f"{one}[:group=N]" for one in LINEAR_WORDS), UNQUANTIZED))
    return f"unknown word {text!r}; available: {known}"


def group_of(word: str) -> int | None:
    """Return the inputs that share a scale, None for all of a channel."""
    match = _WORD.fullmatch(word) or _TABLE.fullmatch(word)
    assert match is not None
    if match["group"] is not None:
        return int(match["group"])
    return _GROUP if is_four_bits(word) else None


def is_four_bits(word: str) -> bool:
    """Return whether weights of linear layers have 4 bits by a word."""
    return word.startswith(_FOUR_BITS)


def bits_of(word: str) -> int:
    """Return the bits of a weight."""
    match = _TABLE.fullmatch(word)
    return int(match["bits"]) if match else 4 if is_four_bits(word) else 8


def has_kernel(word: str) -> bool:
    """Return whether kernels of a delegate multiply by such weights: others it holds as floats."""
    return word.startswith(_DYNAMIC) if is_four_bits(word) else group_of(word) is None
