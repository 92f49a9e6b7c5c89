"""The dialog that writes an anonymised copy of the workspace."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QLabel, QVBoxLayout, QWidget
from typing_extensions import override

from devtools_app.appearance.theme import Theme
from devtools_app.dialogs.dialog_room import fit_dialog, scrolled
from devtools_app.dialogs.form_parts import beside, line
from devtools_app.jobs.latest import Latest, Token
from devtools_app.state.panel_layout import PanelLayouts
from devtools_app.state.state import State
from devtools_app.state.workspace import Workspace, workspace_content, workspace_of
from devtools_app.widgets.dialog_buttons import dialog_buttons
from devtools_app.widgets.files import PathChooser
from devtools_app.widgets.problem_label import problem_label
from devtools_app.widgets.push_button import push_button
from devtools_app.widgets.text_label import breakable
from inspector.export.anonymise import GONE, KEPT, left_out
from inspector.export.workspace_copy import (
    WITHOUT,
    WorkspaceCopy,
    anonymous_workspace,
    write_copy,
)
from inspector.units import format_bytes
from schema.objects.plural import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inspector.files.session import Session

_SIZE = (620, 380)
_TITLE = "Anonymised copy of the workspace"


class ColleagueDialog(QDialog):
    """Lists contents and omitted parts of the copy, asks for a folder, writes it in a thread."""

    def __init__(
        self,
        theme: Theme,
        state: State,
        layouts: PanelLayouts,
        paths: PathChooser,
        parent: QWidget,
    ) -> None:
        """Ask for the folder of the copy.

        Args:
            theme: of the window
            state: with the sessions to copy
            layouts: where the panels are
            paths: asks for folders
            parent: the window
        """
        super().__init__(parent)
        self.setWindowTitle(_TITLE)
        self.setAccessibleName(_TITLE)
        self._sessions = tuple((one.id, one.session) for one in state.sessions)
        self._workspace = workspace_of(state, layouts)
        self._paths = paths
        self._folder = line("Folder of the copy", "an empty folder, or a new one")
        self._folder.setText(_proposed(state))
        self._folder.setFont(theme.mono())
        self._problem = problem_label()
        self._failure = ""  # of the last attempt, until another folder is named
        self._result = QLabel()
        self._result.setWordWrap(True)
        self._write = push_button("Write the copy", "Write the copy", self.write)
        self._writing = Latest("anonymised copy", self)
        self._writing.ready.connect(self._written)
        self._writing.failed.connect(self._failed)
        self._writing.ended.connect(self._changed)
        self._folder.textChanged.connect(self._renamed)
        self._lay_out(theme)
        self._changed()

    @property
    def outcome(self) -> str:
        """Return the last message."""
        return self._result.text()

    @property
    def problem(self) -> str:
        """Return why it cannot be written there, empty if it can."""
        text = self._folder.text().strip()
        if not text:
            return "Choose a folder for the copy."
        folder = Path(text)
        if folder.exists() and not folder.is_dir():
            return "This is a file: choose a folder."
        try:
            full = folder.is_dir() and any(folder.iterdir())
        except OSError as error:
            return f"The folder cannot be read: {error.strerror or error}."
        return "The folder is not empty: choose another one or a new name." if full else ""

    def write(self) -> None:
        """Write the copy, unless something is wrong with the folder."""
        if self.problem or self._writing.busy:
            return
        folder = Path(os.path.abspath(self._folder.text().strip()))
        self._result.setText("Writing the copy …")
        self._writing.submit(partial(_copied, self._workspace, self._sessions, folder))
        self._changed()

    @override
    def done(self, result: int) -> None:
        """Close; a copy that is being written is dropped."""
        self._writing.close()
        super().done(result)

    def _renamed(self) -> None:
        self._failure = ""
        self._result.setText("")
        self._changed()

    def _changed(self) -> None:
        problem = "" if self.outcome else self._failure or self.problem
        self._problem.setText(breakable(problem))
        self._write.setEnabled(not self.problem and not self._writing.busy)

    def _written(self, result: tuple[WorkspaceCopy, Path]) -> None:
        copy, folder = result
        size = format_bytes(sum(len(data) for _, _, data in copy.files))
        found = f"{plural(len(copy.files), 'file')}, {size}, written to {folder}."
        self._result.setText(breakable(f"{found} Look at the copy before you send it."))

    def _failed(self, error: BaseException) -> None:
        if isinstance(error, OSError):
            why = f"{error.filename or ''}: {error.strerror or error}"
        elif isinstance(error, ValueError):
            why = f"a file cannot be followed far enough to be sure that no name is left. {error}"
        else:
            raise error
        self._result.setText("")
        self._failure = f"No copy: {why}"

    def _choose(self) -> None:
        folder = self._paths.open_folder(self, "Folder of the copy")
        if folder:
            self._folder.setText(folder)

    def _lay_out(self, theme: Theme) -> None:
        words = QVBoxLayout()
        words.setSpacing(8)
        lacking = [Path(path).name for _, one in self._sessions for path in left_out(one)]
        for title, text in (
            ("Not in the copy", f"{GONE}; of the workspace {WITHOUT}."),
            ("In the copy", f"{KEPT}."),
            ("Files without a copy", f"{', '.join(lacking)}." if lacking else ""),
        ):
            if text:
                heading = _sentence(title)
                heading.setFont(theme.sans(strong=True))
                words.addWidget(heading)
                words.addWidget(_sentence(text))
        words.addStretch(1)
        area = scrolled(words, "What is in the copy")
        buttons = dialog_buttons(self, QDialogButtonBox.StandardButton.Close)
        buttons.addButton(self._write, QDialogButtonBox.ButtonRole.ActionRole)
        layout = QVBoxLayout(self)
        layout.setSpacing(10)
        layout.addWidget(area, 1)
        layout.addWidget(beside(self._folder, "Choose the folder of the copy", self._choose))
        layout.addWidget(self._problem)
        layout.addWidget(self._result)
        layout.addWidget(buttons)
        fit_dialog(self, theme, _SIZE, area)


def _copied(
    workspace: Workspace, sessions: Sequence[tuple[str, Session]], folder: Path, token: Token
) -> tuple[WorkspaceCopy, Path]:
    copy = anonymous_workspace(workspace_content(workspace, folder), sessions)
    token.check()
    write_copy(copy, folder)
    return copy, folder


def _proposed(state: State) -> str:
    """Return a folder beside that of the first file."""
    paths = next((one.paths for one in state.sessions if one.paths), ())
    if not paths:
        return ""
    first = Path(os.path.abspath(paths[0]))
    around = first if first.is_dir() else first.parent
    return str(around.with_name(f"{around.name}_anonymised"))


def _sentence(text: str) -> QLabel:
    label = QLabel(text[:1].upper() + text[1:])
    label.setWordWrap(True)
    label.setTextFormat(Qt.TextFormat.PlainText)
    return label
