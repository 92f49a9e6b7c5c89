"""Search in the structure tree, whose lines are created lazily."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from inspector.structure.node import StructureNode
from inspector.tables.filter import Filter, matches
from inspector.tables.structure import MOST_LINES

Way = tuple[int, ...]  # row at each level, from the top
Check = Callable[[], None]


@dataclass(frozen=True, slots=True)
class StructureMatch:
    """Where a search ended.

    Attributes:
        way: rows that lead to the line, empty without an error found
        looked_at: lines that were read
        complete: the search found a match or reached the end
    """

    way: Way
    looked_at: int
    complete: bool = True


class _TooManyError(Exception):
    """The search reached its limit of lines."""


class _Search:
    """Walks the lines in the order shown, without opening lines before the start."""

    def __init__(self, requested: Filter, check: Check, most: int) -> None:
        self._tests = [matches(term) for term in requested.terms]
        self._check, self._most = check, most
        self.looked_at = 0

    def found(self, nodes: Sequence[StructureNode], after: Way, above: Way = ()) -> Iterator[Way]:
        """Yield the matching lines after a line."""
        self.looked_at += len(nodes)
        if self.looked_at > self._most:
            raise _TooManyError
        self._check()
        texts = [f"{node.name}\n{node.type}\n{node.text}" for node in nodes]
        masks = [test(texts) for test in self._tests]
        for row, node in enumerate(nodes):
            way = (*above, row)
            if way > after and all(bool(mask[row]) for mask in masks):
                yield way
            # lines sort as tuples do: a branch that ends before the start holds nothing new
            if node.opens is not None and (way > after or after[: len(way)] == way):
                yield from self.found(node.children(), after, way)


def find_next(
    nodes: Sequence[StructureNode],
    requested: Filter,
    after: Way,
    check: Check = lambda: None,
    *,
    most: int = MOST_LINES,
) -> StructureMatch:
    """Return the first matching line after a line, then from the top.

    Args:
        nodes: lines of the top
        requested: words that must all occur in name, type or value
        after: path of rows to the line to start after; empty for the top
        check: called periodically; may raise to end the search
        most: limit of searched lines
    """
    search = _Search(requested, check, most)
    try:
        for start in (after, ()):
            way = next(search.found(nodes, start), None)
            if way is not None:
                return StructureMatch(way, search.looked_at)
    except _TooManyError:
        return StructureMatch((), search.looked_at, complete=False)
    return StructureMatch((), search.looked_at)


def find_before(
    nodes: Sequence[StructureNode],
    requested: Filter,
    before: Way,
    check: Check = lambda: None,
    *,
    most: int = MOST_LINES,
) -> StructureMatch:
    """Return the last matching line before a line, else the last one; see ``find_next``."""
    search = _Search(requested, check, most)
    last: Way = ()
    try:
        for way in search.found(nodes, ()):
            if last and last < before <= way:
                break
            last = way
    except _TooManyError:
        return StructureMatch((), search.looked_at, complete=False)
    return StructureMatch(last, search.looked_at)
