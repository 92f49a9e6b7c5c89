"""Version, licences and libraries."""

from __future__ import annotations

import platform

import PySide6
from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from devtools_app.appearance.icon_set import app_icon
from devtools_app.appearance.look import BASE_SIZE
from devtools_app.appearance.theme import FontSize, Theme, set_role
from devtools_app.dialogs.dialog_room import room_of
from devtools_app.widgets.dialog_buttons import dialog_buttons
from schema.version import __version__

_WIDTH = 460  # pixels with text of the usual size
_TEXT = (
    "Desktop inspector for ExecuTorch programs, records and traces. BSD 3-Clause licence.\n\n"
    "Made with Python {python}, Qt for Python {qt} (LGPL 3), NumPy, and the fonts Inter and "
    "JetBrains Mono (SIL Open Font License 1.1)."
)


class AboutDialog(QDialog):
    """Shows the version as text that can be copied into a bug report."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("About ETScope")
        self.setAccessibleName("About ETScope")
        icon = QLabel()
        icon.setPixmap(app_icon().pixmap(48, 48))
        title = QLabel(f"ETScope {__version__}")
        title.setFont(theme.sans(FontSize.LARGE, strong=True))
        text = QLabel(_TEXT.format(python=platform.python_version(), qt=PySide6.__version__))
        text.setWordWrap(True)
        set_role(text, "role", "muted")
        for label in (title, text):
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        sentence = QVBoxLayout()
        sentence.addWidget(title)
        sentence.addWidget(text)
        line = QHBoxLayout()
        line.setSpacing(16)
        line.addWidget(icon, 0, Qt.AlignmentFlag.AlignTop)
        line.addLayout(sentence, 1)
        buttons = dialog_buttons(self, QDialogButtonBox.StandardButton.Close)
        layout = QVBoxLayout(self)
        layout.addLayout(line)
        layout.addWidget(buttons)
        width = round(_WIDTH * theme.size / BASE_SIZE)
        self.setMinimumWidth(min(width, room_of(self, QSize(_WIDTH, 0)).width()))
