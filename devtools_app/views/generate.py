"""Generates text with the language model of the session shown: text, times, calls."""

from __future__ import annotations

from pathlib import Path, PurePath

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence, QShortcut, QTextCursor
from PySide6.QtWidgets import (
    QHBoxLayout,
    QPlainTextEdit,
    QSplitter,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from devtools_app.appearance.theme import set_role
from devtools_app.dialogs.generate_fields import GenerateFields
from devtools_app.jobs.follower import JobProgress
from devtools_app.jobs.generated import generated_report
from devtools_app.jobs.latest import Latest
from devtools_app.state.requests import ShowStatus
from devtools_app.state.run_form import Runnable, runnable
from devtools_app.state.state import State
from devtools_app.views.spec import Area, ViewContext, ViewSpec
from devtools_app.widgets.call_plot import CallPlot
from devtools_app.widgets.elided_label import ElidedLabel
from devtools_app.widgets.empty_state import EmptyState, Need
from devtools_app.widgets.form_scroll import FormScroll
from devtools_app.widgets.job_page import set_job_page, show_job_page
from devtools_app.widgets.kept_focus import kept_focus
from devtools_app.widgets.outcome_line import OutcomeLine
from devtools_app.widgets.push_button import push_button
from devtools_app.widgets.splitter import fill_splitter
from devtools_app.widgets.table_view import TableView
from inspector.files.language_model import no_language_model
from inspector.files.session import Session
from inspector.jobs.generating import GenerationState
from inspector.jobs.messages import STOP
from inspector.recipes.llm_source import llm_source
from inspector.tables.compile_stages import stage_table
from inspector.tables.generation import calls_table, later_calls, speed_table
from inspector.tables.selection import AUTOMATIC, Units
from inspector.units import NS_PER_MS, format_elapsed
from schema.objects.plural import plural

_COMMAND = "etscope llm export -o out"
_NO_PROGRAM = Need("No program", "A language model (.pte) generates text here: open one.", _COMMAND)
_ANY = "All files (*)"


class GenerateView(QWidget):
    """Fields on the left; on the right the text as it appears, below it times and calls."""

    def __init__(self, context: ViewContext) -> None:
        super().__init__()
        self._ask = context.ask
        self._paths = context.paths
        self._theme = context.theme
        self._jobs, self.runner = context.jobs, context.jobs["generate"]
        self._what: Runnable | None = None
        self._key: object = None
        self._units: Units = AUTOMATIC
        self._text = ""
        self._listed: object = None
        self._finding = Latest("configuration of a language model", self)
        self._title = ElidedLabel()
        self._go = push_button(
            "Generate", "Generate text behind the prompt  (Ctrl+Return)", self.start
        )
        set_role(self._go, "primary", "true")
        self._stop = push_button("Stop", "Stop; the text so far stays", self.stop)
        self.fields = GenerateFields(context.theme)
        self._error = OutcomeLine(context.theme, context.ask)
        self.output = QPlainTextEdit()
        self.output.setObjectName("plain")
        self.output.setReadOnly(True)
        self.output.setTabChangesFocus(True)
        self.output.setAccessibleName("Generated text")
        self.output.setPlaceholderText("The text appears here, token by token.")
        self.times = TableView(context.theme, "times of the generation")
        self.times.hide_tools()
        self.calls = TableView(context.theme, "calls of the program")
        self.calls.hide_tools()
        self.plot = CallPlot(context.theme)
        self._empty = EmptyState(context.theme, _NO_PROGRAM)
        self._pages = QStackedWidget()
        self._lay_out()
        keys = QShortcut(QKeySequence("Ctrl+Return"), self)
        keys.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        keys.activated.connect(self.start)
        self.fields.file_requested.connect(self._choose_tokenizer)
        self._finding.ready.connect(lambda name: self.fields.show_source(str(name)))
        self.runner.changed.connect(self._refresh)
        context.theme.follow(self._restyle)
        self._restyle()
        self._refresh()

    @property
    def error(self) -> str:
        """Return why the last generation failed, empty without an error."""
        return self._error.text

    @property
    def title(self) -> str:
        """Return the current or last generation."""
        return self._title.text()

    def take_focus(self) -> None:
        """Focus the prompt, or the button that stops."""
        busy = self._stop.isVisibleTo(self)
        (self._stop if busy else self.fields.prompt).setFocus(Qt.FocusReason.OtherFocusReason)

    def show_state(self, state: State) -> None:
        """Offer the program of the session shown."""
        one = state.open_session
        key = (one.id, one.revision) if one is not None else None
        if (key, state.units) == (self._key, self._units):
            return
        self._units, self._listed = state.units, None
        if key != self._key:
            self._key = key
            self._what = runnable(one.id, one.session) if one is not None else None
            self._find_source()
        self._refresh()

    def start(self) -> None:
        """Start to generate, unless a field is wrong."""
        what = self._what
        if what is None or self.runner.running:
            return
        if not self.fields.check():
            if self.fields.problem(self.fields.prompt):
                self.fields.prompt.setFocus(Qt.FocusReason.OtherFocusReason)
            return
        job = self.fields.job(what, self._jobs.run_form)
        if problem := self.runner.start(job, about=what.session):
            self._ask(ShowStatus(problem))

    def stop(self) -> None:
        """Stop behind the current token; before the first one, or when pressed again, cancel."""
        was_ending = self._ending()
        if not was_ending:
            self.runner.send(dict(STOP))
        if was_ending or not self._ending():
            self.runner.cancel()

    def _ending(self) -> bool:
        found = self.runner.current
        return found is not None and _state(found).ending

    def shut_down(self) -> None:
        """Stop running threads; called once before the window closes."""
        self._finding.close()

    def _find_source(self) -> None:
        """Look for the configuration that names the tokenizer."""
        self.fields.show_source("")
        if self._what is not None:
            folder = Path(self._what.program).parent
            self._finding.submit(lambda _token: _source_name(folder))

    def _choose_tokenizer(self) -> None:
        if path := self._paths.open_file(self, "Tokenizer", _ANY):
            self.fields.tokenizer.setText(path)

    # -- what is shown ---------------------------------------------------------------------

    def _shown(self) -> JobProgress | None:
        """Return the job that runs, or the last one if it was of the program shown."""
        found, what = self.runner.current, self._what
        if found is None or found.running or what is None:
            return found
        return found if found.job.program == what.program else None

    def _refresh(self) -> None:
        found, what = self._shown(), self._what
        show_job_page(self._pages, 0 if found is None and what is None else 1)
        busy = self.runner.running
        with kept_focus(self._stop, self._go):
            self._go.setVisible(not busy)
            self._go.setEnabled(what is not None)
            self._stop.setVisible(busy)
            self._stop.setEnabled(found is not None and not found.cancelling)
        self._stop.setText("Cancel" if found is not None and _state(found).ending else "Stop")
        self._title.setText(_title(found, what))
        self._error.show_outcome(None if found is None else found.outcome)
        self._show_text("" if found is None else _text_of(found))
        self._show_tables(found)

    def _show_text(self, text: str) -> None:
        """Append only new text, so that selection and scroll position stay."""
        if text == self._text:
            return
        bar = self.output.verticalScrollBar()
        follows = bar.value() == bar.maximum()
        if not self._text:
            self._restyle()  # what is hidden when Qt first styles it loses its font
        if self._text and text.startswith(self._text):
            cursor = QTextCursor(self.output.document())
            cursor.movePosition(QTextCursor.MoveOperation.End)
            cursor.insertText(text[len(self._text) :])
        else:
            self.output.setPlainText(text)
        self._text = text
        if follows:
            bar.setValue(bar.maximum())

    def _show_tables(self, found: JobProgress | None) -> None:
        done = generated_report(found)
        listed = None if found is None else (id(found.job), len(found.stages), found.outcome)
        self.times.setVisible(found is not None)
        for part in (self.calls, self.plot):
            part.setVisible(done is not None)
        if found is None or (listed == self._listed and not found.running):
            return
        self._listed = listed
        if done is None:
            table = stage_table(found.stages, found.stage_seconds, found.outcome)
            self.times.show_table(table)
            return
        self.times.show_table(speed_table(done, self._units))
        self.calls.show_table(calls_table(done["calls"], self._units))
        later = later_calls(done["calls"])
        positions = np.array([one["position"] for one in later], np.int64)
        times = np.array([one["ms"] for one in later], np.float64) * NS_PER_MS
        self.plot.show_calls(positions, times, self._units.time)

    # -- layout ----------------------------------------------------------------------------

    def _restyle(self) -> None:
        self.output.setFont(self._theme.mono())

    def _lay_out(self) -> None:
        bar = QHBoxLayout()
        bar.setContentsMargins(12, 6, 12, 6)
        bar.setSpacing(8)
        parts = QSplitter(Qt.Orientation.Horizontal)
        column, right = (QSplitter(Qt.Orientation.Vertical) for _ in range(2))
        left = QWidget()
        left.setObjectName("page")
        set_job_page(self, self._pages, self._empty, bar, self._error, parts)
        fill_splitter(parts, column, right, sizes=[430, 750])
        parts.setStretchFactor(1, 1)
        fill_splitter(column, FormScroll(left), self.times, sizes=[310, 290])
        fill_splitter(right, self.output, self.plot, self.calls, sizes=[240, 130, 230])
        bar.addWidget(self._title, 1)
        for button in (self._stop, self._go):
            bar.addWidget(button)
        form = QVBoxLayout(left)
        form.setContentsMargins(0, 0, 0, 0)
        form.addWidget(self.fields)
        form.addStretch(1)


def _source_name(folder: Path) -> str:
    source = llm_source(folder)
    return "" if source is None else PurePath(source.path).name


def _state(found: JobProgress) -> GenerationState:
    return found.state if isinstance(found.state, GenerationState) else GenerationState()


def _text_of(found: JobProgress) -> str:
    done = generated_report(found)
    return _state(found).text if done is None else str(done["text"])


def _title(found: JobProgress | None, what: Runnable | None) -> str:
    if found is None:
        return f"Generate with {PurePath(what.program).name}" if what is not None else "Generate"
    name, done = PurePath(found.job.program).name, generated_report(found)
    if done is not None:
        rate = f" · {done['tokens_per_second']:.4g} tokens/s behind the prompt"
        count = plural(len(done["tokens"]), "token")
        return f"{name}: {count}{rate} · ended by {done['ended']}"
    if found.outcome is not None:
        return f"{name}: {found.outcome.ended.value} after {format_elapsed(found.seconds, 1)}"
    state = _state(found)
    verb = "Cancelling" if found.cancelling else "Stopping" if state.ending else "Generating with"
    far = plural(state.calls, "call") if state.calls else found.stage
    return f"{verb} {name} · {far} · {format_elapsed(found.seconds, 1)}"


def _needs(session: Session) -> Need | None:
    """Return why a session generates no text, None if it does."""
    if session.program is None:
        return _NO_PROGRAM
    why = no_language_model(session.program)
    if not why:
        return None
    title, _, reason = why.partition(": ")
    return Need(f"{title[:1].upper()}{title[1:]}", f"{reason[:1].upper()}{reason[1:]}.", _COMMAND)


SPEC = ViewSpec("generate", "Generate", Area.CENTRE, GenerateView, "play", needs=_needs)
