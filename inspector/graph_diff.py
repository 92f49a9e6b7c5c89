"""Aligns two lists of nodes by what they are, so that one inserted node is one difference."""

from __future__ import annotations

import difflib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Alignment:
    """Which entries of two sequences are the same.

    Attributes:
        pairs: (index in the old, index in the new) of what is in both
        removed: indices only in the old
        added: indices only in the new
    """

    pairs: tuple[tuple[int, int], ...]
    removed: tuple[int, ...]
    added: tuple[int, ...]


def align(old: Sequence[Hashable], new: Sequence[Hashable]) -> Alignment:
    """Return the alignment of two sequences of signatures.

    Equal heads and tails are taken off first, which makes the usual case linear.
    """
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    middle_old, middle_new = old[head : len(old) - tail], new[head : len(new) - tail]
    matcher = difflib.SequenceMatcher(None, middle_old, middle_new, autojunk=False)
    pairs = [(index, index) for index in range(head)]
    for block in matcher.get_matching_blocks():
        pairs += [(head + block.a + k, head + block.b + k) for k in range(block.size)]
    pairs += [(len(old) - tail + k, len(new) - tail + k) for k in range(tail)]
    kept_old, kept_new = {a for a, _ in pairs}, {b for _, b in pairs}
    removed = tuple(index for index in range(len(old)) if index not in kept_old)
    added = tuple(index for index in range(len(new)) if index not in kept_new)
    return Alignment(tuple(pairs), removed, added)
