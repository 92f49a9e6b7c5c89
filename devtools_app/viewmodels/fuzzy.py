"""Fuzzy search by parts of names, best match first."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_MOST = 200  # more is not read; this keeps the list fast for graphs of 50,000 nodes


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """A choice of a palette.

    Attributes:
        title: searched text
        detail: muted description; searched as well
        hint: at the right end, as a shortcut
        payload: returned if chosen
        icon: name in the icon set, may be empty
    """

    title: str
    detail: str = ""
    hint: str = ""
    payload: Any = None
    icon: str = ""


def prepare(choices: Sequence[Choice]) -> tuple[str, ...]:
    """Return the lower-case strings to search; callers with many searches should cache them."""
    return tuple(f"{choice.title}\n{choice.detail}".casefold() for choice in choices)


def best(choices: Sequence[Choice], texts: Sequence[str], typed: str) -> list[Choice]:
    """Return the choices that contain all typed words, best match first.

    A match at the start of the title counts most, then at the start of a word, then anywhere; when
    no string contains a word, its letters may be spread (``rlu`` finds ``relu``).
    """
    terms = typed.casefold().split()
    if not terms:
        return list(choices[:_MOST])
    found = [index for index, text in enumerate(texts) if all(word in text for word in terms)]
    if not found:
        spread = re.compile(".*?".join(map(re.escape, "".join(terms))))
        found = [index for index, text in enumerate(texts) if spread.search(text)]
    found.sort(key=lambda index: (_rank(texts[index], terms), index))
    return [choices[index] for index in found[:_MOST]]


def _rank(text: str, terms: Sequence[str]) -> tuple[int, int]:
    title = text.split("\n", 1)[0]
    worst = 0
    for word in terms:
        at = title.find(word)
        if at == 0:
            continue
        if at < 0:
            worst = max(worst, 3)
        elif not title[at - 1].isalnum():
            worst = max(worst, 1)
        else:
            worst = max(worst, 2)
    return worst, len(title)
