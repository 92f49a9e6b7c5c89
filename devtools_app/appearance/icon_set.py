"""The icons of the window: small line drawings in ``icons/``, drawn in a given colour."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

FOLDER = Path(__file__).parent / "icons"
ICON_SIDE = 16  # logical pixels beside normal text


def icon_names() -> tuple[str, ...]:
    """Return the names of all icons."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.svg")))


@lru_cache(maxsize=128)
def _drawing(name: str) -> str:
    return (FOLDER / f"{name}.svg").read_text(encoding="utf-8")


def icon_pixmap(name: str, colour: str, side: int, ratio: float) -> QPixmap:
    """Return an icon as a pixmap.

    Args:
        name: file name without suffix
        colour: value of ``currentColor``
        side: width and height in logical pixels
        ratio: device pixels per logical pixel

    Raises: FileNotFoundError for an unknown name
    """
    data = QByteArray(_drawing(name).replace("currentColor", colour).encode())
    pixels = max(1, round(side * ratio))
    pixmap = QPixmap(pixels, pixels)
    pixmap.fill(Qt.GlobalColor.transparent)
    renderer = QSvgRenderer(data)
    with QPainter(pixmap) as painter:
        renderer.render(painter, QRectF(0, 0, pixels, pixels))
    pixmap.setDevicePixelRatio(ratio)
    return pixmap


def draw_icon(name: str, colour: str, faint: str, side: int, ratios: Iterable[float]) -> QIcon:
    """Return an icon of a size that is crisp at each of the given device pixel ratios."""
    icon = QIcon()
    for ratio in ratios:
        icon.addPixmap(icon_pixmap(name, colour, side, ratio), QIcon.Mode.Normal)
        icon.addPixmap(icon_pixmap(name, faint, side, ratio), QIcon.Mode.Disabled)
    return icon


def app_icon() -> QIcon:
    """Return the icon of the program itself."""
    return QIcon(str(FOLDER / "etscope.svg"))
