"""The parts of a method's time as one bar that adds up to the total; each part is a link."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QAccessible, QBrush, QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QSizePolicy, QVBoxLayout, QWidget
from typing_extensions import override

from devtools_app.appearance.theme import Theme, set_role
from devtools_app.viewmodels.headline import Slice
from devtools_app.widgets.accessible import set_accessible_role
from devtools_app.widgets.fields import PushButton
from devtools_app.widgets.flow_layout import FlowLayout
from inspector.tables.glossary import definition
from inspector.units import format_share

_BAR = 18
_SWATCH = 10


class TimeBar(QWidget):
    """A bar over a line of its parts with their times.

    Signals:
        chosen(view): request to show a part
    """

    chosen = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._bar = _Bar(theme)
        self._legend = FlowLayout(space=12, line_space=4)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(6)
        layout.addWidget(self._bar)
        layout.addLayout(self._legend)

    def show_slices(self, slices: Sequence[Slice], *, hatched: bool = False) -> None:
        """Replace the parts, hatched where the times are not the program's."""
        self._bar.show_slices(slices, hatched=hatched)
        while (item := self._legend.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.deleteLater()
        for part in slices:
            self._legend.addWidget(self._entry(part))

    def _entry(self, part: Slice) -> QWidget:
        entry = QWidget()
        layout = QHBoxLayout(entry)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addWidget(_Swatch(self._theme, part.word))
        layout.addWidget(self._button(part))
        return entry

    def _button(self, part: Slice) -> QPushButton:
        share = "" if part.share is None else format_share(part.share)
        button = PushButton(f"{part.word}  {part.text}  {share}".rstrip())
        set_role(button, "link", "true")
        of_method = f", {share} of the method" if share else ""
        button.setAccessibleName(f"{part.word} {part.text}{of_method}")
        meaning = definition(f"time in {part.word}") or definition(part.word)
        exact = f"{part.exact}, mean over the steady runs. Show in {part.view}"
        button.setToolTip("\n".join(filter(None, (meaning, exact))))
        button.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        button.clicked.connect(lambda: self.chosen.emit(part.view))
        return button


def paint_part(painter: QPainter, box: QRectF, word: str, theme: Theme) -> None:
    """Draw the background of a part; unattributed time is hatched."""
    palette = theme.palette
    if word == "unattributed":
        painter.fillRect(box, QColor(palette.hover))
        brush = QBrush(QColor(palette.muted), Qt.BrushStyle.BDiagPattern)
        painter.fillRect(box, brush)
        return
    colours = {
        "delegates": palette.accent,
        "operators": palette.plain_edge,
        "control": palette.muted,
    }
    painter.fillRect(box, QColor(colours.get(word, palette.muted)))


class _Bar(QWidget):
    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._slices: tuple[Slice, ...] = ()
        self._hatched = False
        self.setFixedHeight(_BAR)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        set_accessible_role(self, QAccessible.Role.Chart)
        self.setAccessibleName("Parts of the time of the method")
        theme.changed.connect(self.update)

    def show_slices(self, slices: Sequence[Slice], *, hatched: bool) -> None:
        self._slices, self._hatched = tuple(slices), hatched
        text = (
            f"{part.word} {part.text}"
            + ("" if part.share is None else f", {format_share(part.share)}")
            for part in slices
        )
        self.setAccessibleDescription("; ".join(text))
        self.update()

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            total = sum(max(0.0, part.nanoseconds) for part in self._slices)
            at, width = 0.0, float(self.width())
            for part in self._slices:
                share = max(0.0, part.nanoseconds) / total if total else 0.0
                box = QRectF(at, 0.0, share * width, self.height())
                paint_part(painter, box, part.word, self._theme)
                if self._hatched:
                    muted = QColor(self._theme.palette.raised)
                    painter.fillRect(box, QBrush(muted, Qt.BrushStyle.FDiagPattern))
                at += share * width
                # a seam, so that neighbours are distinguishable without colour
                if at < width - 0.5:
                    painter.setPen(QPen(QColor(self._theme.palette.raised), 1.5))
                    painter.drawLine(QPointF(at, 0.0), QPointF(at, float(self.height())))


class _Swatch(QWidget):
    def __init__(self, theme: Theme, word: str) -> None:
        super().__init__()
        self._theme = theme
        self._word = word
        self.setFixedSize(_SWATCH + 2, _SWATCH)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            paint_part(painter, QRectF(0, 0, _SWATCH, _SWATCH), self._word, self._theme)
