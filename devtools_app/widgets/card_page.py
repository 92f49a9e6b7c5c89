"""A page of cards: as many columns as there is width for, up to three."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QTimer
from PySide6.QtGui import QFontMetrics, QResizeEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QFrame,
    QHBoxLayout,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from devtools_app.widgets.first_focus import order_keys

_WIDE = 660  # logical pixels from which two columns of sentences can be read
_LINE = 16  # height of a line of text of the usual size
_LEFT_PART, _RIGHT_PART = 3, 2  # of the width: sentences with a button need more than facts
_VERY_WIDE = 1500  # from which cards of facts have a column of their own
_WIDEST = 2400  # beyond that lines are too long to be read with ease


class CardPage(QScrollArea):
    """Cards over the whole width, then columns of them.

    It scrolls downwards, and sideways if even one column is too narrow for large text.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self.setObjectName("panel")
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        page = QWidget()
        page.setObjectName("page")
        page.setMaximumWidth(_WIDEST)
        self._page = page
        self._head = QVBoxLayout()
        self._head.setSpacing(10)
        self._left, self._right, self._far = QVBoxLayout(), QVBoxLayout(), QVBoxLayout()
        self._columns, self._facts = QHBoxLayout(), QVBoxLayout()
        for layout in (self._left, self._right, self._far, self._columns, self._facts):
            layout.setSpacing(12)
        self._facts.addLayout(self._right, 1)
        self._facts.addLayout(self._far, 1)
        self._columns.addLayout(self._left, _LEFT_PART)
        self._columns.addLayout(self._facts, _RIGHT_PART)
        self._cards = layout = QVBoxLayout(page)
        layout.setContentsMargins(16, 14, 16, 16)
        layout.setSpacing(12)
        layout.addLayout(self._head)
        layout.addLayout(self._columns)
        layout.addStretch(1)
        self._scrolled = 0  # where the page was before its cards were replaced
        self._ended = False  # its new cards are complete, but not yet placed
        self._later = QTimer(self)
        self._later.setSingleShot(True)
        self._later.timeout.connect(self._fit)
        self._placed = QTimer(self)
        self._placed.setSingleShot(True)
        self._placed.timeout.connect(self._paint_all)
        self.setWidget(page)
        page.installEventFilter(self)

    def begin(self) -> None:
        """Keep the look and the position of the page while its cards are replaced.

        They are laid out once, at the end: after each card it takes up to 10 ms for all of them.
        """
        self.viewport().setUpdatesEnabled(False)
        self._cards.setEnabled(False)
        self._ended = False
        self._scrolled = self.verticalScrollBar().value()

    def clear(self) -> None:
        """Remove all cards from the page."""
        for layout in (self._head, self._left, self._right, self._far):
            while (item := layout.takeAt(0)) is not None:
                widget = item.widget()
                if widget is not None:
                    widget.hide()  # without a parent it would be styled as a window
                    widget.deleteLater()

    def add_head(self, widget: QWidget) -> None:
        """Add a widget over the whole width."""
        self._head.addWidget(widget)

    def add_left(self, widget: QWidget) -> None:
        """Add a card to the first column."""
        self._left.addWidget(widget)

    def add_right(self, widget: QWidget) -> None:
        """Add a card to the second column, which is placed below the first in a narrow window."""
        self._right.addWidget(widget)

    def add_far(self, widget: QWidget) -> None:
        """Add a card to the third column, below the second where there is no width for it."""
        self._far.addWidget(widget)

    def end(self) -> None:
        """Align the cards of all columns to the top, and show them."""
        for column in (self._left, self._right, self._far):
            column.addStretch(1)
        self._ended = True
        self._fit_later()

    @override
    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._arrange()
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._fit_later()

    def _fit_later(self) -> None:
        """Fit the height of the page to its cards after they have been styled.

        Cards are styled when shown, which does not trigger a layout of the page.
        """
        self._later.start(0)

    def _fit(self) -> None:
        page = self._page
        if not self._cards.isEnabled():
            if self._ended:  # showing, placing and painting them take about as long: one by one
                self._cards.setEnabled(True)
                self._forget_sizes()
                self._fit_later()
            return
        if page.height() < page.minimumSizeHint().height():
            self.event(QEvent(QEvent.Type.LayoutRequest))  # a scroll area fits its widget on this
        self._cards.activate()
        if self._ended:
            self._ended = False
            self._placed.start(0)  # painting takes as long as placing: other events come between

    def _forget_sizes(self) -> None:
        """Have all cards placed again: layouts asked for sizes meanwhile think they are done."""
        for layout in (self._left, self._right, self._far, self._facts, self._columns, self._head):
            layout.invalidate()
        self._cards.invalidate()

    def _paint_all(self) -> None:
        if self._cards.isEnabled():  # else its cards are being replaced once more
            self.verticalScrollBar().setValue(self._scrolled)
            self.viewport().setUpdatesEnabled(True)
            order_keys(self, self._all_cards())

    def _all_cards(self) -> list[QWidget]:
        """Return the cards in the order in which they are read."""
        layouts = (self._head, self._left, self._right, self._far)
        items = (layout.itemAt(at) for layout in layouts for at in range(layout.count()))
        widgets = (item.widget() for item in items if item is not None)
        return [one for one in widgets if one is not None]

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:  # the page's: it does not always go on
            self._fit_later()
        return super().eventFilter(watched, event)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        self._arrange()
        super().resizeEvent(event)

    def _arrange(self) -> None:
        # what is side by side in small text is one below the other in large text
        line = max(QFontMetrics(self.font()).height(), _LINE)
        room = self.viewport().width() * _LINE / line
        for layout, least in ((self._columns, _WIDE), (self._facts, _VERY_WIDE)):
            across, down = QBoxLayout.Direction.LeftToRight, QBoxLayout.Direction.TopToBottom
            requested = across if room >= least else down
            if layout.direction() != requested:
                layout.setDirection(requested)
        self._facts.setStretch(0, 1 if room >= _VERY_WIDE else 0)  # else far is right below it
        self._columns.setStretch(1, _LEFT_PART if room >= _VERY_WIDE else _RIGHT_PART)
