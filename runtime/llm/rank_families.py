"""What files of ranks leave out: how text is split, and the special tokens, by family.

A file of ranks belongs to the family with its number of ranks, or to the one that ``pat_str`` in
``tokenizer_config.json`` beside it names; ``pat_str`` may be a pattern, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

PATTERN = "pat_str"  # as tiktoken calls it
_SUFFIX = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_SIGNS = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_REST = rf"{_SIGNS}|{_SPACES}"
_WORDS = rf"{_SUFFIX}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+"
_DIGITS = r"\p{N}{1,3}"
_UPPER, _LOWER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
_END = "<|endoftext|>"


@dataclass(frozen=True)
class RankFamily:
    """The tokenizers of one family.

    Attributes:
        pattern: how text is split before pairs are merged
        ranks: number of them, 0 for a pattern that a user gave
        special: tokens behind the ranks, by their distance from the last one
        bos: name of the token that begins a text
        eos: names of those that end one
    """

    pattern: str
    ranks: int = 0
    special: Mapping[str, int] = field(default_factory=dict[str, int])
    bos: str | None = None
    eos: tuple[str, ...] = ()


def _in_a_row(names: list[str]) -> dict[str, int]:
    return {name: at for at, name in enumerate(names)}


_RESERVED = [f"<|reserved_special_token_{at}|>" for at in range(248)]
FAMILIES: dict[str, RankFamily] = {
    "llama3": RankFamily(
        rf"{_WORDS}|{_DIGITS}|{_REST}",
        128_000,
        _in_a_row(
            [
                "<|begin_of_text|>",
                "<|end_of_text|>",
                *_RESERVED[:2],
                "<|finetune_right_pad_id|>",
                _RESERVED[2],
                "<|start_header_id|>",
                "<|end_header_id|>",
                "<|eom_id|>",
                "<|eot_id|>",
                "<|python_tag|>",
                *_RESERVED[3:],
            ]
        ),
        "<|begin_of_text|>",
        ("<|end_of_text|>", "<|eot_id|>", "<|eom_id|>"),
    ),
    "qwen": RankFamily(
        rf"{_WORDS}|\p{{N}}|{_REST}",
        151_643,
        _in_a_row([_END, "<|im_start|>", "<|im_end|>", *(f"<|extra_{at}|>" for at in range(205))]),
        None,
        (_END, "<|im_end|>"),
    ),
    "r50k_base": RankFamily(
        r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
        50_256,
        {_END: 0},
        _END,
        (_END,),
    ),
    "cl100k_base": RankFamily(
        rf"{_WORDS}|{_DIGITS}|{_SIGNS}|\s+$|{_SPACES}",
        100_256,
        {
            _END: 1,
            "<|fim_prefix|>": 2,
            "<|fim_middle|>": 3,
            "<|fim_suffix|>": 4,
            "<|endofprompt|>": 20,
        },
        None,
        (_END,),
    ),
    "o200k_base": RankFamily(
        rf"[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]*[{_LOWER}]+{_SUFFIX}?|"
        rf"[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]+[{_LOWER}]*{_SUFFIX}?|"
        rf"{_DIGITS}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACES}",
        199_998,
        {_END: 1, "<|endofprompt|>": 20},
        None,
        (_END,),
    ),
}


def family_of(ranks: int, config: Mapping[str, Any]) -> RankFamily:
    """Return the family of a file of ranks.

    Args:
        ranks: number of them
        config: content of ``tokenizer_config.json`` beside it

    Raises: ValueError if it is not known
    """
    given = config.get(PATTERN)
    if isinstance(given, str):
        return FAMILIES.get(given) or RankFamily(given)
    known = next((one for one in FAMILIES.values() if one.ranks == ranks), None)
    if known is not None:
        return known
    there = ", ".join(f"{name} {one.ranks:,}" for name, one in FAMILIES.items())
    raise ValueError(
        f"{ranks:,} ranks are those of no known family ({there}), and the file has no rule by which"
        f' text is split: set "{PATTERN}" in tokenizer_config.json beside it to a pattern or to one'
        " of these names"
    )


def special_tokens(
    ranks: int, family: RankFamily, config: Mapping[str, Any]
) -> tuple[dict[str, int], frozenset[int]]:
    """Return the tokens behind the ranks by name, and those of them that have a text.

    Raises: ValueError for tokens that ``tokenizer_config.json`` numbers wrongly
    """
    listed: Any = config.get("added_tokens_decoder")
    if not isinstance(listed, dict):
        return {name: ranks + at for name, at in family.special.items()}, frozenset()
    found: dict[str, int] = {}
    shown: set[int] = set()
    for key, value in cast("dict[str, Any]", listed).items():
        held = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        name, number = held.get("content"), int(key) if key.isdecimal() else -1
        if not isinstance(name, str) or not name or number < ranks or name in found:
            words = "expected a content of its own, and a number behind the ranks"
            raise ValueError(f"tokenizer_config.json: added_tokens_decoder.{key}: {words}")
        found[name] = number
        if held.get("special") is False:
            shown.add(number)
    return found, frozenset(shown)
