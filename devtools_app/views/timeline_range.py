"""The range of the timeline: its sums, its operators, and its export."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from devtools_app.appearance.theme import Theme
from devtools_app.jobs.latest import Latest, Token
from devtools_app.widgets.elided_label import ElidedLabel
from devtools_app.widgets.empty_state import Need
from devtools_app.widgets.exports import Exports, text_format
from devtools_app.widgets.fields import ToolButton
from devtools_app.widgets.files import Done, unreported
from devtools_app.widgets.table_view import TableView
from inspector.export.chrome_trace import chrome_trace, trace_lines
from inspector.files.session import Session
from inspector.profile.time_range import TimeRange, range_times, run_ranges
from inspector.render.delimited import write_table
from inspector.tables.selection import Units
from inspector.tables.table import Table
from inspector.tables.time_range import range_summary, range_table

FILTERS = "Tab-separated (*.tsv);;Comma-separated (*.csv);;Chrome or Perfetto trace (*.json)"
_NOTHING = Need("No operator in this range", "No event of an instruction lies in it.")


@dataclass(frozen=True, slots=True, eq=False)
class RangeContent:
    """The content of a range.

    Attributes:
        session: whose traces
        method: of it
        span: the range
        summary: its sums in a line
        table: its operators
    """

    session: Session
    method: str
    span: TimeRange
    summary: str
    table: Table


def range_content(session: Session, method: str, span: TimeRange, units: Units) -> RangeContent:
    """Return the sums and the operators of a range.

    Raises: RangeError
    """
    sums, rows = range_times(session, method, span)
    table = range_table(method, sums, rows, units)
    return RangeContent(session, method, span, range_summary(sums, units.time), table)


def write_trace(content: RangeContent, out: TextIO) -> None:
    """Write the events of a range as a Chrome trace."""
    trace = chrome_trace(content.session, run_ranges(content.session, content.method, content.span))
    out.writelines(trace_lines(trace))


class RangePanel(QWidget):
    """The selected range of time: a line of sums, and a table of the operators in it.

    Signals:
        shown(): the range of the newest request is shown

    Attributes:
        table: the operators of the range
        summary: the sums
    """

    shown = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setAccessibleName("Selected range")
        self.table = TableView(theme, "operators in the range")
        self.table.set_need(_NOTHING)
        self.summary = ElidedLabel()
        self._content: RangeContent | None = None
        self._latest, self._exports = Latest("range", self), Exports(self)
        self._latest.ready.connect(self.show_content)
        self._latest.failed.connect(lambda error: self._fail(str(error)))
        self._bar = QHBoxLayout()
        self._bar.setContentsMargins(12, 4, 12, 0)
        self._bar.setSpacing(6)
        self._bar.addWidget(self.summary, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(self._bar)
        layout.addWidget(self.table, 1)

    @property
    def content(self) -> RangeContent | None:
        """Return what is shown, None while it is computed."""
        return self._content

    @property
    def working(self) -> bool:
        """Return whether a range is being computed or written."""
        return self._latest.busy or self._exports.busy

    def add_button(self, text: str, tip: str, pressed: Callable[[], object]) -> None:
        """Add a button to the line of sums."""
        button = ToolButton()
        button.setText(text)
        button.setToolTip(tip)
        button.setAccessibleName(tip)
        button.clicked.connect(lambda: pressed())
        self._bar.addWidget(button)

    def show_range(self, session: Session, method: str, span: TimeRange, units: Units) -> None:
        """Show a range as soon as it is computed."""
        self._content = None

        def work(token: Token) -> RangeContent:
            token.check()
            return range_content(session, method, span, units)

        self._latest.submit(work)

    def clear(self) -> None:
        """Drop the range."""
        self._latest.cancel()
        self._content = None
        self.summary.setText("")
        self.table.show_table(Table())

    def export_to(self, path: Path, done: Done = unreported) -> bool:
        """Begin to write the table as TSV or CSV, or the events as a Chrome trace."""
        content = self._content
        if content is None:
            return False
        if path.suffix.lower() != ".json":
            return self.table.export_to(path, done)
        self.write(path, lambda: content, done)
        return True

    def write(self, path: Path, content: Callable[[], RangeContent], done: Done) -> None:
        """Begin to write a range that is computed in the thread, whatever range is shown."""
        trace, kind = path.suffix.lower() == ".json", text_format(path)

        def write(out: TextIO) -> None:
            found = content()
            if trace:
                write_trace(found, out)
            else:
                write_table(found.table, range(found.table.length), out, kind)

        self._exports.start(path, write, done)

    def shut_down(self) -> None:
        """Stop running threads."""
        self._latest.close()

    def show_content(self, content: object) -> None:
        """Show a range that was computed."""
        if isinstance(content, RangeContent):
            self._content = content
            self.summary.setText(content.summary)
            self.table.show_table(content.table)
            self.shown.emit()

    def _fail(self, text: str) -> None:
        self.summary.setText(text)
        self.table.show_table(Table())
