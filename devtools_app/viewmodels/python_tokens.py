"""Lex Python source with Pygments one line at a time, so that a view need not wait for the rest."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import cast

from pygments.lexer import ExtendedRegexLexer, LexerContext, RegexLexer
from pygments.lexers import find_lexer_class_by_name
from pygments.token import Comment, Keyword, Name, Number, String

ROOT = ("root",)  # the lexer's states at the start of a file
_KINDS: dict[tuple[str, ...], str] = {
    Comment: "comment",
    String: "string",
    Number: "number",
    Keyword: "keyword",
    Keyword.Constant: "constant",
    Name.Builtin.Pseudo: "constant",  # self, cls
    Name.Decorator: "decorator",
    Name.Function: "definition",
    Name.Class: "definition",
}


@dataclass(frozen=True, slots=True)
class CodeToken:
    """A coloured stretch of a line.

    Attributes:
        start: first character
        length: number of characters
        kind: comment, string, number, keyword, constant, decorator or definition
    """

    start: int
    length: int
    kind: str


_PYTHON = cast("type[RegexLexer]", find_lexer_class_by_name("python"))


class _Lexer(ExtendedRegexLexer):
    """Pygments' Python, lexed by the class that takes and returns the states of a line."""

    tokens = _PYTHON.tokens
    flags = _PYTHON.flags


_LEXER = _Lexer()


@cache
def _kind(token: tuple[str, ...]) -> str:
    parents = (token[:length] for length in range(len(token), 0, -1))
    return next((_KINDS[one] for one in parents if one in _KINDS), "")


def line_tokens(
    line: str, states: tuple[str, ...] = ROOT
) -> tuple[tuple[CodeToken, ...], tuple[str, ...]]:
    """Return the coloured tokens of a line, and the states of the lexer after it.

    Args:
        line: without its newline
        states: those after the line before, e.g. inside a triple-quoted string
    """
    context = LexerContext(f"{line}\n", 0, stack=list(states))
    found: list[CodeToken] = []
    for start, token, text in _LEXER.get_tokens_unprocessed(context=context):
        kind, length = _kind(token), min(len(text), len(line) - start)
        if not kind or length <= 0:
            continue
        if found and found[-1].kind == kind and found[-1].start + found[-1].length == start:
            start, length = found[-1].start, found.pop().length + length
        found.append(CodeToken(start, length, kind))
    return tuple(found), tuple(context.stack)
