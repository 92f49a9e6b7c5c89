"""The first minute with the program, as one image of numbered stills."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QRect, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen, QPixmap

from devtools_app.appearance.theme import FontSize, Theme
from devtools_app.screenshots import window as shots

_COLUMNS = 2
_SIZE = (1440, 900)
_STILL = (800, 500)
_GAP, _CAPTION, _ROUND = 28, 44, 6.0
_START = "Open a program, a trace, a record: or the sample"
# what the other screenshots of the folder show, in the order of a first session
_STEPS = (
    ("overview_light.png", "Where the time goes, what stands out, what to do next"),
    ("loop_why.png", "Pick a node: why it is not delegated, what it costs"),
    ("loop_change.png", "Change it: the effect is shown before anything is compiled"),
    ("loop_compare.png", "Ctrl+R: compiled, run and measured side by side, with a verdict"),
    ("loop_changed_dark.png", "The outcome of every node, in the graph"),
)


def write_first_minute(folder: Path) -> None:
    """Write the image from the start page and the screenshots that a folder has.

    Raises: NotReadyError if one of them is missing
    """
    missing = [name for name, _caption in _STEPS if not (folder / name).is_file()]
    if missing:
        raise shots.NotReadyError(f"{folder / missing[0]} is not there yet")
    path = folder / "first_minute.png"
    with shots.open_window([]) as window:
        stills = [(shots.take(window, shots.Shot("overview", _SIZE)), _START)]
        stills += [(QPixmap(str(folder / name)), caption) for name, caption in _STEPS]
        shots.save(strip(stills, window.theme), path)
    shots.print_line(str(path))


def strip(stills: list[tuple[QPixmap, str]], theme: Theme) -> QPixmap:
    """Return stills in lines of a few, each with its number and what is seen in it above it."""
    wide, high = _STILL
    lines = -(-len(stills) // _COLUMNS)
    cell = wide + _GAP, high + _CAPTION + _GAP
    image = QPixmap(_COLUMNS * cell[0] + _GAP, lines * cell[1] + _GAP // 2)
    image.fill(QColor(theme.palette.surface))
    with QPainter(image) as painter:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        for number, (still, caption) in enumerate(stills):
            row, column = divmod(number, _COLUMNS)
            left, top = _GAP + column * cell[0], row * cell[1]
            words = QRect(left, top, wide, _CAPTION)
            painter.setFont(theme.sans(FontSize.LARGE, strong=True))
            painter.setPen(QColor(theme.palette.text))
            painter.drawText(words, int(Qt.AlignmentFlag.AlignVCenter), f"{number + 1}  {caption}")
            _draw(painter, still, QRectF(left, top + _CAPTION, wide, high), theme)
    return image


def _draw(painter: QPainter, still: QPixmap, box: QRectF, theme: Theme) -> None:
    outline = QPainterPath()
    outline.addRoundedRect(box, _ROUND, _ROUND)
    painter.save()
    painter.setClipPath(outline)
    size = box.size().toSize()
    smooth = Qt.TransformationMode.SmoothTransformation
    scaled = still.scaled(size, Qt.AspectRatioMode.KeepAspectRatio, smooth)
    painter.drawPixmap(box.topLeft(), scaled)
    painter.restore()
    painter.setPen(QPen(QColor(theme.palette.line), 1.0))
    painter.drawPath(outline)
