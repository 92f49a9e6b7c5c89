"""The compile that runs or ran last: its stages with times, its log and its outcome."""

from __future__ import annotations

from pathlib import PurePath

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QHBoxLayout,
    QPlainTextEdit,
    QSplitter,
    QStackedWidget,
    QWidget,
)

from devtools_app.jobs.follower import KEPT_LINES, JobProgress
from devtools_app.state.requests import AskCompile
from devtools_app.state.state import State
from devtools_app.views.spec import Area, ViewContext, ViewSpec
from devtools_app.widgets.elided_label import ElidedLabel
from devtools_app.widgets.empty_state import EmptyState, Need
from devtools_app.widgets.job_page import set_job_page, show_job_page
from devtools_app.widgets.outcome_line import OutcomeLine
from devtools_app.widgets.push_button import push_button
from devtools_app.widgets.table_view import TableView
from inspector.jobs.messages import Ended
from inspector.tables.compile_stages import stage_table
from inspector.tables.table import Table
from inspector.toolchain.table import toolchain_named
from inspector.units import format_elapsed

_EMPTY = Need(
    "No compile yet",
    "Compile a function that returns a PyTorch module and its inputs, a .pt2 file or an "
    "ETRecord; the program and its record open here.",
    "etscope compile model.py:build -o build",
)


class CompileView(QWidget):
    """Follows the compile, not the state; errors lead to the line of the user's code."""

    def __init__(self, context: ViewContext) -> None:
        super().__init__()
        self._theme = context.theme
        self._ask = context.ask
        self._compiling = context.jobs["compile"]
        self._shown: JobProgress | None = None
        self._title = ElidedLabel()
        self._cancel = push_button("Cancel", "Cancel the compile", self._compiling.cancel)
        self._again = push_button("Compile…", "Compile a program", lambda: self._ask(AskCompile()))
        self._error = OutcomeLine(context.theme, context.ask)
        self._table = TableView(context.theme, "stages of the compile")
        self._table.hide_tools()
        self._log = QPlainTextEdit()
        self._log.setObjectName("plain")
        self._log.setReadOnly(True)
        self._log.setMaximumBlockCount(KEPT_LINES)
        self._log.setAccessibleName("Printed while compiling, and warnings")
        self._log.setPlaceholderText("What the code prints, and warnings, appear here.")
        self._empty = EmptyState(context.theme, _EMPTY)
        self._empty.add_button("Compile…", lambda: self._ask(AskCompile()))
        self._pages = QStackedWidget()
        self._lay_out()
        self._compiling.changed.connect(self._refresh)
        self._compiling.printed.connect(self._print)
        context.theme.follow(self._restyle)
        self._restyle()
        self._print(list(self._compiling.lines))
        self._refresh()

    @property
    def stages(self) -> Table:
        """Return the stages as shown."""
        return self._table.rows

    @property
    def printed(self) -> str:
        """Return the log and warnings as shown."""
        return self._log.toPlainText()

    @property
    def error(self) -> str:
        """Return why the compile failed, empty without an error."""
        return self._error.text

    def show_state(self, state: State) -> None:
        """Do nothing: the compile emits its own signals."""

    def _lay_out(self) -> None:
        bar = QHBoxLayout()
        bar.setContentsMargins(12, 6, 12, 6)
        split = QSplitter(Qt.Orientation.Horizontal)
        split.setChildrenCollapsible(False)
        set_job_page(self, self._pages, self._empty, bar, self._error, split)
        bar.addWidget(self._title, 1)
        bar.addWidget(self._cancel)
        bar.addWidget(self._again)
        split.addWidget(self._table)
        split.addWidget(self._log)
        split.setSizes([560, 440])

    def _restyle(self) -> None:
        self._log.setFont(self._theme.mono())

    def _refresh(self) -> None:
        found = self._compiling.current
        show_job_page(self._pages, 0 if found is None else 1)
        if found is None:
            return
        before = self._shown
        self._shown = found
        if before is None or before.job is not found.job:
            self._log.clear()
            self._print(list(self._compiling.lines))
        self._title.setText(_title(found))
        self._cancel.setVisible(found.running)
        self._cancel.setEnabled(not found.cancelling)
        self._again.setVisible(not found.running)
        self._table.show_table(stage_table(found.stages, found.stage_seconds, found.outcome))
        self._show_warnings(before, found)
        self._error.show_outcome(found.outcome)

    def _show_warnings(self, before: JobProgress | None, found: JobProgress) -> None:
        seen = len(before.warnings) if before is not None and before.job is found.job else 0
        for warning in found.warnings[seen:]:
            place = f"{warning.file}:{warning.line}: " if warning.file else ""
            self._log.appendPlainText(f"warning: {place}{warning.text}")

    def _print(self, lines: list[str]) -> None:
        if lines:
            self._log.appendPlainText("\n".join(lines))


def _title(found: JobProgress) -> str:
    source = found.job.source
    name = PurePath(source.path).name
    what = f"{name}:{source.function}" if source.function else name
    if found.running:
        verb = "Cancelling" if found.cancelling else "Compiling"
        return f"{verb} {what} · {found.stages[-1].stage} · {format_elapsed(found.seconds, 1)}"
    assert found.outcome is not None
    if found.outcome.ended is Ended.FINISHED:
        tool = found.outcome.result.get("toolchain", {})
        credit = toolchain_named(found.job.toolchain).credit(tool.get("version", ""))
        by = f" by {credit}" if credit else ""
        return f"Compiled {what}{by} into {found.target} in {format_elapsed(found.seconds, 1)}"
    return f"{what}: {found.outcome.ended.value} after {format_elapsed(found.seconds, 1)}"


SPEC = ViewSpec("compile", "Compile", Area.CENTRE, CompileView, "play", without_session=True)
