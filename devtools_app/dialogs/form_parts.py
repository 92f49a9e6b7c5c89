"""Parts shared by forms: lines with a button that chooses a file, the warning about code."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QSizePolicy,
    QWidget,
)

from devtools_app.appearance.theme import Theme
from devtools_app.widgets.fields import PushButton
from devtools_app.widgets.text_label import breakable

LIBRARY_FILES = "Python, shared libraries (*.py *.so *.dylib *.dll);;All (*)"


class CodeWarning(QFrame):
    """Warns that code will be run."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setObjectName("notice")
        self._words = ""
        icon = QLabel()
        icon.setPixmap(theme.icon("warning", "warn").pixmap(16, 16))
        self._text = QLabel()
        self._text.setWordWrap(True)
        self._text.setTextFormat(Qt.TextFormat.PlainText)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(12, 6, 12, 6)
        layout.addWidget(icon)
        layout.addWidget(self._text, 1)

    @property
    def text(self) -> str:
        """Return its text, empty while it is hidden."""
        return "" if self.isHidden() else self._words

    def show_files(self, files: tuple[str, ...]) -> None:
        """List the files whose code will be run; hide an empty list."""
        self.setVisible(bool(files))
        text = f"This runs the code in {' and '.join(files)}, with your rights."
        self._words = text if files else ""
        self._text.setText(breakable(self._words))
        self._text.setToolTip(self._words)  # in a low panel the last line may have no room
        self.setAccessibleName(self._words)


def line(name: str, example: str) -> QLineEdit:
    """Return a field with an accessible name and an example value."""
    field = QLineEdit()
    field.setAccessibleName(name)
    field.setPlaceholderText(example)
    return field


def beside(field: QWidget, name: str, pressed: Callable[[], object]) -> QWidget:
    """Return a field with a button that chooses its value."""
    button = PushButton("Choose…")
    button.setAccessibleName(name)
    button.setAutoDefault(False)
    button.clicked.connect(lambda: pressed())
    box = QWidget()
    box.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
    layout = QHBoxLayout(box)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.addWidget(field, 1)
    layout.addWidget(button, 0, Qt.AlignmentFlag.AlignTop)
    return box
