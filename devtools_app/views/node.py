"""The node panel: all there is to know about the selected thing."""

from __future__ import annotations

from typing_extensions import override

from devtools_app.requests import OpenSource, Select
from devtools_app.state import Selection, State
from devtools_app.viewmodels.facts import FactSheet
from devtools_app.viewmodels.node_facts import node_facts
from devtools_app.views.pane import NO_SESSION, Pane
from devtools_app.views.spec import Area, ViewContext, ViewSpec
from devtools_app.widgets.empty_state import Need
from devtools_app.widgets.fact_panel import FactPanel
from inspector.source import SourceFrame

_NOTHING = Need(
    "Nothing is selected",
    "Choose an operator in the table, the graph or any other view: its times, tensors, memory and"
    " source line appear here.",
)
_UNKNOWN = Need(
    "Nothing is known about this",
    "The files of this session say nothing about what is selected. An ETRecord adds graphs and"
    " source lines, a trace adds times.",
)


class NodePane(Pane):
    """A sheet of facts that follows the selection."""

    def __init__(self, context: ViewContext) -> None:
        super().__init__(context, "Node")
        self.facts = FactPanel(context.theme, "Facts of the selected thing")
        self.facts.followed.connect(self._follow)
        self.set_content(self.facts)

    @override
    def show_content(self) -> None:
        self._bar.setVisible(False)  # nothing to set here
        self.stack.setCurrentIndex(1)

    @override
    def show_state(self, state: State) -> None:
        """Show the facts of what is selected."""
        session = state.session
        if session is None:
            self.show_need(NO_SESSION)
            return
        if not state.selection:
            self.show_need(_NOTHING)
            return
        method, selection, units = state.method, state.selection, state.units
        key = (state.open_session, method, selection, units, session.options)
        self.request(key, lambda: node_facts(session, method, selection, units))

    @override
    def show_result(self, result: object) -> None:
        """Show a sheet; one without a title says that nothing is known."""
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


SPEC = ViewSpec("node", "Node", Area.RIGHT, NodePane, "node")
