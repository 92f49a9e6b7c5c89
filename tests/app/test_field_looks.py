"""Boxes with arrows look like the fields beside them, in every look and text size."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtGui import QColor, QImage
from PySide6.QtWidgets import QApplication, QHBoxLayout, QLineEdit, QWidget

from devtools_app.appearance.look import ThemeMode
from devtools_app.appearance.theme import Theme
from devtools_app.widgets.fields import ComboBox, DoubleSpinBox, NarrowComboBox, SpinBox

pytestmark = pytest.mark.gui


def fields() -> list[QWidget]:
    editable, plain, narrow, count = ComboBox(), ComboBox(), NarrowComboBox(8), SpinBox()
    editable.setEditable(True)
    for box in (editable, plain, narrow):
        box.addItems(["first", "second"])
    return [plain, editable, narrow, count, DoubleSpinBox(), QLineEdit("text")]


def shown(qtbot, boxes: list[QWidget]) -> QWidget:
    row = QWidget()
    qtbot.addWidget(row)
    layout = QHBoxLayout(row)
    for box in boxes:
        layout.addWidget(box)
    row.show()
    QApplication.processEvents()
    return row


def pixel(image: QImage, at: QPoint) -> str:
    ratio = image.devicePixelRatio()
    return image.pixelColor(int(at.x() * ratio), int(at.y() * ratio)).name()


def left_edge(box: QWidget) -> str:
    """Return the colour in the middle of the left border."""
    return pixel(box.grab().toImage(), QPoint(0, box.height() // 2))


@pytest.mark.parametrize("size", [11, 13, 16, 26])
def test_fields_of_a_row_are_equally_high(qtbot, theme: Theme, size: int) -> None:
    usual = theme.size
    try:
        theme.set_size(size)
        boxes = fields()
        row = shown(qtbot, boxes)
        qtbot.waitUntil(lambda: not theme.busy)
        assert row.isVisible()
        heights = [box.sizeHint().height() for box in boxes]
        assert max(heights) - min(heights) <= 1
    finally:
        theme.set_size(usual)


@pytest.mark.parametrize("mode", [ThemeMode.LIGHT, ThemeMode.DARK])
def test_fields_have_one_border(qtbot, theme: Theme, mode: ThemeMode) -> None:
    try:
        theme.set_mode(mode)
        boxes = fields()
        row = shown(qtbot, boxes)
        qtbot.waitUntil(lambda: not theme.busy)
        row.setFocus()
        edge = QColor(theme.palette.edge).name()
        assert [left_edge(box) for box in boxes] == [edge] * len(boxes)
        row.activateWindow()
        for box in boxes:
            box.setFocus()
            QApplication.processEvents()
            if QApplication.focusWidget() is not None:
                assert left_edge(box) == QColor(theme.palette.accent).name(), box
    finally:
        theme.set_mode(ThemeMode.LIGHT)


def ink(box: QWidget, left: int, right: int) -> list[int]:
    """Return the columns of a field, inside of its border, that have something on the ground."""
    image = box.grab().toImage()
    ground = image.pixelColor(image.width() // 2, 3).name()
    places = range(left, right)
    return [
        x
        for x in places
        if any(image.pixelColor(x, y).name() != ground for y in range(4, image.height() - 4))
    ]


def test_texts_of_fields_begin_at_one_place(qtbot, theme: Theme) -> None:
    boxes = fields()
    editable = boxes[1]
    for box in boxes[:3]:
        box.setItemText(0, "|")
    boxes[3].setPrefix("|")
    boxes[4].setPrefix("|")
    boxes[5].setText("|")
    row = shown(qtbot, boxes)
    row.setFocus()
    QApplication.processEvents()
    assert editable.lineEdit().text() == "|"
    begins = [ink(box, 3, 30)[0] for box in boxes]
    assert max(begins) - min(begins) <= 2


def test_choice_without_a_value_shows_its_hint(qtbot, theme: Theme) -> None:
    box = ComboBox()
    box.addItems(["first", "second"])
    box.setPlaceholderText("Add…")
    box.setCurrentIndex(-1)
    box.setMinimumWidth(160)
    row = shown(qtbot, [box])
    row.setFocus()
    hinted = ink(box, 4, 60)
    assert hinted
    box.setPlaceholderText("Add the name of a partitioner…")
    assert len(ink(box, 4, 140)) > len(hinted)


def test_arrow_that_does_nothing_is_faint(qtbot, theme: Theme) -> None:
    box = SpinBox()
    box.setRange(0, 5)
    row = shown(qtbot, [box])
    assert row.isVisible()

    def darkest(top: float, bottom: float) -> int:
        image = box.grab().toImage()
        high, wide = image.height(), image.width()
        places = [
            (x, y)
            for x in range(wide - 16, wide - 3)
            for y in range(int(high * top) + 3, int(high * bottom) - 3)
        ]
        return min(image.pixelColor(*place).lightness() for place in places)

    assert darkest(0.0, 0.5) < darkest(0.5, 1.0)
    box.setValue(5)
    assert darkest(0.0, 0.5) > darkest(0.5, 1.0)
