"""The range of the timeline: its sums, its operators, and its export."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from devtools_app.appearance.theme import Theme
from devtools_app.jobs.latest import Latest, Token
from devtools_app.widgets.elided_label import ElidedLabel
from devtools_app.widgets.empty_state import Need
from devtools_app.widgets.fields import ToolButton
from devtools_app.widgets.files import write_text_file
from devtools_app.widgets.table_view import TableView
from inspector.export.chrome_trace import chrome_trace, trace_lines
from inspector.files.session import Session
from inspector.profile.time_range import TimeRange, range_times, run_ranges
from inspector.tables.selection import Units
from inspector.tables.table import Table
from inspector.tables.time_range import range_summary, range_table

FILTERS = "Tab-separated (*.tsv);;Comma-separated (*.csv);;Chrome or Perfetto trace (*.json)"
_NOTHING = Need("No operator in this range", "No event of an instruction lies in it.")


@dataclass(frozen=True, slots=True, eq=False)
class RangeContent:
    """What a range shows.

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


def write_trace(content: RangeContent, path: Path) -> None:
    """Write the events of a range as a Chrome trace.

    Raises: OSError
    """
    trace = chrome_trace(content.session, run_ranges(content.session, content.method, content.span))
    write_text_file(path, lambda out: out.writelines(trace_lines(trace)))


class RangePanel(QWidget):
    """The selected range of time: a line of sums, and a table of what lies in it.

    Signals:
        shown(): the range of the newest request is shown
        exported(text): a file was written, or why not

    Attributes:
        table: the operators of the range
        summary: the sums
    """

    shown = Signal()
    exported = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setAccessibleName("Selected range")
        self.table = TableView(theme, "operators in the range")
        self.table.set_need(_NOTHING)
        self.summary = ElidedLabel()
        self.summary.setAccessibleName("Sums of the range")
        self._content: RangeContent | None = None
        self._latest, self._writing = Latest("range", self), Latest("range export", self)
        self._latest.ready.connect(self.show_content)
        self._latest.failed.connect(lambda error: self._fail(str(error)))
        self._writing.ready.connect(lambda path: self.exported.emit(f"Exported {path}"))
        self._writing.failed.connect(lambda error: self.exported.emit(f"Not exported: {error}"))
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
        return self._latest.busy or self._writing.busy

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

    def export_to(self, path: Path) -> bool:
        """Write the table as TSV or CSV, or the events as a Chrome trace, by the suffix."""
        content = self._content
        if content is None:
            return False
        if path.suffix.lower() != ".json":
            return self.table.export_to(path)

        def work(_token: Token) -> Path:
            write_trace(content, path)
            return path

        self._writing.submit(work)
        return True

    def shut_down(self) -> None:
        """Stop running threads."""
        self._latest.close()
        self._writing.close()

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
