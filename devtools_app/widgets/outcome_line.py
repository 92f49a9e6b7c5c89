"""The error of a job: one sentence, its source line, and details to copy."""

from __future__ import annotations

from pathlib import PurePath

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel

from devtools_app.appearance.theme import Theme, set_role
from devtools_app.state.requests import Ask, OpenSource
from devtools_app.widgets.push_button import push_button
from devtools_app.widgets.text_label import plain_label
from inspector.jobs.messages import Ended, Outcome

_LONGEST = 280  # characters; the rest is in the tip and in what is copied


class OutcomeLine(QFrame):
    """Shows the error of a job with a link to its line and details to copy."""

    def __init__(self, theme: Theme, ask: Ask) -> None:
        super().__init__()
        self._ask = ask
        self._theme = theme
        self._outcome: Outcome | None = None
        self.setObjectName("notice")
        self._icon = QLabel()
        self._text = plain_label()
        self._go = push_button("", "Open the line in the editor", self._open)
        self._go.setProperty("link", "true")
        self._copy = push_button("Copy", "Copy the error with its details", self._copy_all)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(12, 6, 8, 6)
        layout.addWidget(self._icon)
        layout.addWidget(self._text, 1)
        layout.addWidget(self._go)
        layout.addWidget(self._copy)
        theme.follow(self._restyle)
        self.hide()

    @property
    def text(self) -> str:
        """Return its text, empty while it is hidden."""
        return "" if self.isHidden() else self._text.text()

    def show_outcome(self, outcome: Outcome | None) -> None:
        """Show the error of a job; hidden while it runs or if it succeeded."""
        if outcome is self._outcome:
            return
        self._outcome = outcome
        bad = outcome is not None and outcome.ended is not Ended.FINISHED
        self.setVisible(bad)
        if outcome is None or not bad:
            return
        sentence = _without_place(outcome)
        self._text.setText(sentence if len(sentence) <= _LONGEST else f"{sentence[:_LONGEST]}…")
        self._text.setToolTip(sentence)
        self.setAccessibleName(f"error: {outcome.sentence}")
        self._go.setVisible(bool(outcome.file and outcome.line))
        self._go.setText(f"{PurePath(outcome.file).name}:{outcome.line}")
        self._copy.setVisible(outcome.ended is not Ended.CANCELLED)
        self._restyle()

    def _open(self) -> None:
        if self._outcome is not None:
            self._ask(OpenSource(self._outcome.file, self._outcome.line))

    def _copy_all(self) -> None:
        if self._outcome is not None:
            parts = (self._outcome.sentence, self._outcome.details)
            QGuiApplication.clipboard().setText("\n\n".join(part for part in parts if part))

    def _restyle(self) -> None:
        if self._outcome is None:
            return
        cancelled = self._outcome.ended is Ended.CANCELLED
        icon, tone = ("warning", "warn") if cancelled else ("error", "bad")
        self._icon.setPixmap(self._theme.icon(icon, tone).pixmap(16, 16))
        set_role(self, "tone", "warning" if cancelled else "error")


def _without_place(outcome: Outcome) -> str:
    """Return the sentence without the file and line it begins with: the link shows them."""
    place = f"{outcome.file}:{outcome.line}: "
    text = (
        outcome.sentence.removeprefix(place) if outcome.file and outcome.line else outcome.sentence
    )
    return f"{text[:1].upper()}{text[1:]}"
