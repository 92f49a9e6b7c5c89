"""The node panel: all facts about the selection."""

from __future__ import annotations

from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget
from typing_extensions import override

from devtools_app.state.requests import OpenSource, Select, ShowTensor, ShowView
from devtools_app.state.state import State
from devtools_app.state.variant_steps import shown_variant
from devtools_app.viewmodels.node_facts import node_facts
from devtools_app.views.editing import edits_menu, show_edits
from devtools_app.views.pane import Pane
from devtools_app.views.spec import Area, ViewContext, ViewSpec
from devtools_app.widgets.empty_state import Need
from devtools_app.widgets.fact_panel import FactPanel
from devtools_app.widgets.push_button import FittingButton
from inspector.files.session import Session
from inspector.graph.source import SourceFrame
from inspector.tables.facts import FactSheet
from inspector.tables.selection import Selection

_NOTHING = Need(
    "Nothing is selected",
    "Choose an operator in the table, the graph or any other view: its times, tensors, memory and"
    " source line appear here.",
)
_UNKNOWN = Need(
    "Nothing is known about this",
    "The files of this session contain nothing about the selection. An ETRecord adds graphs and"
    " source lines, a trace adds times.",
)

_CHANGE = ("Change the recipe here…", "Change recipe…", "Change…")


class NodePane(Pane):
    """A sheet of facts that follows the selection."""

    HAS_TOOLS = False

    def __init__(self, context: ViewContext) -> None:
        super().__init__(context, "Node")
        self.facts = FactPanel(context.theme, "Details of the selection")
        self.facts.followed.connect(self._follow)
        tip = "Change how this is compiled; pointing at a change previews its effect"
        self._change = FittingButton(_CHANGE, tip, tip)
        self._change.clicked.connect(lambda: self.show_changes())
        page = QWidget()
        layout = QVBoxLayout(page)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.facts, 1)
        below = QHBoxLayout()
        below.setContentsMargins(12, 6, 12, 8)
        below.addWidget(self._change)
        below.addStretch(1)
        layout.addLayout(below)
        self.set_content(page)
        self.facts.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.facts.customContextMenuRequested.connect(self._menu)

    def show_changes(self) -> None:
        """Offer the edits of the recipe for the selection."""
        at = QPoint(0, self._change.height())
        show_edits(self._change, at, self.state.selection, self.context)

    def _menu(self, at: QPoint) -> None:
        menu = edits_menu(self, self.state.selection, self.context)
        before = menu.actions()[0]
        for action in self.facts.actions():
            menu.insertAction(before, action)
        menu.insertSeparator(before)
        menu.popup(self.facts.mapToGlobal(at))

    @override
    def show_session(self, session: Session, state: State) -> None:
        """Show the facts of the selection."""
        if not state.selection:
            self.show_need(_NOTHING)
            return
        method, selection, units = state.method, state.selection, state.units
        self._change.setVisible(shown_variant(state) is not None)
        gap = state.gap
        key = (state.open_session, method, selection, units, session.options, gap)
        self.request(key, lambda: node_facts(session, method, selection, units, gap))

    @override
    def show_result(self, result: object) -> None:
        """Show a sheet; one without a title shows that the facts are unknown."""
        if isinstance(result, FactSheet) and result.title:
            self.facts.show_sheet(result)
            self.show_content()
            return
        self.empty.show_need(_UNKNOWN)
        self.stack.setCurrentIndex(0)

    def _follow(self, link: object) -> None:
        if isinstance(link, Selection):
            self._ask(Select(link))
        elif isinstance(link, SourceFrame):
            self._ask(OpenSource(link.file, link.line))
        elif isinstance(link, (ShowView, ShowTensor)):
            self._ask(link)


SPEC = ViewSpec("node", "Node", Area.RIGHT, NodePane, "node")
