"""The files of the session shown."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QVBoxLayout, QWidget

from devtools_app.state.state import State
from devtools_app.views.spec import Area, ViewContext, ViewSpec
from devtools_app.widgets.table_view import TableView
from inspector.tables.files import file_table


class FilesView(QWidget):
    """Names and sizes; Return copies the path, the tooltip shows the format.

    It has two columns of the table of files: the panel is narrow.
    """

    def __init__(self, context: ViewContext) -> None:
        super().__init__()
        self._table = TableView(context.theme, "files")
        self._table.set_plain()
        self._shown: tuple[str, int] | None = None
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._table)
        self._table.row_activated.connect(self._copy_path)

    def show_state(self, state: State) -> None:
        """Show the files of the current session."""
        one = state.open_session
        key = None if one is None else (one.id, one.revision)
        if one is None or key == self._shown:
            return
        self._shown = key
        table = file_table(one.session)
        self._table.show_table(replace(table, columns=(table.columns[0], table.columns[2])))

    def _copy_path(self, row: int) -> None:
        QGuiApplication.clipboard().setText(str(self._table.rows.key(row)))


SPEC = ViewSpec("files", "Files", Area.LEFT, FilesView, "file", action="add_files")
