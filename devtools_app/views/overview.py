"""The first view: contents, consistency of the files, findings, missing files."""

from __future__ import annotations

from typing import cast

from PySide6.QtWidgets import QVBoxLayout, QWidget
from typing_extensions import override

from devtools_app.appearance.theme import FontSize, set_role
from devtools_app.jobs.latest import Latest
from devtools_app.state.requests import ShowView
from devtools_app.state.state import State
from devtools_app.viewmodels.finding_links import action_entry, finding_request
from devtools_app.viewmodels.overview import Overview, TimeSum, methods_work, overview
from devtools_app.views.editing import show_finding_edits
from devtools_app.views.pane import Pane
from devtools_app.views.spec import Area, ViewContext, ViewSpec
from devtools_app.widgets.card_page import CardPage
from devtools_app.widgets.cards import Card, card_text
from devtools_app.widgets.time_bar import TimeBar
from inspector.files.session import Session
from inspector.findings.finding import Finding
from inspector.tables.facts import Fact
from inspector.units import plural


class OverviewPane(Pane):
    """A page of cards; findings and parts of the time lead to the views that show them."""

    HAS_TOOLS = False

    def __init__(self, context: ViewContext) -> None:
        super().__init__(context, "Overview")
        self.page = CardPage("Overview")
        self._content: Overview | None = None
        self._work: dict[str, tuple[Fact, ...]] = {}
        self._cards: dict[str, Card] = {}
        self._counting = Latest("work of methods", self)  # the rest need not wait for it
        self._counting.ready.connect(self._show_work)
        self.set_content(self.page)
        context.theme.changed.connect(self._rebuild)

    @override
    def show_session(self, session: Session, state: State) -> None:
        """Show the session of a state."""
        method, units = state.method, state.units
        key = (state.open_session, method, units)
        self.request(key, lambda: overview(session, method, units))

    @override
    def show_result(self, result: object) -> None:
        """Show an overview."""
        self._content = result if isinstance(result, Overview) else None
        self._work = {}
        self._rebuild()
        self.show_content()
        session = self.state.session
        if session is not None:
            self._counting.submit(lambda _token: methods_work(session))

    def _show_work(self, result: object) -> None:
        self._work = cast("dict[str, tuple[Fact, ...]]", result)
        for name, card in self._cards.items():  # in place: building the page anew would scroll
            card.add_facts(self._work.get(name, ()))

    def _rebuild(self) -> None:
        content = self._content
        if content is None:
            return
        self.page.clear()
        self.page.add_head(self._head(content))
        if content.time.whole or self.state.session is None or self.state.session.dumps:
            self.page.add_head(self._time(content.time))
        self._add_left(content)
        self._add_right(content)
        self.page.end()

    def _head(self, content: Overview) -> QWidget:
        head = QWidget()
        head.setAccessibleName("Session")
        subtitle = card_text(self.theme, content.subtitle)
        set_role(subtitle, "role", "muted")
        layout = QVBoxLayout(head)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2)
        layout.addWidget(card_text(self.theme, content.title, FontSize.LARGE, strong=True))
        layout.addWidget(subtitle)
        return head

    def _time(self, time: TimeSum) -> QWidget:
        if not time.whole:
            card = Card(self.theme, "Time")
            card.add(card_text(self.theme, time.reason))
            return card
        note = f" · {time.note}" if time.note else ""
        title = (
            f"Time of {time.method or 'the run'}, mean of {plural(time.runs, 'steady run')}{note}"
        )
        card = Card(self.theme, title)
        card.add(card_text(self.theme, time.whole, FontSize.LARGE, strong=True))
        bar = TimeBar(self.theme)
        bar.show_slices(time.slices, hatched=time.hatched)
        bar.chosen.connect(lambda view: self._ask(ShowView(view)))
        card.add(bar)
        return card

    def _add_left(self, content: Overview) -> None:
        card = Card(self.theme, "Findings")
        for number, (finding, entry) in enumerate(
            zip(content.findings, content.entries, strict=True)
        ):
            if finding.view == "overview":  # the cards of this page say more about it
                card.add_entries((entry,))
            else:
                card.add_entries((entry,), lambda _at, number=number: self._choose(number))
            action = action_entry(finding)
            if finding.edits and action is not None:
                card.add_entries((action,), lambda _at, one=finding: self._try(one))
            elif action is not None:
                card.add_entries((action,), lambda _at, number=number: self._choose(number))
        if not content.entries:
            card.add(card_text(self.theme, "Nothing stands out in these files."))
        self.page.add_left(card)
        for lack in content.missing:
            card = Card(self.theme, f"Not open: {lack.what}")
            card.add_missing(lack)
            self.page.add_left(card)

    def _add_right(self, content: Overview) -> None:
        self._cards.clear()
        for group in content.methods:
            card = self._cards[group.title] = Card(self.theme, f"Method {group.title}")
            card.add_facts((*group.facts, *self._work.get(group.title, ())))
            self.page.add_right(card)
        for group in content.memory:
            card = Card(self.theme, group.title)
            card.add_facts(group.facts)
            self.page.add_right(card)
        if content.verdict is not None:
            card = Card(self.theme, "Do the files belong together?")
            card.add_entries((content.verdict.entry,))
            card.add_entries(content.verdict.links)
            self.page.add_right(card)
        card = Card(self.theme, content.files.title)
        card.add_facts(content.files.facts)
        self.page.add_right(card)

    def _try(self, finding: Finding) -> None:
        row = self.page.focusWidget() or self.page  # the line that was clicked, or Return was on
        show_finding_edits(row, row.rect().bottomLeft(), finding, self.context)

    def _choose(self, number: int) -> None:
        content, session = self._content, self.state.session
        if content is not None and session is not None:
            self._ask(finding_request(session, self.state.method, content.findings[number]))

    @override
    def shut_down(self) -> None:
        """Stop the threads."""
        self._counting.close()
        super().shut_down()


SPEC = ViewSpec("overview", "Overview", Area.CENTRE, OverviewPane, "overview")
