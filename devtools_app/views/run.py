"""Runs the program of the session shown: input, progress, results."""

from __future__ import annotations

from pathlib import PurePath

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QSplitter,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from devtools_app.appearance.theme import set_role
from devtools_app.dialogs.form_parts import LIBRARY_FILES
from devtools_app.dialogs.run_fields import RunFields
from devtools_app.jobs.follower import JobProgress
from devtools_app.state.requests import AskBundle, ChooseFiles, Execute
from devtools_app.state.run_form import LEVELS, RunForm, Runnable, runnable
from devtools_app.state.state import State
from devtools_app.views.spec import Area, ViewContext, ViewSpec
from devtools_app.widgets.elided_label import ElidedLabel
from devtools_app.widgets.empty_state import EmptyState, Need
from devtools_app.widgets.form_scroll import FormScroll
from devtools_app.widgets.job_page import set_job_page, show_job_page
from devtools_app.widgets.kept_focus import kept_focus
from devtools_app.widgets.outcome_line import OutcomeLine
from devtools_app.widgets.problem_label import problem_label
from devtools_app.widgets.push_button import push_button
from devtools_app.widgets.table_view import TableView
from inspector.files.session import Session
from inspector.jobs.executing import STOPPABLE, BundleJob, RunJob, VerifyJob
from inspector.jobs.messages import STOP, Ended, Expected
from inspector.tables.calls import sequence_speed
from inspector.tables.compile_stages import stage_table
from inspector.tables.runs import (
    cases_table,
    expected_text,
    outputs_text,
    threads_table,
    threads_text,
    times_table,
)
from inspector.tables.table import Table
from inspector.units import format_bytes, format_elapsed
from schema.objects.plural import plural

_EMPTY = Need(
    "Nothing to run",
    "A .pte or .bpte runs here on ETScope's own runtime, without a device; its trace opens beside"
    " it.",
    "etscope run model.pte -o run",
)
_TENSORS = "Inputs (*.pt *.pth);;All (*)"


class RunView(QWidget):
    """Fields on the left; on the right the running job, or the results of the last one."""

    def __init__(self, context: ViewContext) -> None:
        super().__init__()
        self._ask = context.ask
        self._paths = context.paths
        self._theme = context.theme
        self._jobs, self._running = context.jobs, context.jobs["run"]
        self._what: Runnable | None = None
        self._session: Session | None = None
        self._key: object = None
        self._title = ElidedLabel()
        self._go = push_button("Run", "Run the program", self._start)
        set_role(self._go, "primary", "true")
        self._verify = push_button(
            "Run all cases", "Run all cases of the bundle and compare", self._check
        )
        self._bundle = push_button(
            "Create a bundle…", "Create a bundled program from this program", self._ask_bundle
        )
        self._cancel = push_button("Cancel", "Cancel the run", self._running.cancel)
        self._stop = push_button(
            "Stop", "Stop with the runs there are; their files are written and opened", self._end
        )
        self._fields = RunFields(context.theme, context.jobs.run_form)
        self._problem = problem_label()
        self._problem.setContentsMargins(12, 0, 12, 6)
        self._error = OutcomeLine(context.theme, context.ask)
        self._table = TableView(context.theme, "results of the run")
        self._table.hide_tools()
        self._facts = QPlainTextEdit()
        self._facts.setObjectName("plain")
        self._facts.setReadOnly(True)
        self._facts.setAccessibleName("Outputs, memory and files of the run")
        self._empty = EmptyState(context.theme, _EMPTY)
        self._empty.add_button("Open files…", lambda: self._ask(ChooseFiles(beside=False)))
        self._results = QStackedWidget()
        self._pages = QStackedWidget()
        self._lay_out()
        self._fields.edited.connect(self._edited)
        self._fields.file_requested.connect(self._choose_file)
        self._fields.sequence_requested.connect(self._choose_sequence)
        self._fields.folder_requested.connect(self._choose_folder)
        self._fields.library_requested.connect(self._choose_library)
        self._running.changed.connect(self._refresh)
        context.theme.follow(self._restyle)
        self._restyle()
        self._edited()
        self._refresh()

    @property
    def table(self) -> Table:
        """Return the results as shown."""
        return self._table.rows

    @property
    def title(self) -> str:
        """Return what is run, or was run last."""
        return self._title.text()

    @property
    def facts(self) -> str:
        """Return the summary of outputs, memory and files."""
        return self._facts.toPlainText()

    @property
    def error(self) -> str:
        """Return why the last job failed, empty without an error."""
        return self._error.text

    @property
    def problem(self) -> str:
        """Return why no program can be run, else empty."""
        return "" if self._problem.isHidden() else self._problem.text()

    def take_focus(self) -> None:
        """Focus the button that starts a run, or cancels the running one."""
        for button in (self._cancel, self._go):
            if button.isEnabled() and button.isVisible():
                button.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def show_state(self, state: State) -> None:
        """Offer the program of the session shown."""
        one = state.open_session
        key = (one.id, one.revision) if one is not None else None
        if key == self._key and self._key is not None:
            return
        self._key = key
        self._session = one.session if one is not None else None
        self._what = runnable(one.id, one.session) if one is not None else None
        self._fields.show_program(self._what)
        self._edited()
        self._refresh()

    def _lay_out(self) -> None:
        split = QSplitter(Qt.Orientation.Horizontal)
        split.setChildrenCollapsible(False)
        bar = QHBoxLayout()
        bar.setContentsMargins(12, 6, 12, 6)
        bar.setSpacing(8)
        set_job_page(self, self._pages, self._empty, bar, self._error, split)
        bar.addWidget(self._title, 1)
        for button in (self._bundle, self._verify, self._stop, self._cancel, self._go):
            bar.addWidget(button)
        left = QWidget()
        left.setObjectName("page")
        split.addWidget(FormScroll(left))
        split.addWidget(self._results)
        split.setSizes([400, 780])
        split.setStretchFactor(1, 1)
        form = QVBoxLayout(left)
        form.setContentsMargins(0, 0, 0, 0)
        form.setSpacing(0)
        form.addWidget(self._fields)
        form.addWidget(self._problem)
        form.addStretch(1)
        hint = QLabel("Times, outputs and the verdicts of bundled cases appear here.")
        hint.setAlignment(Qt.AlignmentFlag.AlignCenter)
        hint.setWordWrap(True)
        set_role(hint, "role", "muted")
        shown = QSplitter(Qt.Orientation.Horizontal)
        shown.setChildrenCollapsible(False)
        self._results.addWidget(hint)
        self._results.addWidget(shown)
        shown.addWidget(self._table)
        shown.addWidget(self._facts)
        shown.setSizes([300, 480])
        shown.setStretchFactor(1, 1)

    def _restyle(self) -> None:
        self._facts.setFont(self._theme.mono())

    def _edited(self) -> None:
        form = self._fields.form()
        self._jobs.run_form = form
        self._fields.show_logged(self._logged_text(form))
        problem = form.problem(self._what)
        self._problem.setText(problem)
        self._problem.setVisible(bool(problem))
        self._go.setEnabled(not problem and not self._running.running)

    def _logged_text(self, form: RunForm) -> str:
        """Return how many bytes the values of a run will take, empty if none are recorded."""
        from inspector.memory.logged import logged_bytes  # it reads the payloads of delegates

        session, what = self._session, self._what
        if form.level == LEVELS[0] or session is None or what is None:
            return ""
        program = session.bundled_program_table if what.bundled else session.program
        method = form.method_of(what)
        if program is None or method not in what.methods:
            return ""
        size, whole = logged_bytes(program, method, form.level)
        least = "" if whole and not (form.toolchain or form.device) else "at least "
        return f"one run will write {least}{format_bytes(size)} of values"

    def _shown(self) -> JobProgress | None:
        """Return the job that runs, or the last one if it was about the program shown."""
        found, what = self._running.current, self._what
        if found is None or found.running or what is None:
            return found
        return found if what.program in (_program(found), found.target) else None

    def _refresh(self) -> None:
        with kept_focus(self._cancel, self._go, self._bundle, self._verify, self._stop):
            self._show_job()

    def _show_job(self) -> None:
        found, what = self._shown(), self._what
        show_job_page(self._pages, 0 if found is None and what is None else 1)
        busy = self._running.running
        for button in (self._go, self._bundle, self._verify):
            button.setVisible(not busy)
        self._bundle.setEnabled(what is not None)
        self._verify.setVisible(not busy and what is not None and what.bundled)
        self._cancel.setVisible(busy)
        self._cancel.setEnabled(found is not None and not found.cancelling)
        self._stop.setVisible(found is not None and _may_stop(found))
        self._stop.setEnabled(found is not None and not found.state)
        self._fields.setEnabled(not busy)
        if not busy:
            self._fields.show_folder()
        self._go.setEnabled(not busy and not self._problem.text())
        self._title.setText(_title(found, what))
        self._results.setCurrentIndex(0 if found is None else 1)
        self._error.show_outcome(None if found is None else found.outcome)
        if found is not None:
            self._show_results(found)

    def _show_results(self, found: JobProgress) -> None:
        outcome = found.outcome
        self._facts.setVisible(False)
        self._restyle()  # what is hidden when Qt first styles it loses its font
        if outcome is None or outcome.ended is not Ended.FINISHED:
            self._table.show_table(stage_table(found.stages, found.stage_seconds, outcome))
            if outcome is None and isinstance(found.last, Expected):
                words = f"{expected_text(found.last)}.\nStop ends with the runs there are."
                self._facts.setPlainText(words)
                self._facts.setVisible(True)
        elif isinstance(found.job, RunJob):
            swept = bool(outcome.result.get("thread_sweep"))
            single = sequence_speed if found.job.sequence else times_table
            self._table.show_table((threads_table if swept else single)(outcome.result))
            words = f"{threads_text(outcome.result)}\n" if swept else ""
            self._facts.setPlainText(words + outputs_text(outcome.result))
            self._facts.setVisible(True)
        elif isinstance(found.job, VerifyJob):
            self._table.show_table(cases_table(outcome.result))
        else:
            self._table.show_table(stage_table(found.stages, found.stage_seconds, outcome))
            self._facts.setPlainText("\n".join(one.text for one in found.warnings))
            self._facts.setVisible(bool(found.warnings))

    def begin(self) -> None:
        """Run the program with the fields as they are, if they are right."""
        self._go.click()

    def _start(self) -> None:
        form, what = self._fields.form(), self._what
        if what is not None and not form.problem(what):
            self._ask(Execute(form.job(what), what.session, form.target(what)))
            self._fields.forget_choices_of_a_run()

    def _end(self) -> None:
        self._running.send(dict(STOP))

    def _check(self) -> None:
        what = self._what
        if what is not None:
            form = self._fields.form()
            run = form.job(what)
            job = VerifyJob(
                what.program,
                record=what.record,
                data_files=what.data_files,
                libraries=form.loaded(what),
                threads=form.fixed_threads,
                engine=run.engine,
                backend_options=run.backend_options,
            )
            self._ask(Execute(job, what.session))

    def _ask_bundle(self) -> None:
        if self._what is not None:
            self._ask(AskBundle(self._what.program, self._what.session, self._what.methods))

    def _choose_file(self) -> None:
        if path := self._paths.open_file(self, "Inputs of the run", _TENSORS):
            self._fields.set_file(path)

    def _choose_sequence(self) -> None:
        if path := self._paths.open_folder(self, "Inputs, a file for each call"):
            self._fields.set_sequence(path)

    def _choose_library(self) -> None:
        title = "Libraries that register operators"
        if path := self._paths.open_file(self, title, LIBRARY_FILES):
            self._fields.add_library(path)

    def _choose_folder(self) -> None:
        if path := self._paths.open_folder(self, "Folder for the files of the run"):
            self._fields.set_folder(path)


def _title(found: JobProgress | None, what: Runnable | None) -> str:
    if found is None:
        return f"Run {PurePath(what.program).name}" if what is not None else "Run"
    name, outcome = _named(found), found.outcome
    if outcome is None:
        verb = "Cancelling" if found.cancelling else "Stopping" if found.state else "Running"
        at = found.counted
        far = f" · {at.done:,} of {at.total:,}" if at is not None else ""
        return f"{verb} {name} · {found.stages[-1].stage}{far} · {format_elapsed(found.seconds, 1)}"
    if outcome.ended is not Ended.FINISHED:
        return f"{name}: {outcome.ended.value} after {format_elapsed(found.seconds, 1)}"
    result = outcome.result
    if isinstance(found.job, RunJob):
        runs = len(result["run_ms"])
        by = f" · {result['where']}" if found.job.toolchain else ""
        if found.job.sequence:
            return f"Ran {result['method']} of {name}: {plural(len(result['calls']), 'call')}"
        times = f"{runs:,} times" if runs > 1 else "once"
        return f"Ran {result['method']} of {name} {times}{by}"
    if isinstance(found.job, VerifyJob):
        total = len(result["cases"])
        return f"{name}: {result['passed']:,} of {total:,} cases passed"
    return f"Made {found.target}"


def _may_stop(found: JobProgress) -> bool:
    """Return whether a job can end with partial results."""
    busy = found.running and not found.cancelling
    return busy and isinstance(found.job, RunJob) and found.stage in STOPPABLE


def _program(found: JobProgress) -> str:
    job = found.job
    if isinstance(job, RunJob | VerifyJob):
        return job.program
    return job.source if isinstance(job, BundleJob) else ""


def _named(found: JobProgress) -> str:
    return PurePath(_program(found)).name


SPEC = ViewSpec("run", "Run", Area.CENTRE, RunView, "play", without_session=True)
