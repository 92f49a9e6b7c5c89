"""Paths of modules that words of quantization are for: wildcards, containers, several methods."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

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


def with_owners(paths: Iterable[str]) -> list[str]:
    """Return paths of modules, and of the modules that they are in."""
    names = (path.split(".") for path in paths)
    owners = (".".join(parts[:count]) for parts in names for count in range(1, len(parts) + 1))
    return list(dict.fromkeys(owners))


def opened_containers(given: Mapping[str, str], paths: Collection[str]) -> dict[str, str]:
    """Return words by path, with those of containers given to the outermost modules in them.

    No code belongs to a list or dictionary of modules, which is never called itself. A word for a
    module in it, or for a container in it, takes precedence.

    Args:
        given: words by path
        paths: modules that are called
    """
    found = {path: word for path, word in given.items() if path in paths}
    for owner in sorted(set(given) - set(found), key=len, reverse=True):
        inside = [path for path in paths if path.startswith(f"{owner}.")]
        outermost = [one for one in inside if not _is_in(one, inside)]
        if not outermost:
            found[owner] = given[owner]
        for path in outermost:
            found.setdefault(path, given[owner])
    return found


def _is_in(path: str, others: Collection[str]) -> bool:
    parts = path.split(".")
    return any(".".join(parts[:count]) in others for count in range(1, len(parts)))


def words_by_method(
    given: Mapping[str, str], known: Mapping[str, Collection[str]]
) -> dict[str, dict[str, str]]:
    """Return the words of each method: without those that name parts of other methods only.

    What no method has stays with all, for the caller to refuse.

    Args:
        given: words by path, some with wildcards
        known: paths that each method has
    """
    every = dict.fromkeys(path for paths in known.values() for path in paths)
    words = expand_modules(given, every)
    return {
        method: {path: word for path, word in words.items() if path in own or path not in every}
        for method, own in known.items()
    }


def _rank(given: Mapping[str, str], pattern: str) -> tuple[int, int]:
    return len(pattern.replace(WILDCARD, "")), list(given).index(pattern)


def _expression(pattern: str) -> re.Pattern[str]:
    parts = (re.escape(part) for part in re.split(r"\*+", pattern))
    return re.compile(r"[^.]*".join(parts))
