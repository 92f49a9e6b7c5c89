"""The memory view's canvas: address by instruction, with selection, mouse and keys."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from PySide6.QtCore import QPointF, QSize, Qt, Signal
from PySide6.QtGui import QMouseEvent, QPainter
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from devtools_app.appearance.paint_theme import CanvasColours
from devtools_app.viewmodels.canvas_data import MemoryData
from devtools_app.viewmodels.layout.camera import Camera
from devtools_app.widgets.canvas import NOTHING, KeyTable
from devtools_app.widgets.graph_canvas_text import TextCache
from devtools_app.widgets.memory_canvas_paint import (
    BOTTOM,
    LEFT,
    TOP,
    MemoryDrawing,
    MemoryMarks,
    highest,
    plot_size,
    screen_boxes,
)
from devtools_app.widgets.one_selected import OneSelected
from devtools_app.widgets.zoom_canvas import WHEEL, ZoomCanvas
from inspector.units import format_bytes

_HEADROOM = 1.06  # free space above the largest address
_NEAREST = 4096.0  # times nearer than the whole


class MemoryCanvas(OneSelected, ZoomCanvas):
    """Shows the values of one planned buffer in address and time.

    Attributes:
        selected: number of the value the user chose, -1 when it was deselected
        activated: number of the value that was double-clicked or confirmed by Enter
        hovered: number of the value under the pointer, -1 for none
        step_selected: step that the user chose on the axis below the plot
    """

    as_table = "the values of the plan, beside or below it"

    selected = Signal(int)
    activated = Signal(int)
    hovered = Signal(int)
    step_selected = Signal(int)

    def __init__(self, colours: CanvasColours, parent: QWidget | None = None) -> None:
        super().__init__(colours, "Memory plan", parent)
        self._data: MemoryData | None = None
        self._drawing: MemoryDrawing | None = None
        self._texts = TextCache()
        self._marks: MemoryMarks = MemoryMarks()
        self.clicked = NOTHING  # what the menu is of

    @property
    def data(self) -> MemoryData | None:
        """Return the plan shown."""
        return self._data

    @property
    def marks(self) -> MemoryMarks:
        """Return the marked items."""
        return self._marks

    def set_data(self, data: MemoryData | None) -> None:
        """Replace the plan; None clears it."""
        self._data = data
        self._marks = MemoryMarks()
        self._hovered = self._pressed_item = NOTHING
        self._prepare()
        self.fit()
        self.describe()

    def _prepare(self) -> None:
        data = self._data
        self._drawing = None
        if data is not None:
            self._drawing = MemoryDrawing(data, self.colours, self._texts)
        self.update()

    @override
    def colours_changed(self) -> None:
        self._texts.clear()
        self._prepare()

    @override
    def is_empty(self) -> bool:
        return self._data is None or not len(self._data.names)

    @override
    def drawn_summary(self) -> str:
        data = self._data
        if data is None:
            return ""
        text = (
            f"{len(data.names):,} values over {data.steps:,} steps, "
            f"planned {format_bytes(data.planned_bytes)}"
        )
        if data.peak_step is not None:
            text += f", peak {format_bytes(data.peak_bytes)} at {data.step_name} {data.peak_step}"
        return text

    # marks

    @override
    def choose_for_menu(self, at: QPointF) -> bool:
        self.clicked = self.hit(at)
        if self.clicked >= 0:
            self.hold()
        super().choose_for_menu(at)
        return not self.is_empty()

    @override
    def keys_open_menu(self) -> None:
        self.clicked = self._marks.selected

    def set_selected(self, value: int, *, show: bool = True) -> None:
        """Mark a value as selected without emitting `selected`; -1 removes the mark."""
        self._marks.selected = value
        if show and value >= 0:
            self._show_value(value)
        self.describe()
        self.update()

    def select(self, value: int) -> None:
        """Select a value and emit it."""
        self.set_selected(value)
        self.selected.emit(value)

    def set_step(self, step: int | None) -> None:
        """Mark a step without emitting a signal."""
        self._marks.step = step
        self.update()

    def _show_value(self, value: int) -> None:
        data = self._data
        if data is None:
            return
        width, height = plot_size(self.drawn_size)
        camera = self._camera
        x, end = float(data.first[value]), float(data.last[value]) + 1
        y, top = float(data.offset[value]), float(data.offset[value] + data.nbytes[value])
        if end < camera.x or x > camera.x + width / camera.sx:
            camera = replace(camera, x=(x + end) / 2 - width / 2 / camera.sx)
        if top < camera.y or y > camera.y + height / camera.sy:
            camera = replace(camera, y=(y + top) / 2 - height / 2 / camera.sy)
        if camera != self._camera:
            self.set_camera(camera)

    # camera

    @override
    def selected_left(self) -> float | None:
        data, value = self._data, self._marks.selected
        if data is None or value < 0:
            return None
        return LEFT + (float(data.first[value]) - self._camera.x) * self._camera.sx

    def _least(self, data: MemoryData) -> tuple[float, float]:
        """Return the scales at which the whole plan is seen."""
        width, height = plot_size(self.drawn_size)
        return width / max(data.steps, 1), height / (highest(data) * _HEADROOM)

    @override
    def whole(self) -> Camera:
        data = self._data
        return Camera(0.0, 0.0, *self._least(data)) if data is not None else self._camera

    @override
    def clamped(self, camera: Camera) -> Camera:
        data = self._data
        if data is None:
            return camera
        width, height = plot_size(self.drawn_size)
        least_x, least_y = self._least(data)
        sx = min(max(camera.sx, least_x), max(least_x * _NEAREST, least_x))
        sy = min(max(camera.sy, least_y), max(least_y * _NEAREST, least_y))
        x = min(max(camera.x, 0.0), max(data.steps - width / sx, 0.0))
        y = min(max(camera.y, 0.0), max(highest(data) * _HEADROOM - height / sy, 0.0))
        return Camera(x, y, sx, sy)

    @override
    def zoom(self, factor: float, at: QPointF | None = None, axes: str = "xy") -> None:
        """Zoom on both axes or one; the point under the pointer stays."""
        data = self._data
        if data is None:
            return
        width, height = plot_size(self.drawn_size)
        px = width / 2 if at is None else at.x() - LEFT
        up = height / 2 if at is None else TOP + height - at.y()
        camera, least = self._camera, self._least(data)
        sx = max(camera.sx * factor, least[0]) if "x" in axes else camera.sx
        sy = max(camera.sy * factor, least[1]) if "y" in axes else camera.sy
        x = camera.x + px / camera.sx - px / sx
        y = camera.y + up / camera.sy - up / sy
        self.set_camera(Camera(x, y, sx, sy))

    @override
    def pan(self, dx: float, dy: float) -> None:
        super().pan(dx, -dy)  # addresses grow upwards

    @override
    def focus_selection(self) -> None:
        data, value, before = self._data, self._marks.selected, self._camera
        if data is None or value < 0:
            self.fit()
            return
        width, height = plot_size(self.drawn_size)
        long = float(data.last[value] - data.first[value] + 1)
        large = max(float(data.nbytes[value]), 1.0)
        sx, sy = width / (long * 3), height / (large * 3)
        x, y = float(data.first[value]) - long, float(data.offset[value]) - large
        self.set_camera(Camera(x, y, sx, sy))
        if self._camera == before:
            self.fit()

    # painting and events

    @override
    def paint_content(self, painter: QPainter, size: QSize) -> None:
        if self._drawing is not None:
            self._drawing.paint(painter, size, self._camera, self._marks)

    @override
    def keys(self) -> KeyTable:
        key = Qt.Key
        return {
            **super().keys(),
            key.Key_Left: lambda: self._go(-1, 0),
            key.Key_Right: lambda: self._go(1, 0),
            key.Key_Up: lambda: self._go(0, 1),
            key.Key_Down: lambda: self._go(0, -1),
            key.Key_Comma: lambda: self._go(-1, 0),
            key.Key_Period: lambda: self._go(1, 0),
            key.Key_Return: self._activate,
            key.Key_Enter: self._activate,
        }

    def _go(self, along: int, up: int) -> None:
        """Select the value before or after in time, or below or above in address."""
        data, here = self._data, self._marks.selected
        if data is None:
            return
        if here < 0:
            self.select(int(np.lexsort((data.offset, data.first))[0]))
            return
        if along:
            order = np.lexsort((data.offset, data.first))
        else:
            live = (data.first <= data.last[here]) & (data.last >= data.first[here])
            rows = np.flatnonzero(live)
            order = rows[np.argsort(data.offset[rows], kind="stable")]
        at = int(np.flatnonzero(order == here)[0]) + (along or up)
        if 0 <= at < len(order):
            self.select(int(order[at]))

    def _activate(self) -> None:
        if self._marks.selected >= 0:
            self.activated.emit(self._marks.selected)

    @override
    def wheel(self, at: QPointF, dx: float, dy: float, *, shift: bool) -> None:
        over_addresses = at.x() < LEFT
        axes = "x" if shift else "y" if over_addresses else "xy"
        self.zoom(WHEEL ** (dy or dx), at, axes)

    @override
    def click(self, at: QPointF) -> None:
        data = self._data
        if data is None or at.y() <= self.drawn_size.height() - BOTTOM or at.x() < LEFT:
            value = self.hit(at)
            if value >= 0:
                self.hold()
            self.select(value)
            return
        step = int(self._camera.x + (at.x() - LEFT) / self._camera.sx)
        step = min(max(step, 0), max(data.steps - 1, 0))
        self.set_step(step)
        self.step_selected.emit(step)

    @override
    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if self._pressed_item >= 0:
            self.activated.emit(self._pressed_item)

    @override
    def hit(self, at: QPointF) -> int:
        """Return the number of the value at a point of the drawing; of several, the smallest."""
        data = self._data
        width, height = plot_size(self.drawn_size)
        inside = LEFT <= at.x() <= LEFT + width and TOP <= at.y() <= TOP + height
        if data is None or not inside:
            return -1
        boxes = screen_boxes(data, self._camera, self.drawn_size)
        hit = (boxes[:, 0] - 1 <= at.x()) & (at.x() <= boxes[:, 0] + boxes[:, 2] + 1)
        hit &= (boxes[:, 1] - 1 <= at.y()) & (at.y() <= boxes[:, 1] + boxes[:, 3] + 1)
        found = np.flatnonzero(hit)
        if not len(found):
            return -1
        return int(found[np.argmin(boxes[found, 2] * boxes[found, 3])])

    @override
    def hover_text(self, item: int) -> str:
        """Return name, size, location and lifetime of a value."""
        data = self._data
        if data is None:
            return ""
        size, offset = int(data.nbytes[item]), int(data.offset[item])
        first, last = int(data.first[item]), int(data.last[item])
        live = f"live from {data.step_name} {first} to {last}"
        lines = (
            data.names[item],
            f"{format_bytes(size)} ({size:,} B) at {offset:#x}",
            live if first <= last else f"no {data.step_name} needs it",
        )
        return "\n".join(lines)
