"""Paths of modules with wildcards: one word for the same layer of every block."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

WILDCARD = "*"


def expand_modules(given: Mapping[str, str], paths: Collection[str]) -> dict[str, str]:
    """Return words by path of a module, with those that wildcards stand for.

    A ``*`` stands for any letters of one name between two dots. A path that is spelled out takes
    precedence over a wildcard, and of two wildcards the one with more letters of its own; of two
    with as many, the later one.

    Args:
        given: words by path, some with wildcards
        paths: modules of the program

    Returns:
        The words; a wildcard that no module matches is kept, for the caller to refuse
    """
    known = dict.fromkeys(paths)
    plain = {path: word for path, word in given.items() if WILDCARD not in path or path in known}
    found: dict[str, str] = {}
    for pattern in sorted(set(given) - set(plain), key=lambda one: _rank(given, one)):
        matches = _expression(pattern)
        mine = [path for path in known if matches.fullmatch(path)]
        found.update(dict.fromkeys(mine or [pattern], given[pattern]))
    return {**found, **plain}


def _rank(given: Mapping[str, str], pattern: str) -> tuple[int, int]:
    return len(pattern.replace(WILDCARD, "")), list(given).index(pattern)


def _expression(pattern: str) -> re.Pattern[str]:
    parts = (re.escape(part) for part in re.split(r"\*+", pattern))
    return re.compile(r"[^.]*".join(parts))
