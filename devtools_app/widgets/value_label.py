"""A value that wraps, also inside long names, and is copied as it is."""

from __future__ import annotations

import re

from PySide6.QtCore import Qt
from PySide6.QtGui import QContextMenuEvent, QGuiApplication, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QLabel, QMenu, QSizePolicy
from typing_extensions import override

_BREAK = "\u200b"  # takes no room, a line may end there
_WHOLE = "\u2060"  # takes no room, a line may not end there
_SHORT = 10  # letters of a word that is not broken
_RATE = re.compile("(?<=[A-Z])/(?=s$)")  # of MB/s, which Qt would break
# after a joint of a name, and between a small and a capital letter
_JOINT = re.compile(r"(?<=[_./:,\-])(?=\w)|(?<=[a-z])(?=[A-Z])")


class ValueLabel(QLabel):
    """Text that takes the keyboard by a click or from its panel; the mouse and Shift select."""

    def __init__(self, text: str) -> None:
        super().__init__(_with_breaks(text))
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setWordWrap(True)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)  # thirty stops of Tab otherwise
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Minimum)

    def copy(self) -> None:
        """Copy the selected part, without the places where it may break."""
        text = self.selectedText().replace(_BREAK, "").replace(_WHOLE, "")
        if text:
            QGuiApplication.clipboard().setText(text)

    @override
    def keyPressEvent(self, ev: QKeyEvent) -> None:
        if ev.matches(QKeySequence.StandardKey.Copy) and self.hasSelectedText():
            self.copy()
        elif is_step(ev):
            ev.ignore()
        else:
            super().keyPressEvent(ev)

    @override
    def contextMenuEvent(self, ev: QContextMenuEvent) -> None:
        if not self.hasSelectedText():
            ev.ignore()  # the menu of the panel
            return
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction("Copy", self.copy)
        menu.popup(ev.globalPos())


def is_step(event: QKeyEvent) -> bool:
    """Return whether a key goes to the value above or below, which is up to the panel."""
    plain = not event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
    return plain and event.key() in (Qt.Key.Key_Up, Qt.Key.Key_Down)


def _with_breaks(text: str) -> str:
    """Return a text whose long words may be broken at the joints of their names, units not."""
    words = text.split(" ")
    return " ".join(
        _JOINT.sub(_BREAK, one) if len(one) > _SHORT else _RATE.sub(f"/{_WHOLE}", one)
        for one in words
    )
