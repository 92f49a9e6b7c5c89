"""Aligns two lists of nodes by identity, so that one inserted node is one difference.

Equal heads and tails are removed, then runs that are unique in both lists are anchors; only the
short stretches between them are compared in full. Ten thousand nodes therefore take a moment, and
for a list of repetitions the result is correct though perhaps not minimal.
"""

from __future__ import annotations

import bisect
import difflib
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

_RUNS = (1, 2, 4, 8, 16, 32)  # lengths of runs that may be anchors
_FULL = 250_000  # pairs compared in full; a stretch of 500 by 500 nodes

Pairs = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Alignment:
    """The alignment of two sequences.

    Attributes:
        pairs: (index in the old, index in the new) of common entries, ascending in both
        removed: indices only in the old
        added: indices only in the new
    """

    pairs: tuple[tuple[int, int], ...]
    removed: tuple[int, ...]
    added: tuple[int, ...]


def align(old: Sequence[Hashable], new: Sequence[Hashable]) -> Alignment:
    """Return the alignment of two sequences of signatures."""
    numbers: dict[Hashable, int] = {}
    left = [numbers.setdefault(item, len(numbers)) for item in old]
    right = [numbers.setdefault(item, len(numbers)) for item in new]
    pairs: Pairs = []
    stretches = [(0, len(left), 0, len(right))] if set(left) & set(right) else []
    while stretches:
        stretch = stretches.pop()
        matched, inner = _trimmed(left, right, stretch)
        pairs += matched
        start, stop, begin, end = inner
        if start == stop or begin == end:
            continue
        anchors = _anchors(left[start:stop], right[begin:end])
        if not anchors:
            pairs += _rest(left, right, inner)
            continue
        stretches += _between(inner, [(start + a, begin + b) for a, b in anchors])
        pairs += [(start + a, begin + b) for a, b in anchors]
    pairs.sort()
    return _alignment(pairs, len(left), len(right))


def _alignment(pairs: Pairs, old: int, new: int) -> Alignment:
    kept_old, kept_new = {a for a, _ in pairs}, {b for _, b in pairs}
    removed = tuple(index for index in range(old) if index not in kept_old)
    added = tuple(index for index in range(new) if index not in kept_new)
    return Alignment(tuple(pairs), removed, added)


Stretch = tuple[int, int, int, int]  # start and stop in the old, begin and end in the new


def _trimmed(left: list[int], right: list[int], stretch: Stretch) -> tuple[Pairs, Stretch]:
    """Return the pairs of equal heads and tails, and the part between them."""
    start, stop, begin, end = stretch
    pairs: Pairs = []
    while start < stop and begin < end and left[start] == right[begin]:
        pairs.append((start, begin))
        start, begin = start + 1, begin + 1
    while start < stop and begin < end and left[stop - 1] == right[end - 1]:
        stop, end = stop - 1, end - 1
        pairs.append((stop, end))
    return pairs, (start, stop, begin, end)


def _anchors(old: list[int], new: list[int]) -> Pairs:
    """Return the entries of runs that are unique in both, in the same order."""
    for size in _RUNS:
        if size > min(len(old), len(new)):
            break
        here, there = _single_runs(old, size), _single_runs(new, size)
        common = sorted((here[run], there[run]) for run in here.keys() & there.keys())
        if common:
            return _spread(_increasing(common), size)
    return []


def _single_runs(items: list[int], size: int) -> dict[tuple[int, ...], int]:
    runs = [tuple(items[at : at + size]) for at in range(len(items) - size + 1)]
    counts = Counter(runs)
    return {run: at for at, run in enumerate(runs) if counts[run] == 1}


def _increasing(pairs: Pairs) -> Pairs:
    """Return a longest chain of pairs that increase in both members (patience sorting)."""
    tops: list[int] = []
    piles: list[int] = []
    before: list[int] = []
    for number, (_, there) in enumerate(pairs):
        pile = bisect.bisect_left(tops, there)
        before.append(piles[pile - 1] if pile else -1)
        if pile == len(tops):
            tops.append(there)
            piles.append(number)
        else:
            tops[pile], piles[pile] = there, number
    chain: Pairs = []
    number = piles[-1] if piles else -1
    while number >= 0:
        chain.append(pairs[number])
        number = before[number]
    return chain[::-1]


def _spread(chain: Pairs, size: int) -> Pairs:
    """Return the entries of runs of a size, each once; runs may overlap by the same shift only."""
    found: Pairs = []
    for here, there in chain:
        for step in range(size):
            pair = (here + step, there + step)
            if not found or (pair[0] > found[-1][0] and pair[1] > found[-1][1]):
                found.append(pair)
    return found


def _between(stretch: Stretch, anchors: Pairs) -> list[Stretch]:
    start, stop, begin, end = stretch
    found: list[Stretch] = []
    for here, there in anchors:
        found.append((start, here, begin, there))
        start, begin = here + 1, there + 1
    return [*found, (start, stop, begin, end)]


def _rest(left: list[int], right: list[int], stretch: Stretch) -> Pairs:
    """Return the pairs of a stretch without anchors: in full when short, else the next equal."""
    start, stop, begin, end = stretch
    old, new = left[start:stop], right[begin:end]
    if len(old) * len(new) <= _FULL:
        matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
        blocks = matcher.get_matching_blocks()
        return [(start + b.a + k, begin + b.b + k) for b in blocks for k in range(b.size)]
    places: dict[int, list[int]] = {}
    for at, item in enumerate(new):
        places.setdefault(item, []).append(at)
    found: Pairs = []
    at = 0
    for here, item in enumerate(old):
        candidates = places.get(item, [])
        nearest = bisect.bisect_left(candidates, at)
        if nearest < len(candidates) and candidates[nearest] - at <= _REACH:
            found.append((start + here, begin + candidates[nearest]))
            at = candidates[nearest] + 1
    return found


_REACH = 64  # how far ahead the next equal entry may be before it is taken for another one
