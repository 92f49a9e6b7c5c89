"""The group ``quantization`` of a configuration, and its words; free of torch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from compiler.quantize.weight_words import (
    LINEAR_WORDS,
    UNQUANTIZED,
    is_table_word,
    is_weight_word,
    unknown_weight_word,
)

_DYNAMIC = "dynamic"


@dataclass(frozen=True, slots=True)
class QuantizationConfig:
    """Quantization of weights by torchao."""

    qmode: str | None = None
    embedding_quantize: str | None = None
    pt2e_quantize: str | None = None
    group_size: int | None = None
    use_spin_quant: str | None = None
    use_qat: bool = False
    quantize_scope: Literal["full", "linear"] = "full"
    calibration_tasks: tuple[str, ...] | None = None
    calibration_limit: int | None = None
    calibration_seq_length: int | None = None
    calibration_data: str = "Once upon a time"
    use_hqq: bool = True
    modules: dict[str, str] = field(default_factory=dict[str, str])


def linear_word(given: QuantizationConfig) -> str:
    """Return the word of ``qmode`` with its group, empty without one."""
    word = given.qmode or ""
    return f"{word}:group={given.group_size}" if word and given.group_size else word


def table_word(given: QuantizationConfig) -> str:
    """Return the word of ``embedding_quantize``, ``BITS,GROUP`` or ``BITS``; empty without one."""
    bits, comma, group = (given.embedding_quantize or "").partition(",")
    return f"{bits}:group={group}" if comma and group not in ("0", "none", "None") else bits


def quantization_problems(given: QuantizationConfig) -> Iterator[tuple[str, str]]:
    """Yield what is invalid in a group, with the name of the key."""
    if given.group_size is not None and given.group_size < 1:
        yield "group_size", f"expected at least 1, found {given.group_size}"
    elif given.group_size is not None and not given.qmode:
        yield "group_size", "needs quantization.qmode"
    elif given.qmode and not is_weight_word(linear_word(given)):
        yield "qmode", f"unknown {given.qmode!r}; available: {', '.join(LINEAR_WORDS)}"
    table = table_word(given)
    if table and not is_table_word(table):
        words = f"expected BITS,GROUP, such as 4,32, found {given.embedding_quantize!r}"
        yield "embedding_quantize", words
    for path, word in given.modules.items():
        if word != UNQUANTIZED and not is_weight_word(word) and not is_table_word(word):
            yield f"modules.{path}", unknown_weight_word(word)
    if given.pt2e_quantize is not None:
        yield from _pt2e_problems(given)


def _pt2e_problems(given: QuantizationConfig) -> Iterator[tuple[str, str]]:
    others = [one for one in ("qmode", "embedding_quantize", "modules") if getattr(given, one)]
    if others:
        yield "pt2e_quantize", f"excludes {', '.join(others)}: set one of them"
    if not (given.pt2e_quantize or "").endswith(f"_{_DYNAMIC}"):
        words = f"{given.pt2e_quantize} is not available; expected a backend's dynamic quantization"
        yield "pt2e_quantize", words


def key_of_word(given: QuantizationConfig, word: str) -> str:
    """Return the key that a word of layers comes from."""
    if word == table_word(given):
        return "embedding_quantize"
    if word == linear_word(given):
        return "qmode" if given.group_size is None else "group_size"
    return "modules"
