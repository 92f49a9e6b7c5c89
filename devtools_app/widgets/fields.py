"""Controls with the habits people expect: the wheel scrolls, Return presses.

Qt's wheel changes the box or the tabs under the pointer, also while a form is scrolled over them,
and its buttons take only Space outside of dialogs. Boxes with arrows look like the fields beside
them: a style sheet could only do that with files of images for the arrows.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QPointF, QRect, QSize, Qt
from PySide6.QtGui import (
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QPen,
    QPolygonF,
    QWheelEvent,
)
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QComboBox,
    QDoubleSpinBox,
    QLineEdit,
    QPushButton,
    QSpinBox,
    QStyle,
    QStyleOptionComboBox,
    QStyleOptionSpinBox,
    QTabBar,
    QToolButton,
    QWidget,
)
from typing_extensions import override

_ROUND = 4.0  # radius of the corners, as in the style sheet
_INDENT = 3  # pixels by which the text begins further inside than Qt has it
_ABOVE = 10  # pixels of border and padding of a field, above and below its text
_ARROW = ((-3.5, -2.0), (3.5, -2.0), (0.0, 2.8))  # corners, downwards, around the middle


def paint_field(painter: QPainter, box: QWidget, *, hover: bool = False) -> None:
    """Paint the ground and the border of a field."""
    colours, role = box.palette(), QPalette.ColorRole
    focused = box.hasFocus() or (box.focusProxy() or box) is box.window().focusWidget()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    edge = role.Accent if focused else role.Mid if box.isEnabled() else role.Midlight
    painter.setPen(QPen(colours.color(edge), 1.0))
    painter.setBrush(colours.color(role.Light if hover else role.Base))
    inner = box.rect().toRectF().adjusted(0.5, 0.5, -0.5, -0.5)
    painter.drawRoundedRect(inner, _ROUND, _ROUND)


def paint_arrow(painter: QPainter, box: QWidget, place: QRect, *, up: bool, on: bool) -> None:
    """Paint an arrow in the middle of a place, faint where it does nothing."""
    role = QPalette.ColorRole
    shape = QPolygonF([QPointF(x, -y if up else y) for x, y in _ARROW])
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(box.palette().color(role.PlaceholderText if on else role.Midlight))
    painter.drawPolygon(shape.translated(place.toRectF().center()))


def _indent(line: QLineEdit | None) -> None:
    if line is not None:
        line.setTextMargins(_INDENT, 0, 0, 0)


def _as_high_as_a_field(box: QWidget, hint: QSize) -> QSize:
    return QSize(hint.width(), max(hint.height(), box.fontMetrics().height() + _ABOVE))


class _NoWheel(QObject):
    """Leaves the wheel over a widget that Qt has made to what is around it."""

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() is not QEvent.Type.Wheel:
            return super().eventFilter(watched, event)
        event.ignore()
        return True


def leave_wheel(tabs: QTabBar) -> None:
    """Keep the wheel from changing the tab, as Qt does wherever the pointer is in the row."""
    if tabs.findChild(_NoWheel) is None:
        tabs.installEventFilter(_NoWheel(tabs))


class ComboBox(QComboBox):
    """A combo box without the wheel; that of its open list works."""

    def __init__(self) -> None:
        super().__init__()
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)  # Qt gives it to what the wheel is over

    @override
    def wheelEvent(self, e: QWheelEvent) -> None:
        e.ignore()

    @override
    def setEditable(self, editable: bool) -> None:
        super().setEditable(editable)
        _indent(self.lineEdit())

    @override
    def sizeHint(self) -> QSize:
        return _as_high_as_a_field(self, super().sizeHint())

    @override
    def paintEvent(self, e: QPaintEvent) -> None:
        option = QStyleOptionComboBox()
        self.initStyleOption(option)
        control, parts = QStyle.ComplexControl.CC_ComboBox, QStyle.SubControl
        place = self.style().subControlRect(control, option, parts.SC_ComboBoxArrow, self)
        with QPainter(self) as painter:
            paint_field(painter, self, hover=self.underMouse() and self.isEnabled())
            paint_arrow(painter, self, place, up=False, on=self.isEnabled())
            if not self.isEditable():
                option.rect.translate(_INDENT, 0)
                if self.currentIndex() < 0 and self.placeholderText():
                    quiet = option.palette.placeholderText()
                    option.palette.setBrush(QPalette.ColorRole.ButtonText, quiet)
                    option.currentText = self.placeholderText()
                label = QStyle.ControlElement.CE_ComboBoxLabel
                self.style().drawControl(label, option, painter, self)


class NarrowComboBox(ComboBox):
    """A combo box with room for a few letters, however long its entries are.

    Qt's own policy for this makes the list of each box when the box is made, which takes longer
    than all of the rest.
    """

    def __init__(self, letters: int) -> None:
        super().__init__()
        self._letters = letters

    @override
    def sizeHint(self) -> QSize:
        metrics, option = self.fontMetrics(), QStyleOptionComboBox()
        self.ensurePolished()
        self.initStyleOption(option)
        room = QSize(self._letters * metrics.horizontalAdvance("X"), max(metrics.height(), 14) + 2)
        kind = QStyle.ContentsType.CT_ComboBox
        hint = self.style().sizeFromContents(kind, option, room, self)
        return _as_high_as_a_field(self, hint)

    @override
    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()


def _paint_spin_box(box: QAbstractSpinBox, option: QStyleOptionSpinBox) -> None:
    control, parts = QStyle.ComplexControl.CC_SpinBox, QStyle.SubControl
    enabled, steps = box.isEnabled(), QAbstractSpinBox.StepEnabledFlag
    ways = (
        (parts.SC_SpinBoxUp, steps.StepUpEnabled, True),
        (parts.SC_SpinBoxDown, steps.StepDownEnabled, False),
    )
    with QPainter(box) as painter:
        paint_field(painter, box)
        for part, step, up in ways:
            place = box.style().subControlRect(control, option, part, box)
            on = enabled and bool(option.stepEnabled & step)
            paint_arrow(painter, box, place, up=up, on=on)


class SpinBox(QSpinBox):
    """A spin box without the wheel."""

    def __init__(self) -> None:
        super().__init__()
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        _indent(self.lineEdit())

    @override
    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()

    @override
    def sizeHint(self) -> QSize:
        return _as_high_as_a_field(self, super().sizeHint())

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        option = QStyleOptionSpinBox()
        self.initStyleOption(option)
        _paint_spin_box(self, option)


class DoubleSpinBox(QDoubleSpinBox):
    """A spin box of decimal numbers without the wheel."""

    def __init__(self) -> None:
        super().__init__()
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        _indent(self.lineEdit())

    @override
    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()

    @override
    def sizeHint(self) -> QSize:
        return _as_high_as_a_field(self, super().sizeHint())

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        option = QStyleOptionSpinBox()
        self.initStyleOption(option)
        _paint_spin_box(self, option)


_RETURN = (Qt.Key.Key_Return, Qt.Key.Key_Enter)


class PushButton(QPushButton):
    """A button that Return presses.

    Qt's automatic default buttons do that as well, but look like the most important one while
    they have the focus.
    """

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in _RETURN:
            self.click()
        else:
            super().keyPressEvent(event)


class ToolButton(QToolButton):
    """A button of a line of tools that Return presses."""

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in _RETURN:
            self.click()
        else:
            super().keyPressEvent(event)
