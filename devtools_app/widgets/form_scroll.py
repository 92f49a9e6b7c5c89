"""A form that scrolls up and down, and is never narrower than its fields."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QSize, Qt
from PySide6.QtWidgets import QFrame, QScrollArea, QWidget
from typing_extensions import override


class FormScroll(QScrollArea):
    """Shows a form; its least width follows the text size.

    A horizontal scroll bar is there only where the window has less room than that, as with large
    text and a panel at each side.
    """

    def __init__(self, form: QWidget) -> None:
        super().__init__()
        self._form = form
        self.setWidget(form)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        form.installEventFilter(self)

    @override
    def minimumSizeHint(self) -> QSize:
        form, bar = self._form.minimumSizeHint(), self.verticalScrollBar().sizeHint()
        return QSize(form.width() + bar.width(), super().minimumSizeHint().height())

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._form and event.type() is QEvent.Type.LayoutRequest:
            self.updateGeometry()
        return super().eventFilter(watched, event)
