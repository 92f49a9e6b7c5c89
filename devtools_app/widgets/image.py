"""An image of any widget as PNG at scale 2, or as SVG."""

from __future__ import annotations

import errno
from pathlib import Path

from PySide6.QtCore import QBuffer, QIODevice, QPoint, QRect
from PySide6.QtGui import QColor, QPainter, QPixmap
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QWidget

from devtools_app.widgets.files import write_binary_file

_FINENESS = 2.0  # pixels per point: readable when printed or zoomed


def save_image(widget: QWidget, path: Path) -> None:
    """Write an image of a widget; the suffix decides between PNG and SVG.

    Raises: OSError if the file cannot be written
    """
    if path.suffix.lower() == ".svg":
        _save_svg(widget, path)
        return
    pixmap = QPixmap(widget.size() * _FINENESS)
    pixmap.setDevicePixelRatio(_FINENESS)
    pixmap.fill(QColor(widget.palette().window().color()))
    widget.render(pixmap, QPoint())
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    if not pixmap.save(buffer, "PNG"):
        raise OSError(errno.ENOMEM, "the image is too large", str(path))
    write_binary_file(path, buffer.data().data())


def _save_svg(widget: QWidget, path: Path) -> None:
    buffer = QBuffer()
    generator = QSvgGenerator()
    generator.setOutputDevice(buffer)
    generator.setSize(widget.size())
    generator.setViewBox(QRect(QPoint(), widget.size()))
    generator.setTitle(widget.accessibleName() or "ETScope")
    with QPainter(generator) as painter:
        widget.render(painter, QPoint())
    write_binary_file(path, buffer.data().data())
