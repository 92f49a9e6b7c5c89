"""Choices of the memory view: whose plan is drawn, and whose beside it; computed in a worker."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QObject, Signal

from devtools_app.jobs.follower import JobFollower
from devtools_app.state.state import State
from devtools_app.views.pane import Pane
from devtools_app.widgets.fields import ToolButton
from devtools_app.widgets.toolbar_combo import ToolbarCombo
from inspector.jobs.planning import PLANNERS, PlanJob, PlannerResult
from inspector.jobs.table import kind_of
from inspector.tables.planners import IN_FILE

NONE = ""
_Key = tuple[object, str, bool]


class PlannerChoice(QObject):
    """Two combo boxes in the tools of the view, and the job that computes what they choose.

    Signals:
        changed(): another plan was chosen, or one was computed

    Attributes:
        problem: why plans could not be computed, empty otherwise
    """

    changed = Signal()

    def __init__(self, pane: Pane, runner: JobFollower) -> None:
        super().__init__(pane)
        self.problem = ""
        self._pane = pane
        self._runner = runner
        self._known: dict[_Key, PlannerResult] = {}
        self._failed: object = None  # whose plans could not be computed, until another choice
        names = [(IN_FILE, IN_FILE), *((name, name) for name in PLANNERS)]
        self.drawn = ToolbarCombo(pane.theme, "plan", "Planner whose plan is drawn")
        self.drawn.show_choices(names, IN_FILE)
        self.beside = ToolbarCombo(pane.theme, "beside", "Planner whose plan is drawn beside it")
        self.beside.show_choices([("nothing", NONE), *names], NONE)
        self.lent = ToolButton()
        self.lent.setText("Lent I/O")
        self.lent.setCheckable(True)
        self.lent.setAccessibleName("Inputs and outputs in memory of the caller")
        self.lent.setToolTip(
            "Plans of planners leave out inputs and outputs, as if the caller lent their memory"
        )
        self.lent.hide()
        for combo in (self.drawn, self.beside):
            combo.activated.connect(self._chosen)
            pane.add_tool(combo)
        pane.add_tool(self.lent)
        self.lent.toggled.connect(self._chosen)
        runner.changed.connect(self._follow)

    @property
    def names(self) -> tuple[str, str]:
        """Return the planner that is drawn, and the one beside it or an empty string."""
        return str(self.drawn.currentData()), str(self.beside.currentData())

    @property
    def computing(self) -> bool:
        """Return whether plans are being computed."""
        return self._runner.running

    def found(self, state: State) -> PlannerResult | None:
        """Return the plans of the method of a state, None before they are computed."""
        return self._known.get(self._key(state))

    def _key(self, state: State) -> _Key:
        return state.open_session, state.method, self.lent.isChecked()

    def _chosen(self, _value: object) -> None:
        self.lent.setVisible(self.names != (IN_FILE, NONE))
        self._failed = None
        self.ask(self._pane.state)
        self.changed.emit()

    def ask(self, state: State) -> None:
        """Compute the plans that are chosen, unless they are known or being computed."""
        wanted = any(name in PLANNERS for name in self.names)
        key = self._key(state)
        current = self._runner.current
        same = current is not None and current.running and current.about == key
        known = key in self._known or key == self._failed
        if not wanted or known or same or state.session is None:
            return
        files = state.session.files
        path = next((file.path for file in files if file.kind in ("pte", "bpte")), "")
        if path:
            self.problem = ""
            job = PlanJob(path, state.method, lent=self.lent.isChecked())
            self._runner.start(job, about=key, replace_running=True)

    def _follow(self) -> None:
        found = self._runner.current
        if found is None or found.running:
            return
        if found.error:
            self.problem = f"the plans could not be computed: {found.error}"
            self._failed = found.about
        elif found.outcome is not None and isinstance(found.job, PlanJob):
            open_sessions = self._pane.state.sessions
            kept: Mapping[_Key, PlannerResult] = self._known
            self._known = {key: one for key, one in kept.items() if key[0] in open_sessions}
            result = kind_of(found.job).read_result(found.outcome.result)
            self._known[found.about] = result
        self.changed.emit()
