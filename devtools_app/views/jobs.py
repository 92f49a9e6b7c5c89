"""The jobs of this window and of others: state, time, output, log, and what to do next."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

from PySide6.QtCore import QSize, Qt, QTimer
from PySide6.QtWidgets import QApplication, QPushButton, QSplitter, QVBoxLayout, QWidget
from typing_extensions import override

from devtools_app.jobs.latest import Latest
from devtools_app.state.requests import DoWithJob, JobAction
from devtools_app.state.state import State
from devtools_app.viewmodels.log_lines import shown_line
from devtools_app.views.spec import Area, ViewContext, ViewSpec
from devtools_app.widgets.empty_state import Need
from devtools_app.widgets.first_focus import first_focus
from devtools_app.widgets.flow_layout import FlowLayout
from devtools_app.widgets.log_text import LogText
from devtools_app.widgets.outcome_line import OutcomeLine
from devtools_app.widgets.push_button import push_button
from devtools_app.widgets.table_view import TableView
from devtools_app.widgets.toolbar_combo import ToolbarCombo
from inspector.jobs.history import RUNNING, JobEntry, LoggedLine, about
from inspector.tables.jobs import job_table, output_size

_NONE = Need(
    "No jobs yet",
    "Every compile, run, comparison of values, bisection, sweep, evaluation and measurement is"
    " listed here, with its log; also after a restart.",
)
_SOON_MS = 120
_BUTTONS = (
    (JobAction.OPEN, "Open result", "Open the files of the job, or the view that shows it"),
    (JobAction.AGAIN, "Again", "Start the job again, with what it was started with"),
    (JobAction.COPY, "Copy as command", "Copy the command that does the same"),
    (JobAction.FOLDER, "Folder", "Show the output folder in the file manager"),
    (JobAction.CLEAN, "Clean…", "Delete the files that the job wrote into its folder"),
    (JobAction.REPORT, "Bug report…", "Save versions, request and log, without weights"),
)
_ALL, _OPEN = "all", "open"
_WITH_FOLDER = (JobAction.FOLDER, JobAction.CLEAN)


class JobsView(QWidget):
    """A list of jobs; beside it the log of the chosen one, with buttons."""

    def __init__(self, context: ViewContext) -> None:
        super().__init__()
        self._context = context
        self._history = context.jobs.history
        self._sizes: dict[str, int] = {}
        self._shown = ""
        self._last: LoggedLine | None = None  # of the log that is shown
        self._measured: object = None
        self._is_chosen = False
        self._awaited = False  # keys are for the list, which is being read
        self.table = TableView(context.theme, "jobs")
        self.table.set_need(_NONE)
        self.scope = ToolbarCombo(context.theme, "of", "Jobs of all programs or of those open")
        self.scope.show_choices([("all programs", _ALL), ("open sessions", _OPEN)], _ALL)
        self.scope.activated.connect(lambda _index: self._refresh())
        self.table.add_tool(self.scope)
        self.error = OutcomeLine(context.theme, context.ask)
        self.log = LogText(context.theme, "log of the job")
        self.cancel = push_button("Cancel", "Cancel the job", self._cancel)
        self.buttons = {what: self._button(what, text, name) for what, text, name in _BUTTONS}
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(_SOON_MS)
        self._soon.timeout.connect(self._refresh)
        self._measuring = Latest("sizes of jobs", self)
        self._measuring.ready.connect(self._take_sizes)
        self._lay_out()
        self._history.changed.connect(self._later)
        self._history.cleaned.connect(self._measure_again)
        self.table.row_chosen.connect(self._row_chosen)
        self.table.row_activated.connect(lambda _row: self._do(JobAction.OPEN))
        self._history.read()
        self._refresh()

    def show_state(self, state: State) -> None:
        """Show jobs that began or ended while the panel was not visible."""
        self._later()

    def take_focus(self) -> None:
        """Focus the list of jobs, as soon as it has any."""
        self._awaited = not self.table.rows.length
        found = first_focus(self.table)
        if found is not None:
            found.setFocus(Qt.FocusReason.OtherFocusReason)

    def start_find(self) -> None:
        """Filter the jobs."""
        self.table.start_find()

    def shut_down(self) -> None:
        """Stop measuring folders."""
        self._history.changed.disconnect(self._later)
        self._soon.stop()
        self._measuring.close()

    def _button(self, what: JobAction, text: str, name: str) -> QPushButton:
        return push_button(text, name, partial(self._do, what))

    def _lay_out(self) -> None:
        buttons = QWidget()
        flow = FlowLayout(6, 6)
        around = QVBoxLayout(buttons)
        around.setContentsMargins(8, 6, 8, 2)
        around.addLayout(flow)
        for button in (*self.buttons.values(), self.cancel):
            flow.addWidget(button)
        chosen = _Beside()
        column = QVBoxLayout(chosen)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(buttons)
        column.addWidget(self.error)
        column.addWidget(self.log, 1)
        parts = QSplitter(Qt.Orientation.Horizontal)
        parts.setChildrenCollapsible(False)
        parts.addWidget(self.table)
        parts.addWidget(chosen)
        parts.setSizes([700, 400])
        parts.setStretchFactor(0, 7)
        parts.setStretchFactor(1, 4)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(parts)

    # ---- the list
    def _later(self) -> None:
        if not self._soon.isActive():
            self._soon.start()

    def _refresh(self) -> None:
        entries = self._history.entries
        self._measure(entries)
        if self.scope.currentData() == _OPEN:
            sessions = self._context.store.state.sessions
            files = [Path(file.path) for one in sessions for file in one.session.files]
            entries = about(entries, files)
        units = self._context.store.state.units
        self.table.show_table(job_table(entries, units, now=time.time(), sizes=self._sizes))
        if not self._is_chosen and entries:  # the newest, until the user chooses
            self.table.show_current(entries[0].id)
        focus = QApplication.focusWidget()
        if self._awaited and entries and focus is not None and self.isAncestorOf(focus):
            self.take_focus()
        self._show_chosen()
        if any(one.state == RUNNING for one in entries):
            self._soon.start(1000)  # the time of a running job goes on

    def _measure(self, entries: tuple[JobEntry, ...]) -> None:
        """Look at the disk in a thread, when a job has ended or files were deleted."""
        ended = tuple(one.id for one in entries if one.ended is not None)
        if ended == self._measured:
            return
        self._measured = ended
        targets = tuple(dict.fromkeys(one.target for one in entries if one.target))

        def work(_token: object) -> dict[str, int]:
            return {target: size for target in targets if (size := output_size(target))}

        self._measuring.submit(work)

    def _measure_again(self) -> None:
        self._measured = None
        self._later()

    def _take_sizes(self, sizes: dict[str, int]) -> None:
        if sizes != self._sizes:
            self._sizes = sizes
            self._later()

    # ---- the chosen one
    def _row_chosen(self, _row: int) -> None:
        self._is_chosen = True
        self._show_chosen()

    def _chosen(self) -> JobEntry | None:
        key = self.table.current_key()
        return None if key is None else self._history.find(str(key))

    def _show_chosen(self) -> None:
        entry = self._chosen()
        may = entry is not None and self._history.may_cancel(entry.id)
        self.cancel.setVisible(may)
        for what, button in self.buttons.items():
            folder = entry is not None and (bool(entry.target) or what not in _WITH_FOLDER)
            runs = what in (JobAction.AGAIN, JobAction.CLEAN, JobAction.OPEN) and may
            button.setEnabled(folder and not runs)
        self.error.show_outcome(None if entry is None else entry.outcome)
        self._show_log(entry)

    def _show_log(self, entry: JobEntry | None) -> None:
        """Show the log of a job; only what is new of the one that is shown."""
        lines = () if entry is None else entry.log
        key = "" if entry is None else entry.id
        last = lines[-1] if lines else None
        if entry is None or key != self._shown or self._last not in lines:
            shown = () if entry is None else (shown_line(entry, one, named=False) for one in lines)
            self.log.show_lines(shown)
        elif last is not self._last:
            added = lines[lines.index(self._last) + 1 :]
            self.log.add(shown_line(entry, one, named=False) for one in added)
        self._shown, self._last = key, last

    def _do(self, what: JobAction) -> None:
        entry = self._chosen()
        if entry is not None:
            self._context.ask(DoWithJob(entry.id, what))

    def _cancel(self) -> None:
        entry = self._chosen()
        if entry is not None:
            self._history.cancel(entry.id)


class _Beside(QWidget):
    """Leaves the list its width in a small window."""

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(260, 80)


SPEC = ViewSpec("jobs", "Jobs", Area.BOTTOM, JobsView, "jobs", without_session=True)
