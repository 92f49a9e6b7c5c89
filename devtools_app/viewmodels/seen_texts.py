"""Strings that are created when they are first read: of 50,000 nodes a hundred are drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import overload

from typing_extensions import override


class SeenTexts(Sequence[str]):
    """Strings by index, each created once."""

    def __init__(self, count: int, text: Callable[[int], str]) -> None:
        self._count, self._text = count, text
        self._seen: dict[int, str] = {}

    @override
    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    @override
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[one] for one in range(*index.indices(self._count))]
        if not -self._count <= index < self._count:
            raise IndexError(index)
        at = index % self._count
        found = self._seen.get(at)
        if found is None:
            found = self._seen[at] = self._text(at)
        return found
