"""Selections of event rows, created on first access since there may be a million."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from inspector.join.int_maps import IntMap
from inspector.tables.selection import Selection, SelectionKind
from inspector.tables.table import Keys

Ints = NDArray[np.int64]


class EventKeys(Keys):
    """The keys of rows that stand for events, and of rows that do not.

    Args:
        method: whose events they are
        events: row of the profile, -1 if the row has no event
        instructions: index in the chain, or -1
        links: index into delegates of each row
        delegates: index in the method's delegates of each link
        others: keys of the rows without an event
    """

    def __init__(
        self,
        method: str,
        events: Ints,
        instructions: Ints,
        links: Ints,
        delegates: tuple[int | None, ...],
        others: Mapping[int, Hashable],
    ) -> None:
        self._method = method
        self._events = events
        self._instructions = instructions
        self._links = links
        self._delegates = delegates
        self._others = others
        self.by_event = rows_of(events)

    @override
    def __len__(self) -> int:
        return len(self._events)

    @override
    def at(self, row: int) -> Hashable:
        event, instruction = int(self._events[row]), int(self._instructions[row])
        if event < 0:
            return self._others[row]
        return Selection(
            SelectionKind.EVENT,
            method=self._method,
            event=event,
            instruction=instruction if instruction != -1 else None,
            delegate=self._delegates[int(self._links[row])],
        )

    @override
    def find(self, key: Hashable) -> int:
        if isinstance(key, Selection):
            row = self.by_event.get(-1 if key.event is None else key.event, -1)
            return row if row >= 0 and self.at(row) == key else -1
        return next((row for row, other in self._others.items() if other == key), -1)


def rows_of(events: Ints) -> IntMap:
    """Return event -> its row."""
    rows = np.flatnonzero(events >= 0)
    order = rows[np.argsort(events[rows], kind="stable")]
    return IntMap(events[order], order)
