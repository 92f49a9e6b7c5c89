"""Backends: what each needs and runs, and which share of the open model each would take."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QLabel, QScrollArea, QSplitter
from typing_extensions import override

from devtools_app.state.state import OpenSession, State
from devtools_app.views.pane import Pane
from devtools_app.views.pane_parts import PanelActions
from devtools_app.views.spec import Area, ViewContext, ViewSpec
from devtools_app.widgets.table_view import TableView
from devtools_app.widgets.toolbar_combo import ToolbarCombo
from inspector.files.session import Session
from inspector.jobs.backend_plan import (
    BackendCardJob,
    BackendFacts,
    BackendPlan,
    BackendPlanJob,
)
from inspector.jobs.table import kind_of
from inspector.recipes.recipe import RecipeError
from inspector.recipes.session_recipe import session_recipe
from inspector.tables.backends import backends, card_table, plan_table, with_short_states
from inspector.tables.selection import AUTOMATIC
from inspector.tables.table import Table
from inspector.toolchain.backend_cards import backend_card, backend_cards, card_lines, plannable

_CARDS, _PLAN = "cards", "plan"


class BackendsPane(PanelActions, Pane):
    """A table of all backends, or of what each would take; below it the card of the chosen one."""

    def __init__(self, context: ViewContext) -> None:
        super().__init__(context, "Backends")
        self.runner = context.jobs["backend_plan"]
        self.reader = context.jobs["backend_card"]
        self.table = TableView(context.theme, "backends")
        self.card = QLabel()
        self.card.setWordWrap(True)
        self.card.setMargin(12)
        self.card.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.card.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.shown = ToolbarCombo(context.theme, "show", "What the table shows")
        self.shown.show_choices([("all backends", _CARDS), ("the plan", _PLAN)], _CARDS)
        self.add_tool(self.shown)
        self._plan = self.add_button(
            "Plan", "Find the share of this model that each backend would take", self.plan
        )
        self._cancel = self.add_button("Cancel", "Cancel the plan", self.runner.cancel)
        self._cancel.hide()
        self._read = self.add_button(
            "Operators",
            "Read options and operators of the chosen backend from its vendor's tables",
            self.read_tables,
        )
        self._plans: dict[OpenSession, BackendPlan] = {}
        self._facts: dict[str, BackendFacts] = {}
        parts = QSplitter(Qt.Orientation.Vertical)
        parts.addWidget(self.table)
        scroll = QScrollArea()  # a card is longer than a small window has room for
        scroll.setWidget(self.card)
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setAccessibleName("Card of the chosen backend")
        parts.addWidget(scroll)
        parts.setChildrenCollapsible(False)
        parts.setSizes([420, 200])
        self.set_content(parts)
        self.table.row_chosen.connect(lambda _row: self._show_card())
        self.shown.activated.connect(lambda _at: self._show_again())
        self.runner.changed.connect(self._follow)
        self.reader.changed.connect(self._follow_reading)

    # -- state -----------------------------------------------------------------------------

    @override
    def show_state(self, state: State) -> None:
        """Show the backends, with or without a session."""
        session, of = state.session, state.open_session
        plan = self._plans.get(of) if of is not None else None
        planned = self.shown.currentData() == _PLAN
        self.request((of, planned, plan), lambda: _table(session, plan if planned else None))
        self._show_job()

    @override
    def show_session(self, session: Session, state: State) -> None:
        """Show the backends of a session."""
        self.show_state(state)

    @override
    def show_result(self, result: object) -> None:
        """Show a table."""
        if isinstance(result, Table):
            self.table.show_table(result)
            if self.table.current_row() < 0 and result.length:
                self.table.show_current(result.key(_first_used(result)))
            self.show_content()
            self._show_card()
            self._show_job()

    # -- the plan --------------------------------------------------------------------------

    def plan(self) -> None:
        """Let each backend that can be used here partition the program of the session."""
        session = self.state.session
        if session is None:
            self._tell("Open a program with its ETRecord to plan it")
            return
        try:
            job = session_recipe(session).recipe.job
        except RecipeError as error:
            self._tell(str(error))
            return
        request = BackendPlanJob(job, plannable())
        self.runner.start(request, about=self.state.open_session, replace_running=True)

    def _follow(self) -> None:
        found = self.runner.current
        done = found is not None and not found.running and found.outcome is not None
        if found is not None and done and not found.error and isinstance(found.about, OpenSession):
            assert found.outcome is not None
            plan = kind_of(found.job).read_result(found.outcome.result)
            if self._plans.get(found.about) != plan:
                self._plans[found.about] = plan
                self.shown.show_choices([("all backends", _CARDS), ("the plan", _PLAN)], _PLAN)
                self._show_again()
        self._show_job()

    def _show_again(self) -> None:
        if self.isVisible():
            self.show_state(self.state)

    def _show_job(self) -> None:
        found = self.runner.current
        running = found is not None and found.running
        self._cancel.setVisible(running)
        self._plan.setVisible(not running)
        words = ""
        if found is not None and running:
            at = found.counted
            words = f"Planning: {at.done} of {at.total} backends" if at is not None else "Planning"
        elif found is not None and found.error:
            words = found.error
        elif self.shown.currentData() == _PLAN and self._known() is None:
            words = "No plan yet: Plan finds the share that each backend would take"
        self._tell(words)

    def _known(self) -> BackendPlan | None:
        of = self.state.open_session
        return self._plans.get(of) if of is not None else None

    def _tell(self, words: str) -> None:
        self.note.setText(words)
        self.note.setToolTip(words)

    # -- the card --------------------------------------------------------------------------

    def read_tables(self) -> None:
        """Read what the tables of the chosen backend list, in a worker that may import them."""
        name = self._chosen()
        if name:
            self.reader.start(BackendCardJob(name), about=name, replace_running=True)

    def _follow_reading(self) -> None:
        found = self.reader.current
        ended = found is not None and not found.running and found.outcome is not None
        if found is not None and ended and not found.error and isinstance(found.about, str):
            assert found.outcome is not None
            self._facts[found.about] = kind_of(found.job).read_result(found.outcome.result)
        self._show_card()

    def _chosen(self) -> str:
        """Return the name of the chosen backend, empty without one."""
        key = self.table.current_key()
        name = key[0] if isinstance(key, tuple) else key
        return name.partition(":")[0] if isinstance(name, str) else ""

    def _show_card(self) -> None:
        name, running = self._chosen(), self.reader.running
        self._read.setEnabled(bool(name) and not running)
        if not name:
            self.card.setText("Choose a backend to read its card")
            return
        current, facts = self.reader.current, self._facts.get(name)
        about = current is not None and current.about == name
        words = ("", "") if facts is None else (facts.option_words(), facts.operator_words())
        if about and running:
            words = ("being read", "being read")
        elif about and current is not None and current.error and facts is None:
            words = (current.error, current.error)
        try:
            lines = card_lines(backend_card(name), *words)
        except KeyError:
            lines = {}
        self.card.setText("\n".join(f"{title}: {text}" for title, text in lines.items()))


def _first_used(table: Table) -> int:
    """Return the first row whose backend has delegates in the session, else the first row."""
    counts = next((one.values for one in table.columns if one.title == "delegates"), ())
    return next((row for row, count in enumerate(counts) if count), 0)


def _table(session: Session | None, plan: BackendPlan | None) -> Table:
    if plan is not None:
        return plan_table(plan)
    found = card_table(backend_cards()) if session is None else backends(session, AUTOMATIC)
    return with_short_states(found)


SPEC = ViewSpec(
    "backends", "Backends", Area.CENTRE, BackendsPane, "partitions", without_session=True
)
