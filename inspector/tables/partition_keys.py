"""Keys of the rows of the partitions, those of nodes created on first access."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from typing_extensions import override

from inspector.graph.model_graph import COMPILED, ModelGraph, ModelNode
from inspector.tables.selection import Selection, SelectionKind
from inspector.tables.table import Keys


class PartitionKeys(Keys):
    """The keys of rows of nodes of the compiled graph, and of rows of anything else.

    Args:
        method: whose partitions they are
        graph: the compiled graph, None without one
        subjects: of each row: a node of the graph, or the key itself
    """

    def __init__(
        self,
        method: str,
        graph: ModelGraph | None,
        subjects: Sequence[ModelNode | Selection | str],
    ) -> None:
        self._method = method
        self._graph = graph
        self._subjects = subjects
        self._row = np.full(len(graph.nodes) if graph is not None else 0, -1, np.int64)
        self._others: dict[Hashable, int] = {}
        for row, subject in enumerate(subjects):
            if isinstance(subject, ModelNode):
                self._row[subject.id] = row
            else:
                self._others.setdefault(subject, row)

    @override
    def __len__(self) -> int:
        return len(self._subjects)

    @override
    def at(self, row: int) -> Selection | str:
        """Return the key of an existing row."""
        subject = self._subjects[row]
        if isinstance(subject, ModelNode):
            return Selection(SelectionKind.NODE, self._method, COMPILED, subject.name)
        return subject

    @override
    def find(self, key: Hashable) -> int:
        """Return the first row with a key, or -1."""
        row = self.row_of(key.node) if isinstance(key, Selection) else -1
        return row if row >= 0 and self.at(row) == key else self._others.get(key, -1)

    def row_of(self, node: str) -> int:
        """Return the row of a node of the compiled graph, or -1."""
        place = self._graph.by_name.get(node) if self._graph is not None else None
        return -1 if place is None else int(self._row[place])

    def row_of_delegate(self, index: int | None) -> int:
        """Return the row of a delegate, or -1."""
        return self.find(Selection(SelectionKind.DELEGATE, self._method, delegate=index))
