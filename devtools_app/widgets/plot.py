"""Common parts of all plots: title, message when empty, hover text, selection, zoom.

pyqtgraph is imported in a thread, so that the first plot does not block the window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QPointF, QSize, Qt, QTimer
from PySide6.QtGui import (
    QAccessible,
    QColor,
    QFocusEvent,
    QKeyEvent,
    QMouseEvent,
    QPalette,
    QResizeEvent,
    QShowEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QHBoxLayout, QLabel, QToolTip, QVBoxLayout, QWidget
from typing_extensions import override

from devtools_app.appearance.theme import FontSize, Theme
from devtools_app.jobs.gui_thread import gui_thread
from devtools_app.jobs.imports import import_later
from devtools_app.widgets.accessible import announce, set_accessible_role
from devtools_app.widgets.elided_label import ElidedLabel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from devtools_app.widgets.chart import Chart

_CHART = "devtools_app.widgets.chart"
_RETRY = 15  # ms between two looks whether pyqtgraph is there
_DRAG = 4  # pixels before a press becomes a drag
_WHEEL = 1.0015  # per eighth of a degree: one notch (120) zooms by 1.2
_ZOOM = 1.3
_MARGIN = 10
NOTHING = -1
_STEPS: dict[int, int] = {
    Qt.Key.Key_Right: 1,
    Qt.Key.Key_Left: -1,
    Qt.Key.Key_Up: 1,
    Qt.Key.Key_Down: -1,
}
_ROW_STEPS: dict[int, int] = {**_STEPS, Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}
_NEARER = (Qt.Key.Key_Plus, Qt.Key.Key_Equal)


class Plot(QWidget):
    """A plot; a subclass draws it and provides its points.

    Attributes:
        zoom_axes: axes on which wheel, drag, plus, minus and Space work: x, y, xy or none
        ground: background role of the palette
        as_table: where a table has the same facts
        as_rows: whether its points are in the order of the rows of a table, so that the arrow down
            leads to the next one
    """

    zoom_axes = ""
    as_table = ""
    as_rows = False
    ground = "raised"

    def __init__(self, theme: Theme, name: str) -> None:
        super().__init__()
        self.theme = theme
        self._chart: Chart | None = None
        self._drawn = self._moved = False
        self._stale = False  # changed while it was not seen
        self._press: QPointF | None = None
        self._dragged = False
        self._hint = QSize(400, 240)
        self.title, self.note, self.message = ElidedLabel(), QLabel(), QLabel()
        self._layout = QVBoxLayout(self)
        self._wait = QTimer(self, singleShot=True, interval=_RETRY)
        self._wait.timeout.connect(self.redraw)
        self._resized = QTimer(self, singleShot=True, interval=0)  # often, as panels slide in
        self._resized.timeout.connect(self._draw_in_turn)
        self._in_turn = False
        set_accessible_role(self, QAccessible.Role.Chart)
        self.setMouseTracking(True)
        self.setAutoFillBackground(True)
        self.setAccessibleName(name)
        self._lay_out()
        theme.follow(self._restyle)
        self._restyle()

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.setContentsMargins(_MARGIN, 4, _MARGIN, 0)
        head.addWidget(self.title, 1)
        head.addWidget(self.note)
        self.head = head
        self.message.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.message.setWordWrap(True)
        self.message.setMargin(_MARGIN)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(0)
        self._layout.addLayout(head)
        self._layout.addWidget(self.message, 1)
        for label in (self.title, self.note, self.message):
            label.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
            label.hide()

    def _restyle(self) -> None:
        palette, roles = self.theme.palette, self.palette()
        roles.setColor(QPalette.ColorRole.Window, QColor(getattr(palette, self.ground)))
        self.setPalette(roles)
        for label, colour in (
            (self.title, palette.text),
            (self.note, palette.muted),
            (self.message, palette.muted),
        ):
            roles = label.palette()
            roles.setColor(QPalette.ColorRole.WindowText, QColor(colour))
            label.setPalette(roles)
            label.setFont(self.theme.sans(FontSize.SMALL))
        self.redraw()

    # ---- what a subclass overrides
    def is_empty(self) -> bool:
        """Return whether the plot is empty; the message is shown then."""
        return True

    def draw(self, chart: Chart) -> None:
        """Draw into an empty chart: first its range, then axes and items."""

    def draw_axes(self, chart: Chart) -> None:
        """Draw what depends on the visible range; called again after each zoom and pan."""

    def pick(self, at: QPointF) -> int:
        """Return the number of the point at a pixel, or NOTHING."""
        return NOTHING

    def hover_text(self, number: int) -> str:
        """Return the hover text of a point."""
        return ""

    def choose(self, number: int) -> None:
        """Handle the selection of a point."""

    def activate(self, number: int) -> None:
        """Open a double-clicked point."""

    def step(self, by: int) -> bool:
        """Select the next point to the right (1) or left (-1); return whether it exists."""
        return False

    # ---- drawing
    @property
    def chart(self) -> Chart | None:
        """Return the surface, or None before the first drawing."""
        return self._chart if self._drawn else None

    @property
    def waiting(self) -> bool:
        """Return whether drawing waits, for the import of pyqtgraph or for other events."""
        return self._wait.isActive() or self._resized.isActive() or self._in_turn

    def set_hint(self, width: int, height: int) -> None:
        """Set the preferred size."""
        self._hint = QSize(width, height)

    @override
    def sizeHint(self) -> QSize:
        return self._hint

    def show_message(self, text: str) -> None:
        """Set the message of the empty plot."""
        self.message.setText(text)
        if self.is_empty():
            self.setAccessibleDescription(text)
            self.redraw()

    def describe(self, text: str) -> None:
        """Describe the drawing, for screen readers; the table with the same facts is added."""
        shown = self.as_table and not self.is_empty()
        self.setAccessibleDescription(f"{text}. As a table: {self.as_table}" if shown else text)

    def read_out(self, number: int) -> None:
        """Have a point read out that was selected, if the plot has the keyboard."""
        if self.hasFocus():
            announce(self, self.hover_text(number).replace("\n", ", "))

    def redraw(self, *, whole: bool = False) -> None:
        """Redraw after changes of data, size or colours; once it is seen, if it is hidden.

        Args:
            whole: reset the zoom
        """
        self._moved = self._moved and not whole
        if self._chart is None and self.isVisible() and not self.is_empty():
            self._resized.start()  # a surface takes 15 ms, in an event of its own
        else:
            self._draw_if_seen()

    def _draw_in_turn(self) -> None:
        """Draw, or make the surface first: plots that appear together take turns."""
        if self._chart is None and not self.is_empty():
            self._in_turn = True
            gui_thread().post(self, self._take_turn)
        else:
            self._draw_if_seen()

    def _take_turn(self) -> None:
        self._in_turn = False
        self._draw_if_seen()

    def _draw_if_seen(self) -> None:
        self._stale = not self.isVisible()
        if not self._stale:
            self._draw()

    def _draw(self) -> None:
        self._stale = False
        self._resized.stop()
        empty = self.is_empty()
        self.message.setVisible(empty)
        for label in (self.title, self.note):
            label.setVisible(not empty and bool(label.text()))
        if self._chart is not None:
            self._chart.setVisible(not empty)
        chart = None if empty else self._surface()
        if chart is None:
            return
        before = chart.ranges if self._moved else None
        self._clear(chart)
        self._drawn = True
        self.draw(chart)
        if before is not None:
            chart.set_ranges(*before)
        self.draw_axes(chart)

    def _clear(self, chart: Chart) -> None:
        palette = self.theme.palette
        chart.begin(palette, self.theme.sans(FontSize.SMALL), getattr(palette, self.ground))

    def _surface(self) -> Chart | None:
        """Return the surface, or None before it is on the screen; then redraw is called.

        It waits until pyqtgraph is imported, and for the events that lay out a new surface: its
        axes do not know their room before, and to make one takes 15 ms.
        """
        if self._chart is None:
            if not import_later(_CHART):
                self._wait.start()
                return None
            from devtools_app.widgets.chart import Chart

            self._chart = Chart(self)
            self._layout.addWidget(self._chart, 1)
            self._clear(self._chart)
            self._chart.show()
            self._layout.activate()
            self._wait.start()
            return None
        return self._chart

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._layout.activate()
        if not self._stale:
            self._resized.start()

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._stale and self._chart is None:
            self._resized.start()  # a surface takes 15 ms, in an event of its own
        elif self._stale:
            self._draw()

    def pixel_of(self, x: float, y: float) -> QPointF:
        """Return the position of a point in pixels; requires a chart."""
        assert self._chart is not None
        return self._chart.place_of(x, y) + QPointF(self._chart.pos())

    def pixels_of(
        self, x: NDArray[np.float64], y: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the positions of points in pixels; requires a chart."""
        zero, one = self.pixel_of(0.0, 0.0), self.pixel_of(1.0, 1.0)
        across = zero.x() + x * (one.x() - zero.x())
        return across, zero.y() + y * (one.y() - zero.y())

    def value_at(self, at: QPointF) -> tuple[float, float]:
        """Return x and y of a pixel; requires a chart."""
        assert self._chart is not None
        x, y = self._chart.value_at(at - QPointF(self._chart.pos())).toTuple()
        return x, y

    # ---- zoom
    def fit(self) -> None:
        """Reset the zoom."""
        self.redraw(whole=True)

    def zoom(self, factor: float, at: QPointF | None = None) -> None:
        """Zoom in or out; the point at the pixel stays."""
        chart = self.chart
        if chart is not None and self.zoom_axes and not self.is_empty():
            here = QPointF(self.rect().center()) if at is None else at
            chart.zoom(factor, here - QPointF(chart.pos()), self.zoom_axes)
            self._moved = True
            self.draw_axes(chart)

    # ---- the user
    @override
    def wheelEvent(self, event: QWheelEvent) -> None:
        if not self.zoom_axes or self.is_empty():
            super().wheelEvent(event)
            return
        self.zoom(_WHEEL ** event.angleDelta().y(), event.position())
        event.accept()

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton:
            self._press, self._dragged = event.position(), False

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        at, press, chart = event.position(), self._press, self.chart
        if press is None or not self.zoom_axes or chart is None:
            self._hover(event)
            return
        if self._dragged or (at - press).manhattanLength() >= _DRAG:
            self._dragged = self._moved = True
            chart.pan(at.x() - press.x(), at.y() - press.y(), self.zoom_axes)
            self.draw_axes(chart)
            self._press = at

    def _hover(self, event: QMouseEvent) -> None:
        number = NOTHING if self._no_chart() else self.pick(event.position())
        text = self.hover_text(number) if number != NOTHING else ""
        if text:
            QToolTip.showText(event.globalPosition().toPoint(), text, self)
        else:
            QToolTip.hideText()

    @override
    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        pressed, self._press = self._press, None
        if pressed is None or self._dragged or self._no_chart():
            return
        number = self.pick(event.position())
        if number != NOTHING:
            self.choose(number)

    @override
    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        number = NOTHING if self._no_chart() else self.pick(event.position())
        if number != NOTHING and event.button() is Qt.MouseButton.LeftButton:
            self.activate(number)

    def _no_chart(self) -> bool:
        return self.chart is None or self.is_empty()

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = event.key()
        if key in _STEPS:
            taken = self.step((_ROW_STEPS if self.as_rows else _STEPS)[key])
        elif self.zoom_axes and key in (*_NEARER, Qt.Key.Key_Minus):
            self.zoom(_ZOOM if key in _NEARER else 1 / _ZOOM)
            taken = True
        elif self.zoom_axes and key == Qt.Key.Key_Space:
            self.fit()
            taken = True
        else:
            taken = False
        if not taken:
            super().keyPressEvent(event)

    @override
    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.redraw()

    @override
    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.redraw()

    @override
    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        QToolTip.hideText()
