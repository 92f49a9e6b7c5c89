"""Notes about the session shown; kept in the workspace."""

from __future__ import annotations

from PySide6.QtWidgets import QPlainTextEdit, QVBoxLayout, QWidget

from devtools_app.state.requests import SetNote
from devtools_app.state.state import State
from devtools_app.views.spec import Area, ViewContext, ViewSpec


class NotesView(QWidget):
    """Plain text; every change updates the state immediately."""

    def __init__(self, context: ViewContext) -> None:
        super().__init__()
        self._context = context
        self._text = QPlainTextEdit()
        self._text.setObjectName("plain")
        self._text.setAccessibleName("Notes about this session")
        self._text.setPlaceholderText("Notes about this session. Saved with the workspace.")
        self._text.setTabChangesFocus(True)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 0, 8, 8)
        layout.addWidget(self._text)
        self._text.textChanged.connect(self._changed)

    def show_state(self, state: State) -> None:
        """Show the notes of the current session."""
        text = state.notes.get(state.current, "")
        if text != self._text.toPlainText():
            blocked = self._text.blockSignals(True)
            self._text.setPlainText(text)
            self._text.blockSignals(blocked)

    def _changed(self) -> None:
        current = self._context.store.state.current
        self._context.ask(SetNote(current, self._text.toPlainText()))


SPEC = ViewSpec("notes", "Notes", Area.RIGHT, NotesView, "notes")
