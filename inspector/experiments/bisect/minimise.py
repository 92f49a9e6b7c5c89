"""Delta debugging: the smallest part of a list that still passes a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")
Test = Callable[[tuple[T, ...]], bool]


def minimise(items: Sequence[T], test: Test[T]) -> tuple[T, ...]:
    """Return a part of a list that passes a test and is minimal.

    The list is split into ever smaller chunks; the search continues with one that passes alone, or
    else with the rest after removing an unneeded one. For one culprit among n that takes about 2
    log2(n) tests,
    and no more than n² ever. Where the test is not monotone another part may be smaller still.

    Args:
        items: in an order in which neighbours belong together
        test: whether a part passes; called once per part, and never with all or none

    Raises: errors of the test
    """
    known: dict[tuple[T, ...], bool] = {}
    kept = tuple(items)

    def passes(part: tuple[T, ...]) -> bool:
        if part not in known:
            known[part] = test(part)
        return known[part]

    count = 2
    while len(kept) > 1:
        chunks = list(_chunks(kept, count))
        smaller = next((chunk for chunk in chunks if passes(chunk)), None)
        if smaller is not None:
            kept, count = smaller, 2
            continue
        smaller = _without_one(chunks, passes) if count > 2 else None
        if smaller is not None:
            kept, count = smaller, max(count - 1, 2)
        elif count < len(kept):
            count = min(2 * count, len(kept))
        else:
            break
    return kept


def _chunks(items: tuple[T, ...], count: int) -> Iterator[tuple[T, ...]]:
    """Yield so many neighbouring parts, none of them empty, equal up to one item."""
    whole, rest = divmod(len(items), count)
    start = 0
    for number in range(count):
        end = start + whole + (number < rest)
        if end > start:
            yield items[start:end]
        start = end


def _without_one(chunks: Sequence[tuple[T, ...]], passes: Test[T]) -> tuple[T, ...] | None:
    """Return the rest without the first unneeded chunk, None if all are needed."""
    for left_out in range(len(chunks)):
        rest = tuple(item for at, chunk in enumerate(chunks) if at != left_out for item in chunk)
        if passes(rest):
            return rest
    return None
