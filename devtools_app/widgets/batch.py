"""Thousands of rectangles or lines in one call, straight from numpy memory.

QPainter takes a pointer and a count; the pointer is the address of the array's data, which is
not checked; hence only this module does it.
"""

from __future__ import annotations

from typing import TypeVar, cast

import numpy as np
import shiboken6
from numpy.typing import NDArray
from PySide6.QtCore import QLineF, QRectF
from PySide6.QtGui import QPainter

_CHUNK = 1 << 16  # keeps what the paint engine copies small
_Shape = TypeVar("_Shape", QRectF, QLineF)


def draw_rects(painter: QPainter, rects: NDArray[np.float64]) -> None:
    """Draw rectangles with the painter's pen and brush.

    Shapes: rects float64[n, 4]: x, y, width, height
    Raises: ValueError for any other shape or type
    """
    rects = _checked(rects)
    for start in range(0, len(rects), _CHUNK):
        part = rects[start : start + _CHUNK]
        painter.drawRects(_pointer(part, QRectF), len(part))


def draw_lines(painter: QPainter, lines: NDArray[np.float64]) -> None:
    """Draw separate lines with the painter's pen.

    Shapes: lines float64[n, 4]: x1, y1, x2, y2
    Raises: ValueError for any other shape or type
    """
    lines = _checked(lines)
    for start in range(0, len(lines), _CHUNK):
        part = lines[start : start + _CHUNK]
        painter.drawLines(_pointer(part, QLineF), len(part))


def _pointer(part: NDArray[np.float64], kind: type[_Shape]) -> _Shape:
    """Return the memory of an array as the address of its first shape; keep the array alive."""
    return cast("_Shape", shiboken6.wrapInstance(part.ctypes.data, kind))


def _checked(array: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the array as contiguous memory."""
    if array.ndim != 2 or array.shape[1] != 4 or array.dtype != np.float64:
        raise ValueError(f"expected float64 (n, 4), found {array.dtype} {array.shape}")
    return np.ascontiguousarray(array)
