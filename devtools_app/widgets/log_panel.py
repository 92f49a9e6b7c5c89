"""The log of Python and Qt, newest last, copyable."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QObject, Qt, QtMsgType, Signal, Slot
from PySide6.QtGui import QColor, QGuiApplication, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPlainTextEdit, QVBoxLayout, QWidget

from devtools_app.appearance.theme import Theme, set_role
from devtools_app.widgets.fields import PushButton

KEPT_LINES = 2000  # a module that warns endlessly must not fill the memory
_QT_LEVELS = {
    QtMsgType.QtDebugMsg: logging.DEBUG,
    QtMsgType.QtInfoMsg: logging.INFO,
    QtMsgType.QtWarningMsg: logging.WARNING,
    QtMsgType.QtCriticalMsg: logging.ERROR,
    QtMsgType.QtFatalMsg: logging.CRITICAL,
}


@dataclass(frozen=True, slots=True)
class LogLine:
    """One message.

    Attributes:
        level: of Python's logging
        text: time, level, origin and message, maybe with a traceback
    """

    level: int
    text: str


class LogStore(QObject):
    """Keeps the newest messages of Python's logging, from any thread.

    Signals:
        added(line): a new LogLine; delivered on the GUI thread
    """

    added = Signal(object)
    _arrived = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.lines: deque[LogLine] = deque(maxlen=KEPT_LINES)
        self.handler = _Handler(self._arrived.emit)
        self._arrived.connect(self._keep, Qt.ConnectionType.AutoConnection)

    def attach(self) -> None:
        """Attach to the root logger."""
        root = logging.getLogger()
        root.addHandler(self.handler)
        if root.level == logging.NOTSET or root.level > logging.INFO:
            root.setLevel(logging.INFO)

    def detach(self) -> None:
        """Detach from the root logger."""
        logging.getLogger().removeHandler(self.handler)

    @Slot(object)
    def _keep(self, line: LogLine) -> None:
        self.lines.append(line)
        self.added.emit(line)


class _Handler(logging.Handler):
    def __init__(self, tell: Callable[[object], None]) -> None:
        super().__init__(logging.DEBUG)
        self._report = tell
        self.setFormatter(
            logging.Formatter("%(asctime)s  %(levelname)-7s  %(name)s  %(message)s", "%H:%M:%S")
        )

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._report(LogLine(record.levelno, self.format(record)))
        except RuntimeError:  # the store is gone: the program ends
            self.close()


def log_qt_message(kind: QtMsgType, _context: object, message: str) -> None:
    """Log a message of Qt; for ``qInstallMessageHandler``."""
    if "propagateSizeHints" in message:  # said by the offscreen platform at every window
        return
    logging.getLogger("qt").log(_QT_LEVELS.get(kind, logging.WARNING), message)


class LogPanel(QWidget):
    """Shows a LogStore; the level is shown as a colour and as text."""

    def __init__(self, theme: Theme, store: LogStore) -> None:
        super().__init__()
        self._theme = theme
        self._store = store
        self._text = QPlainTextEdit()
        self._text.setObjectName("plain")
        self._text.setReadOnly(True)
        self._text.setMaximumBlockCount(KEPT_LINES)
        self._text.setAccessibleName("Log messages")
        self._text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self._count = QLabel()
        set_role(self._count, "role", "muted")
        self._lay_out()
        store.added.connect(self._show)
        theme.changed.connect(self._show_all)
        self._show_all()

    def copy_all(self) -> None:
        """Copy the whole log."""
        QGuiApplication.clipboard().setText("\n".join(line.text for line in self._store.lines))

    def clear(self) -> None:
        """Clear the log."""
        self._store.lines.clear()
        self._show_all()

    def _lay_out(self) -> None:
        bar = QHBoxLayout()
        bar.setContentsMargins(8, 5, 8, 5)
        bar.addWidget(self._count)
        bar.addStretch(1)
        for text, pressed in (("Copy all", self.copy_all), ("Clear", self.clear)):
            button = PushButton(text)
            button.setAccessibleName(f"{text} log messages")
            button.clicked.connect(pressed)
            bar.addWidget(button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(bar)
        layout.addWidget(self._text, 1)

    def _show_all(self) -> None:
        self._text.setFont(self._theme.mono())
        self._text.clear()
        for line in self._store.lines:
            self._append(line)
        self._show_count()

    def _show(self, line: LogLine) -> None:
        self._append(line)
        self._show_count()

    def _append(self, line: LogLine) -> None:
        look = QTextCharFormat()
        palette = self._theme.palette
        colour = palette.text
        if line.level >= logging.ERROR:
            colour = palette.bad
        elif line.level >= logging.WARNING:
            colour = palette.warn
        elif line.level < logging.INFO:
            colour = palette.muted
        look.setForeground(QColor(colour))
        cursor = QTextCursor(self._text.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        cursor.insertText(line.text + "\n", look)
        bar = self._text.verticalScrollBar()
        bar.setValue(bar.maximum())

    def _show_count(self) -> None:
        bad = sum(line.level >= logging.WARNING for line in self._store.lines)
        total = len(self._store.lines)
        self._count.setText(f"{total:,} messages · {bad:,} warnings and errors")
