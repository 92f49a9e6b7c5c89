"""Sizes of dialogs: they grow with the text, and scroll where the window has no room for more."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QDialog, QFrame, QLayout, QScrollArea, QWidget

from devtools_app.appearance.look import BASE_SIZE
from devtools_app.appearance.theme import Theme

_EDGE = QSize(48, 48)  # of a window or screen that stays visible around a dialog


def scrolled(content: QLayout, name: str) -> QScrollArea:
    """Return an area that scrolls downwards over a layout."""
    page = QWidget()
    page.setObjectName("page")
    content.setContentsMargins(0, 0, 8, 0)
    page.setLayout(content)
    area = QScrollArea()
    area.setWidgetResizable(True)
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    area.setAccessibleName(name)
    area.setWidget(page)
    return area


def screen_of(widget: QWidget) -> QSize:
    """Return the size of the screen of a widget."""
    return widget.screen().availableGeometry().size()


def room_of(dialog: QDialog, size: QSize) -> QSize:
    """Return the largest first size of a dialog: that of its window, or its own at usual text."""
    parent = dialog.parentWidget()
    window = parent.window().size() if parent is not None else size
    return (window - _EDGE).expandedTo(size.boundedTo(screen_of(dialog) - _EDGE))


def fit_dialog(
    dialog: QDialog, theme: Theme, size: tuple[int, int], area: QScrollArea | None = None
) -> None:
    """Give a dialog its first size, which follows that of the text.

    Args:
        dialog: with its layout
        theme: has the size of the text
        size: wanted with text of the usual size
        area: what scrolls; its content is shown as a whole if it fits
    """
    layout = dialog.layout()
    wanted = QSize(*size)
    room = room_of(dialog, wanted)
    wanted = (wanted * (theme.size / BASE_SIZE)).boundedTo(room)
    dialog.ensurePolished()
    page = area.widget() if area is not None else None
    if area is not None and page is not None and layout is not None:
        margins = layout.contentsMargins()
        bar = area.verticalScrollBar().sizeHint().width()
        around = margins.left() + margins.right() + bar
        least = min(page.minimumSizeHint().width(), room.width() - around)
        area.setMinimumWidth(least + bar)
        wanted.setWidth(max(wanted.width(), least + around))
        others = layout.sizeHint().height() - area.sizeHint().height()
        wanted.setHeight(max(wanted.height(), _height(page, wanted.width() - around) + others))
    dialog.resize(wanted.boundedTo(room))


def _height(page: QWidget, width: int) -> int:
    """Return the height of a page of a width, whose words wrap."""
    inside = page.layout()
    if inside is not None and inside.hasHeightForWidth():
        return inside.totalHeightForWidth(width)
    return page.sizeHint().height()
