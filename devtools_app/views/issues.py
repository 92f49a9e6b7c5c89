"""Issues in the files of the session shown."""

from __future__ import annotations

from PySide6.QtWidgets import QVBoxLayout, QWidget

from devtools_app.jobs.computed import Computed
from devtools_app.state.state import State
from devtools_app.views.spec import Area, ViewContext, ViewSpec
from devtools_app.widgets.empty_state import Need
from devtools_app.widgets.table_view import TableView
from inspector.tables.files import all_issues, issue_table
from inspector.tables.table import Table

_NONE = Need("No issues", "No issues found in the files of this session.")


class IssuesView(QWidget):
    """A table of issues, the worst first."""

    def __init__(self, context: ViewContext) -> None:
        super().__init__()
        self._context = context
        self._table = TableView(context.theme, "issues")
        self._table.set_need(_NONE)
        self._shown: tuple[str, int] | None = None
        self._computed: Computed[Table] = Computed("issues", self)
        self._computed.ready.connect(lambda _key: self.show_state(context.store.state))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._table)

    def show_state(self, state: State) -> None:
        """Show the issues of the current session."""
        one = state.open_session
        if one is None or self._shown == (one.id, one.revision):
            return
        session = one.session
        key = (one.id, one.revision)
        table = self._computed.ask(key, lambda _token: issue_table(all_issues(session)))
        if table is not None:
            self._shown = key
            self._table.show_table(table)

    def start_find(self) -> None:
        """Filter the issues."""
        self._table.start_find()

    def shut_down(self) -> None:
        """Stop computing."""
        self._computed.close()


SPEC = ViewSpec("issues", "Issues", Area.BOTTOM, IssuesView, "issues")
