"""Marks on rows of an item model: an icon before the first cell, and why on hover."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from PySide6.QtGui import QIcon

from devtools_app.qtmodels.roles import ACCESSIBLE, DECORATION, TOOLTIP


@dataclass(frozen=True, slots=True, eq=False)
class RowMarks:
    """The marked rows.

    Attributes:
        words: why, by row
        icon: before the first cell of each
    """

    words: Mapping[int, str] = field(default_factory=dict[int, str])
    icon: QIcon | None = None

    def on(self, row: int, column: int, role: int, plain: object) -> object:
        """Return the data of a cell for a role, with its mark.

        Args:
            row: of the table
            column: of the table; the first has the mark
            role: of the data
            plain: the data without marks
        """
        if column or row not in self.words:
            return plain
        if role == DECORATION:
            return self.icon
        if role in (TOOLTIP, ACCESSIBLE):
            return "\n".join(filter(None, (str(plain or ""), self.words[row])))
        return plain
