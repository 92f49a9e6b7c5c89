"""Read-only mappings from integers over sorted columns: a million entries are not objects."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import index
from typing import SupportsIndex, TypeVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

Ints = NDArray[np.int64]
V = TypeVar("V")
NONE = np.zeros(0, np.int64)


class _SortedKeys(Mapping[int, V]):
    """Looks up a key among sorted unique keys."""

    def __init__(self, keys: Ints) -> None:
        self._keys = keys

    def _place(self, key: object) -> int:
        if not isinstance(key, SupportsIndex):
            raise KeyError(key)
        number = index(key)
        place = int(np.searchsorted(self._keys, number))
        if place == len(self._keys) or self._keys[place] != number:
            raise KeyError(key)
        return place

    @override
    def __len__(self) -> int:
        return len(self._keys)

    @override
    def __iter__(self) -> Iterator[int]:
        return iter(self._keys.tolist())


class IntMap(_SortedKeys[int]):
    """Integers to integers.

    Args:
        keys: sorted, each once
        values: one a key
    """

    def __init__(self, keys: Ints = NONE, values: Ints = NONE) -> None:
        super().__init__(keys)
        self._values = values

    @override
    def __getitem__(self, key: int) -> int:
        return int(self._values[self._place(key)])


class CodedMap(_SortedKeys[V]):
    """Maps integers to few distinct values.

    Args:
        keys: sorted and unique
        codes: index into items, one per key
        items: the distinct values
    """

    def __init__(self, keys: Ints, codes: Ints, items: Sequence[V]) -> None:
        super().__init__(keys)
        self._codes = codes
        self._items = items

    @override
    def __getitem__(self, key: int) -> V:
        return self._items[int(self._codes[self._place(key)])]


class GroupMap(_SortedKeys[tuple[int, ...]]):
    """Integers to all the values they were given, in the order they were given.

    Args:
        keys: in any order, as often as they have values
        values: one a key
    """

    def __init__(self, keys: Ints = NONE, values: Ints = NONE) -> None:
        order = np.argsort(keys, kind="stable")
        unique, start = np.unique(keys[order], return_index=True)
        super().__init__(unique)
        self._values = values[order]
        self._edges = np.append(start, len(keys))

    @override
    def __getitem__(self, key: int) -> tuple[int, ...]:
        place = self._place(key)
        return tuple(self._values[self._edges[place] : self._edges[place + 1]].tolist())


class RunMap(Mapping[int, tuple[V, ...]]):
    """The members of groups 0, 1, 2 and so on, which follow each other in one sequence.

    Args:
        starts: place of the first member of each group, and the number of all members
        items: the members
    """

    def __init__(self, starts: Iterable[int], items: Sequence[V]) -> None:
        self._starts = array("q", starts)
        self._items = items

    @override
    def __getitem__(self, key: int) -> tuple[V, ...]:
        if not 0 <= key < len(self):
            raise KeyError(key)
        return tuple(self._items[self._starts[key] : self._starts[key + 1]])

    @override
    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self)))

    @override
    def __len__(self) -> int:
        return len(self._starts) - 1


def run_map(groups: Iterable[Sequence[V]]) -> RunMap[V]:
    """Return the groups with their members in one sequence."""
    starts, items = array("q", [0]), list[V]()
    for group in groups:
        items += group
        starts.append(len(items))
    return RunMap(starts, items)


def places_of(numbers: Iterable[int | None]) -> GroupMap:
    """Return the positions of each number; None and negative ones have none."""
    known = np.array([-1 if one is None else one for one in numbers], np.int64)
    places = np.flatnonzero(known >= 0)
    return GroupMap(known[places], places)
