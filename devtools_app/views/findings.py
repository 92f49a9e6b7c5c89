"""The findings dock: three to seven sentences about the session, each a link."""

from __future__ import annotations

from typing_extensions import override

from devtools_app.state.state import State
from devtools_app.viewmodels.entries import ListEntry
from devtools_app.viewmodels.finding_links import action_entry, finding_entry, finding_request
from devtools_app.views.editing import show_finding_edits
from devtools_app.views.pane import Pane
from devtools_app.views.spec import Area, ViewContext, ViewSpec
from devtools_app.widgets.dot_list import DotList
from devtools_app.widgets.empty_state import Need
from inspector.files.session import Session
from inspector.findings.session import Finding, findings

_NONE = Need("Nothing stands out", "These files give no reason for a finding.")


class FindingsPane(Pane):
    """A list of findings; a click or Return goes to the view that shows more."""

    HAS_TOOLS = False

    def __init__(self, context: ViewContext) -> None:
        super().__init__(context, "Findings")
        self.list = DotList(context.theme, "Findings")
        self.list.opened.connect(self._open)
        self._findings: tuple[Finding, ...] = ()
        self._lines: list[tuple[int, bool]] = []  # of the list: the finding, and whether to try it
        self.set_content(self.list)

    @override
    def show_session(self, session: Session, state: State) -> None:
        """Show the findings of the session of a state."""
        self.request(state.open_session, lambda: findings(session))

    @override
    def show_result(self, result: object) -> None:
        """Show findings."""
        found = result if isinstance(result, tuple) else ()
        self._findings = tuple(one for one in found if isinstance(one, Finding))
        if not self._findings:
            self.empty.show_need(_NONE)
            self.stack.setCurrentIndex(0)
            return
        session = self.state.session
        if session is not None:
            self._lines, entries = [], list[ListEntry]()
            for number, one in enumerate(self._findings):
                entries.append(finding_entry(session, one))
                self._lines.append((number, False))
                action = action_entry(one)
                if action is not None:
                    entries.append(action)
                    self._lines.append((number, bool(one.edits)))
            self.list.show_entries(entries)
        self.show_content()

    def _open(self, number: int) -> None:
        session = self.state.session
        if session is None or not 0 <= number < len(self._lines):
            return
        place, tries = self._lines[number]
        found = self._findings[place]
        if tries:
            index = self.list.model().index(number, 0)
            at = self.list.visualRect(index).bottomLeft()
            show_finding_edits(self.list, at, found, self.context)
        else:
            self._ask(finding_request(session, self.state.method, found))

    def step(self, by: int) -> bool:
        """Move to the next or previous finding; return whether there was one."""
        place = self.list.currentIndex().row() + by
        index = self.list.model().index(place, 0)
        if not index.isValid():
            return False
        self.list.setCurrentIndex(index)
        return True


SPEC = ViewSpec("findings", "Findings", Area.LEFT, FindingsPane, "findings")
