"""The log of Python and Qt, newest last, copyable."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, QTimer, QtMsgType, Signal, Slot
from PySide6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget

from devtools_app.appearance.theme import Theme, set_role
from devtools_app.viewmodels.log_lines import ALL_JOBS, NO_JOB, LogLine, shown_line
from devtools_app.widgets.elided_label import ElidedLabel
from devtools_app.widgets.fields import PushButton
from devtools_app.widgets.log_text import KEPT_LINES, LogText
from devtools_app.widgets.toolbar_combo import ToolbarCombo
from schema.objects.plural import plural

if TYPE_CHECKING:  # the window is on the screen before anything of the inspector is loaded
    from inspector.jobs.history import JobEntry, LoggedLine

_SOON_MS = 60  # a job that prints endlessly is shown in batches
_QT_LEVELS = {
    QtMsgType.QtDebugMsg: logging.DEBUG,
    QtMsgType.QtInfoMsg: logging.INFO,
    QtMsgType.QtWarningMsg: logging.WARNING,
    QtMsgType.QtCriticalMsg: logging.ERROR,
    QtMsgType.QtFatalMsg: logging.CRITICAL,
}


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
        self._level = logging.NOTSET  # of the root logger before
        self._arrived.connect(self._keep, Qt.ConnectionType.AutoConnection)

    def attach(self) -> None:
        """Attach to the root logger."""
        root = logging.getLogger()
        root.addHandler(self.handler)
        self._level = root.level
        if root.level == logging.NOTSET or root.level > logging.INFO:
            root.setLevel(logging.INFO)

    def detach(self) -> None:
        """Detach from the root logger, which has its former level again."""
        root = logging.getLogger()
        if self.handler in root.handlers:
            root.removeHandler(self.handler)
            root.setLevel(self._level)

    def add_job(self, entry: JobEntry, lines: Iterable[LoggedLine]) -> None:
        """Add lines of the log of a job."""
        for line in lines:
            self._keep(shown_line(entry, line))

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


_NOT_OURS = (
    "propagateSizeHints",  # said by the offscreen platform at every window
    "Could not find accessible on path",  # a screen reader asked for what was closed meanwhile
)


def log_qt_message(kind: QtMsgType, _context: object, message: str) -> None:
    """Log a message of Qt; for ``qInstallMessageHandler``."""
    if any(words in message for words in _NOT_OURS):
        return
    logging.getLogger("qt").log(_QT_LEVELS.get(kind, logging.WARNING), message)


class LogPanel(QWidget):
    """Shows a LogStore: all of it, or that of one job."""

    def __init__(self, theme: Theme, store: LogStore) -> None:
        super().__init__()
        self._store = store
        self._text = LogText(theme, "log messages")
        self.jobs = ToolbarCombo(theme, "of", "Job whose messages are shown")
        self.jobs.activated.connect(
            lambda _index: self._text.show_job(str(self.jobs.currentData()))
        )
        self._count = ElidedLabel()
        self._count.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
        set_role(self._count, "role", "muted")
        self._added: list[LogLine] = []
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(_SOON_MS)
        self._soon.timeout.connect(self._show_added)
        self._lay_out()
        store.added.connect(self._show)
        self._show_all()

    @property
    def shown(self) -> str:
        """Return the messages that are shown."""
        self._show_added()
        return self._text.shown

    def start_find(self) -> None:
        """Focus the field of the search."""
        self._text.start_find()

    def copy_all(self) -> None:
        """Copy the messages that are shown."""
        self._show_added()
        self._text.copy_all()

    def clear(self) -> None:
        """Clear the log."""
        self._store.lines.clear()
        self._show_all()

    def _lay_out(self) -> None:
        bar = self._text.bar
        bar.addWidget(self.jobs)
        bar.addWidget(self._count)
        for text, pressed in (("Copy all", self.copy_all), ("Clear", self.clear)):
            button = PushButton(text)
            button.setAccessibleName(f"{text} log messages")
            button.clicked.connect(pressed)
            bar.addWidget(button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._text)

    def _show_all(self) -> None:
        self._added.clear()
        self._text.show_lines(self._store.lines)
        self._show_counts()

    def _show(self, line: LogLine) -> None:
        self._added.append(line)
        if not self._soon.isActive():
            self._soon.start()

    def _show_added(self) -> None:
        added, self._added = self._added, []
        if added:
            self._text.add(added)
            self._show_counts()

    def _show_counts(self) -> None:
        lines = self._store.lines
        bad = sum(line.level >= logging.WARNING for line in lines)
        words = plural(bad, "warning or error", "warnings and errors")
        self._count.setText(f"{len(lines):,} messages · {words}")
        jobs = {line.job: line.label for line in lines if line.job}
        choices = [("everything", ALL_JOBS), ("the window", NO_JOB)]
        choices += [(label, job) for job, label in reversed(jobs.items())]
        kept = str(self.jobs.currentData() if self.jobs.count() else ALL_JOBS)
        self.jobs.show_choices(choices, kept if kept in (*jobs, NO_JOB) else ALL_JOBS)
