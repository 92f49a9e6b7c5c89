"""The stages of a compile: graph before and after each, changes of nodes, time."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QSplitter
from typing_extensions import override

from devtools_app.state.requests import AskCompile, Recompile
from devtools_app.state.state import OpenSession, State
from devtools_app.viewmodels.scene_search import related_to
from devtools_app.views.pane import Pane
from devtools_app.views.spec import Area, ViewContext, ViewSpec
from devtools_app.widgets.empty_state import Need
from devtools_app.widgets.files import Done, unreported
from devtools_app.widgets.table_view import TableView
from devtools_app.widgets.toolbar_combo import ToolbarCombo
from inspector.files.session import Session
from inspector.files.stage_log import StageLog
from inspector.findings.attempts import recipe_command
from inspector.profile.join_index import join_index
from inspector.tables.selection import Selection
from inspector.tables.stage_steps import (
    ALL,
    CHANGED,
    ShownNodes,
    Steps,
    node_table,
    rows_of,
    step_summary,
    step_table,
    steps_of,
)

_OPTIONS = ("--stages", "-o", "stages")
_COMMAND = shlex.join(["etscope", "compile", "model.py:build", *_OPTIONS])
_ASKED = "Recompile and run (Ctrl+R) writes them; a compile does on request."
_FRESH = "A compile writes them on request; the recipe of this program is unknown."
_UNCHANGED = Need("Nothing changed", "This stage does not change the graph.")
_NO_GRAPH = Need("No graph", "This stage works on no graph, or its graph was not kept.")


@dataclass(frozen=True, slots=True)
class _Missing:
    """Why a session has no stages, and the command that writes those of its program."""

    why: str
    command: str


def _found(session: Session) -> Steps | _Missing:
    steps = steps_of(session)
    if steps.log is not None:
        return steps
    return _Missing(steps.why, recipe_command(session, *_OPTIONS))


class StagesPane(Pane):
    """A list of stages, and beside it the nodes that the chosen one added, removed, replaced."""

    def __init__(self, context: ViewContext) -> None:
        super().__init__(context, "Stages")
        self.stages = TableView(context.theme, "stages")
        self.nodes = TableView(context.theme, "changed nodes")
        self.which = ToolbarCombo(context.theme, "nodes", "Which nodes to list")
        self.which.show_choices([("changed nodes", CHANGED), ("all nodes", ALL)], CHANGED)
        self.which.activated.connect(lambda _index: self._show_step())
        self.nodes.add_tool(self.which, right=True)
        self._recompile = self.empty.add_button("Recompile and run", lambda: self._ask(Recompile()))
        self.empty.add_button("Compile…", lambda: self._ask(AskCompile()))
        self._steps: Steps | None = None
        self._number = -1
        self._own: Selection | None = None
        self._shown: OpenSession | None = None
        both = QSplitter(Qt.Orientation.Horizontal)
        both.addWidget(self.stages)
        both.addWidget(self.nodes)
        both.setChildrenCollapsible(False)
        both.setSizes([312, 918])
        both.setStretchFactor(1, 1)  # the nodes have the longer names
        self.set_content(both)
        self.stages.row_chosen.connect(self._step_chosen)
        self.nodes.row_chosen.connect(self._node_chosen)

    @override
    def show_session(self, session: Session, state: State) -> None:
        """Show the stages of the session of a state."""
        if state.open_session is not self._shown:
            self._shown, self._steps = state.open_session, None
            self.request(state.open_session, lambda: _found(session))

    @override
    def show_result(self, result: object) -> None:
        """Show the stages of a compile, or the nodes of one."""
        if isinstance(result, ShownNodes):
            if result.number == self._number:
                self.nodes.show_table(result.table)
                self.show_selection(self.state)
        elif isinstance(result, _Missing):
            self._show_missing(result)
        elif isinstance(result, Steps) and result.log is not None:
            self._show_steps(result, result.log)

    def _show_missing(self, missing: _Missing) -> None:
        asked = _ASKED if missing.command else _FRESH
        text = f"{missing.why[:1].upper()}{missing.why[1:]}. {asked}"
        self._recompile.setVisible(bool(missing.command))
        self._show_text(Need("No stages of a compile", text, missing.command or _COMMAND))

    def _show_steps(self, steps: Steps, log: StageLog) -> None:
        self._steps = steps
        self.stages.show_table(step_table(log))
        self.show_content()
        steps_with = enumerate(one.change for one in log.steps)
        first = next((at for at, one in steps_with if one is not None and one.plus), 0)
        self.stages.show_current(first)
        self._number = first
        self._show_step()

    def _step_chosen(self, row: int) -> None:
        key = self.stages.rows.key(row)
        if isinstance(key, int) and key != self._number:
            self._number = key
            self._show_step()

    def _show_step(self) -> None:
        steps, number = self._steps, self._number
        if steps is None or steps.log is None or not 0 <= number < len(steps.log.steps):
            return
        step = steps.log.steps[number]
        self.nodes.set_need(_NO_GRAPH if step.after is None else _UNCHANGED)
        self.note.setText(
            f"{step.stage} {step.method}".rstrip() + f": {step_summary(steps.log, number)}"
        )
        which = str(self.which.currentData() or CHANGED)
        self.request(
            (self._shown, number, which),
            lambda: ShownNodes(number, node_table(steps, number, which)),
        )

    def _node_chosen(self, row: int) -> None:
        key = self.nodes.rows.key(row)
        if isinstance(key, Selection):
            self._own = key
            self.select(key)

    @override
    def show_selection(self, state: State) -> None:
        """Highlight the rows of the origins and replacements of the selected node."""
        session, table = state.session, self.nodes.rows
        if session is None or self._steps is None:
            return
        if not state.selection or not state.method:
            self.nodes.highlight([])
            return
        related = related_to(state.selection, join_index(session, state.method))
        highlighted = rows_of(table, related.nodes)
        self.nodes.highlight(highlighted)
        if highlighted and state.selection != self._own:
            self.nodes.show_current(table.key(highlighted[0]))
        self._own = None

    @override
    def _retry(self) -> None:
        self._shown = None
        super()._retry()

    def start_find(self) -> None:
        """Focus the filter of the nodes."""
        self.nodes.start_find()

    def step(self, by: int) -> bool:
        """Go to the next or previous stage; return whether it exists."""
        return self.stages.step(by)

    def export_to(self, path: Path, done: Done = unreported) -> bool:
        """Begin to write the nodes of the chosen stage."""
        return self.nodes.export_to(path, done)


SPEC = ViewSpec("stages", "Stages", Area.CENTRE, StagesPane, "stages")
