"""Aliasing in a trace: which tensors share memory, and which became stale by a write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


class Sharing:
    """Views by their base, tensors by their id; all of them must stay alive.

    A write through a view changes its base and other views of that base without renaming them;
    these are stale afterwards. Results of one operator do not overlap.
    """

    def __init__(self) -> None:
        self._base: dict[int, tuple[int, int]] = {}  # of a view: its base, and index of the call
        self._views: dict[int, list[int]] = {}
        self._calls = 0
        self._stale: set[int] = set()

    def is_stale(self, tensor: object) -> bool:
        """Return whether a tensor was written under another name."""
        return id(tensor) in self._stale

    def view(self, base: object, views: Sequence[object]) -> None:
        """Record the results of an operator that alias its operand."""
        self._calls += 1
        for view in views:
            self._base[id(view)] = id(base), self._calls
            self._views.setdefault(id(base), []).append(id(view))

    def write(self, tensor: object) -> None:
        """Record that a tensor was written under its current name."""
        self._stale.update(self._below(id(tensor)))
        self._stale.discard(id(tensor))
        at = id(tensor)
        while at in self._base:
            at, call = self._base[at]
            self._stale.add(at)
            for view in self._views[at]:
                if self._base[view][1] != call:
                    self._stale.update(self._below(view))

    def _below(self, tensor: int) -> Iterator[int]:
        yield tensor
        for view in self._views.get(tensor, ()):
            yield from self._below(view)
