"""Relative and absolute tolerance of a comparison, as typed; empty for the usual ones."""

from __future__ import annotations

import math

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QWidget

from devtools_app.appearance.theme import set_role

_WIDTH = 78
_HINT = (
    "An element differs if it is further off than the relative tolerance times the largest"
    " magnitude of its tensor, plus the absolute one. Return compares again."
)


class ToleranceFields(QWidget):
    """Two short fields.

    Signals:
        confirmed(): Return was pressed in a field, and both can be read
    """

    confirmed = Signal()

    def __init__(self) -> None:
        super().__init__()
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        label = QLabel("tolerance")
        set_role(label, "role", "muted")
        layout.addWidget(label)
        self.relative = _field("Relative tolerance", "by dtype")
        self.absolute = _field("Absolute tolerance", "+ 0")
        for field in (self.relative, self.absolute):
            layout.addWidget(field)
            field.returnPressed.connect(self._confirm)
            field.editingFinished.connect(self.read)

    def read(self) -> tuple[float | None, float] | None:
        """Return both, None for a relative one by dtype; or None if a field cannot be read."""
        found = [self._number(field) for field in (self.relative, self.absolute)]
        if any(one is not None and math.isnan(one) for one in found):
            return None
        return found[0], found[1] or 0.0

    def _number(self, field: QLineEdit) -> float | None:
        """Return the number in a field, None for an empty one, NaN for others."""
        text = field.text().strip()
        try:
            value = float(text) if text else None
        except ValueError:
            value = math.nan
        if value is not None and not 0.0 <= value < math.inf:
            value = math.nan
        wrong = value is not None and math.isnan(value)
        set_role(field, "role", "bad" if wrong else "")
        field.setToolTip("Expected a number of at least 0, such as 1e-3" if wrong else _HINT)
        return value

    def _confirm(self) -> None:
        if self.read() is not None:
            self.confirmed.emit()


def _field(name: str, hint: str) -> QLineEdit:
    field = QLineEdit()
    field.setAccessibleName(name)
    field.setPlaceholderText(hint)
    field.setToolTip(_HINT)
    field.setFixedWidth(_WIDTH)
    return field
