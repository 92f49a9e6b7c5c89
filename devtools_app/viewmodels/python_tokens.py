"""Which parts of a line of Python are what; small, tolerant, and enough to read by."""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass

_PATTERN = re.compile(
    r"(?P<comment>\#.*)"
    r"|(?P<text>[rRbBfFuU]{0,2}(?:'(?:\\.|[^'\\])*'?|\"(?:\\.|[^\"\\])*\"?))"
    r"|(?P<number>\b(?:0[xX][0-9a-fA-F_]+|\d[\d_]*\.?[\d_]*(?:[eE][-+]?\d+)?)\b)"
    r"|(?P<decorator>^\s*@[\w.]+)"
    r"|(?P<word>\b[A-Za-z_]\w*\b)"
)
_CONSTANTS = frozenset({"True", "False", "None", "self", "cls"})
_TRIPLES = ('"""', "'''")


@dataclass(frozen=True, slots=True)
class Token:
    """A coloured stretch of a line.

    Attributes:
        start: first character
        length: number of characters
        kind: comment, text, number, keyword, constant, decorator or name
    """

    start: int
    length: int
    kind: str


def line_tokens(line: str, inside: str = "") -> tuple[tuple[Token, ...], str]:
    """Return the tokens of a line and which triple quote is still open behind it.

    Args:
        line: without its end
        inside: the triple quote that is open before it, empty for none
    """
    tokens: list[Token] = []
    start = 0
    if inside:
        end = line.find(inside)
        if end < 0:
            return (Token(0, len(line), "text"),), inside
        start = end + 3
        tokens.append(Token(0, start, "text"))
    while True:
        opening = _next_triple(line, start)
        if opening is None:
            return (*tokens, *_plain(line, start, len(line))), ""
        at, quote = opening
        tokens += _plain(line, start, at)
        end = line.find(quote, at + 3)
        if end < 0:
            return (*tokens, Token(at, len(line) - at, "text")), quote
        start = end + 3
        tokens.append(Token(at, start - at, "text"))


def _next_triple(line: str, start: int) -> tuple[int, str] | None:
    comment = line.find("#", start)
    found = [(at, quote) for quote in _TRIPLES if (at := line.find(quote, start)) >= 0]
    if not found or 0 <= comment < min(found)[0]:
        return None
    return min(found)


def _plain(line: str, start: int, end: int) -> list[Token]:
    tokens: list[Token] = []
    for match in _PATTERN.finditer(line, start, end):
        kind = str(match.lastgroup)
        if kind == "word":
            kind = _word(match[0], line[match.end() :])
        if kind:
            tokens.append(Token(match.start(), match.end() - match.start(), kind))
    return tokens


def _word(word: str, rest: str) -> str:
    if word in _CONSTANTS:
        return "constant"
    if keyword.iskeyword(word):
        return "keyword"
    return "name" if rest.startswith("(") else ""
