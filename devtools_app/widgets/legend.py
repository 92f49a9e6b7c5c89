"""The legend card: what colours, borders, bars and hatching mean."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QBrush,
    QColor,
    QFontMetricsF,
    QKeyEvent,
    QLinearGradient,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from devtools_app.appearance.paint_theme import CanvasColours, mix, qcolor
from devtools_app.viewmodels.canvas_data import LegendEntry, Swatch
from devtools_app.widgets.message_strip import LEGEND_LINE

_ROW = 19.0
_RAMP_ROW = 46.0
_PAD = 11.0
_SWATCH = 12.0
_RAMP = 132
_LINE_RAMP = 72.0
_BOLDER = 1.1  # width of a heading for that of plain text
_PLAIN_WORDS = (Swatch.HEADING, Swatch.NOTE)
_GAP, _LINE_PAD = 20.0, 4.0  # between entries of a line, above and below it
_UNBOUNDED = 16777215  # the largest size of a widget in Qt
_SHARE = 0.22  # of the height of what it explains: of more, a line leaves words out
_MORE = LegendEntry("…", Swatch.NOTE)


class Legend(QWidget):
    """A small card over a canvas, or a line below one; transparent for the mouse.

    A line that would take much of the height leaves words out; a click or Space shows them all.

    Signals:
        turned: the user asked for all words, or for fewer

    Args:
        colours: the palette
        parent: the canvas below the card
        line: a line instead of a card
        strength: opacity of colours on the canvas background; also used for the swatches
    """

    turned = Signal()

    def __init__(
        self,
        colours: CanvasColours,
        parent: QWidget | None = None,
        *,
        line: bool = False,
        strength: float = 1.0,
    ) -> None:
        super().__init__(parent)
        self._strength = strength
        self._colours = colours
        self._line = line
        self._whole = False  # whether the user asked for all words
        self._entries: tuple[LegendEntry, ...] = ()
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setAccessibleName("Legend")
        self._name()
        self.setVisible(False)
        self._watch()

    def set_entries(self, entries: Sequence[LegendEntry]) -> None:
        """Show other entries; hide an empty legend."""
        self._entries = tuple(entries)
        self.setAccessibleDescription(", ".join(map(_words, entries)))
        self.setVisible(bool(entries))
        self._fit()

    def set_line(self, line: bool) -> None:
        """Show a line instead of a card, or the other way round."""
        if line != self._line:
            self._line = line
            self._name()
            self.setMinimumSize(0, 0)
            self.setMaximumSize(_UNBOUNDED, _UNBOUNDED)
            self._fit()

    def set_colours(self, colours: CanvasColours) -> None:
        """Use another palette."""
        self._colours = colours
        self._fit()

    def _name(self) -> None:
        self.setObjectName(LEGEND_LINE if self._line else "")

    def _fit(self) -> None:
        if self._line:
            self.setFixedHeight(self.heightForWidth(self.width()))
        else:
            self.resize(self.sizeHint())
        self._answer(self._line and self._is_cut())
        self.update()

    def _answer(self, on: bool) -> None:
        """Take clicks and the keyboard where words are left out."""
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents, not on)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus if on else Qt.FocusPolicy.NoFocus)
        self.setToolTip(
            f"{self.accessibleDescription()}\nA click shows all, or less." if on else ""
        )

    def _is_cut(self) -> bool:
        """Return whether a line has no room for all words."""
        wide = self.width() / self._colours.scale
        seen = shortened(self._entries, self._colours, wide, self._lines())
        return bool(seen) and seen[-1] is _MORE

    def _lines(self) -> int:
        """Return how many lines there is room for."""
        around = self.parentWidget()
        if around is None:
            return len(self._entries)
        return max(1, int(_SHARE * around.height() / (_ROW * self._colours.scale)))

    def _seen(self, width: float) -> Sequence[LegendEntry]:
        """Return the entries that a line of a width shows."""
        if self._whole:
            return self._entries
        return shortened(self._entries, self._colours, width, self._lines())

    def turn(self) -> None:
        """Show all words, or as many as there is room for."""
        self._whole = not self._whole
        self._fit()
        self.turned.emit()

    def _watch(self) -> None:
        around = self.parentWidget()
        if around is not None:
            around.installEventFilter(self)

    @override
    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ParentChange:
            self._watch()
        return super().event(event)

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if self._line and watched is self.parent() and event.type() == QEvent.Type.Resize:
            self._fit()
        return super().eventFilter(watched, event)

    @override
    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if self.rect().contains(event.position().toPoint()):
            self.turn()

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        event.accept()

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.turn()
        else:
            super().keyPressEvent(event)

    @override
    def sizeHint(self) -> QSize:
        if self._line:
            return QSize(_RAMP, self.heightForWidth(self.width()))
        return legend_size(self._entries, self._colours) * self._colours.scale

    @override
    def heightForWidth(self, width: int) -> int:
        scale = self._colours.scale
        wide = width / scale
        lines = line_places(self._seen(wide), self._colours, wide)
        return round(scale * ((lines[-1][1] if lines else 0.0) + _ROW + 2 * _LINE_PAD))

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._line and event.size().width() != event.oldSize().width():
            self._fit()

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            self.paint(painter)

    def paint(self, painter: QPainter) -> None:
        """Draw the card or the line with its upper left corner at the origin."""
        scale = self._colours.scale
        painter.scale(scale, scale)
        if self._line:
            wide = self.width() / scale
            paint_line(painter, self._seen(wide), self._colours, wide, self._strength)
        elif self._entries:
            paint_legend(painter, self._entries, self._colours)


def line_places(
    entries: Sequence[LegendEntry], colours: CanvasColours, width: float
) -> list[tuple[float, float]]:
    """Return the position of each entry in lines of a width."""
    metrics = QFontMetricsF(colours.sized(12))
    found: list[tuple[float, float]] = []
    x, y = _PAD, 0.0
    for entry in entries:
        needed = _entry_width(entry, metrics, line=True)
        if x > _PAD and x + needed > width - _PAD:
            x, y = _PAD, y + _ROW
        found.append((x, y))
        x += needed + _GAP
    return found


def shortened(
    entries: Sequence[LegendEntry], colours: CanvasColours, width: float, lines: int
) -> Sequence[LegendEntry]:
    """Return the entries for a number of lines, with a mark behind them if some are left out.

    Swatches all stay. Remarks are left out first, then headings, of each the last ones first.
    """

    def fit(some: Sequence[LegendEntry]) -> bool:
        places = line_places(some, colours, width)
        return not places or places[-1][1] < lines * _ROW

    kept = list(entries)
    for kind in reversed(_PLAIN_WORDS):
        for entry in [one for one in reversed(entries) if one.swatch is kind]:
            if fit(kept if len(kept) == len(entries) else [*kept, _MORE]):
                break
            kept = _without_idle_headings([one for one in kept if one is not entry])
    return kept if len(kept) == len(entries) else [*kept, _MORE]


def _without_idle_headings(entries: Sequence[LegendEntry]) -> list[LegendEntry]:
    """Return the entries but for headings of nothing."""
    after = [*entries[1:], LegendEntry("", Swatch.HEADING)]
    pairs = zip(entries, after, strict=True)
    heading = Swatch.HEADING
    return [one for one, then in pairs if one.swatch is not heading or then.swatch is not heading]


def paint_line(
    painter: QPainter,
    entries: Sequence[LegendEntry],
    colours: CanvasColours,
    width: float,
    strength: float = 1.0,
) -> None:
    """Draw the entries one after the other."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    font = colours.sized(12)
    metrics = QFontMetricsF(font)
    painter.setFont(font)
    for entry, (x, y) in zip(entries, line_places(entries, colours, width), strict=True):
        top = y + _LINE_PAD
        baseline = top + (_ROW + metrics.ascent() - metrics.descent()) / 2
        painter.setPen(qcolor(colours.muted))
        if entry.swatch in _PLAIN_WORDS:
            painter.setPen(qcolor(_word_colour(entry, colours)))
            painter.drawText(QPointF(x, baseline), fitting(_line_label(entry), metrics, width - x))
            continue
        if entry.swatch is Swatch.RAMP:
            _paint_line_ramp(painter, entry, colours, QPointF(x, baseline), metrics)
            continue
        _paint_swatch(painter, entry, colours, QRectF(x, top + 3.5, _SWATCH, _SWATCH), strength)
        painter.setPen(qcolor(colours.muted))
        left = x + _SWATCH + 8
        painter.drawText(QPointF(left, baseline), fitting(entry.label, metrics, width - left))


def fitting(text: str, metrics: QFontMetricsF, room: float) -> str:
    """Return a text cut at its end, with a sign, where it is wider than the line."""
    return metrics.elidedText(text, Qt.TextElideMode.ElideRight, max(room - _PAD / 2, 0.0))


def legend_size(entries: Sequence[LegendEntry], colours: CanvasColours) -> QSize:
    """Return the size of the card for some entries."""
    metrics = QFontMetricsF(colours.sized(12))
    widths = [_entry_width(entry, metrics) for entry in entries]
    height = sum(_row_height(entry) for entry in entries)
    return QSize(round(max(widths, default=0.0) + 2 * _PAD), round(height + 2 * _PAD - 4))


def _row_height(entry: LegendEntry) -> float:
    if entry.swatch is Swatch.RAMP:
        return _RAMP_ROW if entry.label else _RAMP_ROW - _ROW + 3
    return _ROW


def _word_colour(entry: LegendEntry, colours: CanvasColours) -> str:
    return colours.text if entry.swatch is Swatch.HEADING else colours.muted


def _words(entry: LegendEntry) -> str:
    """Return an entry as text, for those who do not see it."""
    ends = f"{entry.low} to {entry.high}" if entry.swatch is Swatch.RAMP else ""
    return " ".join(filter(None, (entry.label, ends)))


def _line_label(entry: LegendEntry) -> str:
    return f"{entry.label}:" if entry.swatch is Swatch.HEADING else entry.label


def _entry_width(entry: LegendEntry, metrics: QFontMetricsF, *, line: bool = False) -> float:
    text = metrics.horizontalAdvance(entry.label)
    if entry.swatch in _PLAIN_WORDS:
        return metrics.horizontalAdvance(_line_label(entry)) if line else text * _BOLDER
    if entry.swatch is Swatch.RAMP and line:
        words = [word for word in (entry.label, entry.low, entry.high) if word]
        return sum(metrics.horizontalAdvance(word) + 6 for word in words) + _LINE_RAMP
    if entry.swatch is Swatch.RAMP:
        ends = metrics.horizontalAdvance(entry.low) + metrics.horizontalAdvance(entry.high)
        return max(text, _RAMP, ends + 16)
    return _SWATCH + 8 + text


def paint_legend(painter: QPainter, entries: Sequence[LegendEntry], colours: CanvasColours) -> None:
    """Draw a legend card with its upper left corner at the origin."""
    size = legend_size(entries, colours)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(qcolor(colours.line), 1))
    painter.setBrush(qcolor(colours.raised, 0.96))
    painter.drawRoundedRect(QRectF(0.5, 0.5, size.width() - 1, size.height() - 1), 4, 4)
    font = colours.sized(12)
    metrics = QFontMetricsF(font)
    painter.setFont(font)
    y = _PAD - 2
    for entry in entries:
        if entry.swatch is Swatch.RAMP:
            below = y if entry.label else y - _ROW + 3
            _paint_ramp(painter, entry, colours, below, size.width() - 2 * _PAD)
            y += _row_height(entry)
            continue
        baseline = y + (_ROW + metrics.ascent() - metrics.descent()) / 2
        if entry.swatch in _PLAIN_WORDS:
            painter.setPen(qcolor(_word_colour(entry, colours)))
            painter.setFont(colours.sized(12, bold=entry.swatch is Swatch.HEADING))
            painter.drawText(QPointF(_PAD, baseline), entry.label)
            painter.setFont(font)
            y += _ROW
            continue
        _paint_swatch(painter, entry, colours, QRectF(_PAD, y + 3.5, _SWATCH, _SWATCH))
        painter.setPen(qcolor(colours.text))
        painter.drawText(QPointF(_PAD + _SWATCH + 8, baseline), entry.label)
        y += _ROW


def _paint_swatch(
    painter: QPainter,
    entry: LegendEntry,
    colours: CanvasColours,
    box: QRectF,
    strength: float = 1.0,
) -> None:
    fill, border, width = _swatch_look(entry, colours, strength)
    painter.setPen(QPen(qcolor(border), width))
    painter.setBrush(fill)
    if entry.swatch is Swatch.GHOST:
        painter.setPen(QPen(qcolor(border), width, Qt.PenStyle.DashLine))
    painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), 2, 2)
    if entry.swatch in (Swatch.STRIPE, Swatch.STRIPE_OUTSIDE):
        painter.fillRect(QRectF(box.x() + 1, box.y() + 1, 4, box.height() - 2), qcolor(border))
    elif entry.swatch is Swatch.BAR:  # in a box, as the graph has it; on dark boxes it is light
        bar = QRectF(box.x() + 2, box.bottom() - 5, 0.6 * (box.width() - 4), 3)
        painter.fillRect(bar, qcolor(colours.accent))


def _swatch_look(
    entry: LegendEntry, colours: CanvasColours, strength: float
) -> tuple[QBrush, str, float]:
    """Return fill, border colour and border width."""
    own = colours.reference(entry.colour)
    painted = mix(colours.surface, own, strength)
    quiet = mix(colours.line, colours.muted, 0.25)
    looks = {
        Swatch.REGION: (mix(colours.surface, own, 0.2), own, 1.7),
        Swatch.FILL: (painted, painted, 1.0),
        Swatch.OUTLINE: (
            mix(colours.raised, colours.not_delegated, 0.13),
            colours.not_delegated,
            1.7,
        ),
        Swatch.PLAIN: (colours.raised, quiet, 1.0),
        Swatch.GHOST: (colours.surface, colours.muted, 1.0),
        Swatch.STRIPE: (colours.raised, own, 1.4),
        Swatch.STRIPE_OUTSIDE: (colours.raised, colours.not_delegated, 1.7),
        Swatch.BAR: (colours.raised, quiet, 1.0),
        Swatch.RING: (mix(colours.raised, colours.warn, 0.18), colours.warn, 2.0),
    }
    if entry.swatch is Swatch.HATCH:
        return QBrush(qcolor(colours.muted), Qt.BrushStyle.BDiagPattern), quiet, 1.0
    fill, border, width = looks[entry.swatch]
    return QBrush(qcolor(fill)), border, width


def _paint_line_ramp(
    painter: QPainter,
    entry: LegendEntry,
    colours: CanvasColours,
    at: QPointF,
    metrics: QFontMetricsF,
) -> None:
    """Draw a ramp between its ends, in a line of text."""
    x = at.x()
    for word in (entry.label, entry.low):
        if word:
            painter.drawText(QPointF(x, at.y()), word)
            x += metrics.horizontalAdvance(word) + 6
    painter.fillRect(QRectF(x, at.y() - 8, _LINE_RAMP, 9), _gradient(entry, colours, x, _LINE_RAMP))
    painter.drawText(QPointF(x + _LINE_RAMP + 6, at.y()), entry.high)


def _gradient(entry: LegendEntry, colours: CanvasColours, x: float, width: float) -> QBrush:
    chosen = colours.diverging if entry.diverging else colours.sequential
    gradient = QLinearGradient(x, 0, x + width, 0)
    for step in range(17):
        red, green, blue = chosen[step * 255 // 16].tolist()
        gradient.setColorAt(step / 16, QColor(red, green, blue))
    return QBrush(gradient)


def _paint_ramp(
    painter: QPainter, entry: LegendEntry, colours: CanvasColours, y: float, width: float
) -> None:
    painter.setPen(QPen(qcolor(colours.line), 1))
    painter.setBrush(_gradient(entry, colours, _PAD, width))
    painter.drawRect(QRectF(_PAD, y + 18, width, 9))
    painter.setPen(qcolor(colours.text))
    painter.drawText(QPointF(_PAD, y + 13), entry.label)
    right = int(Qt.AlignmentFlag.AlignRight)
    painter.drawText(QPointF(_PAD, y + 41), entry.low)
    painter.drawText(QRectF(_PAD, y + 29, width, 16), right, entry.high)
