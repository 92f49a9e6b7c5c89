"""The first view: contents, consistency of the files, findings, missing files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from PySide6.QtWidgets import QApplication, QLabel, QWidget
from typing_extensions import override

from devtools_app.appearance.slices import Slices
from devtools_app.appearance.theme import FontSize, set_role
from devtools_app.jobs.latest import Latest
from devtools_app.jobs.measuring import are_measurable
from devtools_app.state.requests import ChooseFiles, ShowView
from devtools_app.state.state import State
from devtools_app.state.variant_steps import compared_sessions
from devtools_app.viewmodels.finding_links import action_entry, finding_request
from devtools_app.viewmodels.overview import (
    Overview,
    methods_work,
    overview,
    step_entry,
)
from devtools_app.views.editing import show_finding_edits
from devtools_app.views.pane import Pane
from devtools_app.views.spec import Area, ViewContext, ViewSpec
from devtools_app.widgets.card_page import CardPage
from devtools_app.widgets.cards import Card, card_text
from devtools_app.widgets.fields import PushButton
from devtools_app.widgets.flow_layout import FlowLayout
from devtools_app.widgets.headline_card import HeadlineCard
from devtools_app.widgets.link_row import LinkRow
from inspector.files.session import Session
from inspector.findings.finding import Finding
from inspector.findings.next_steps import NextAction, NextStep
from inspector.tables.facts import Fact

# their view starts at once; text to generate and files to compile from are asked for there
_STARTED = (NextAction.RUN, NextAction.VALUES, NextAction.COMPARE, NextAction.CALIBRATE)


class OverviewPane(Pane):
    """A page of cards; findings and parts of the time lead to the views that show them."""

    HAS_TOOLS = False

    def __init__(self, context: ViewContext) -> None:
        super().__init__(context, "Overview")
        self.page = CardPage("Overview")
        self._content: Overview | None = None
        self._work: dict[str, tuple[Fact, ...]] = {}
        self._cards: dict[str, Card] = {}
        self._headline: HeadlineCard | None = None
        self._counted = False  # whether that was asked for
        self._building = Slices(self)
        self._counting = Latest("work of methods", self)  # the rest need not wait for it
        self._counting.ready.connect(self._show_work)
        self.set_content(self.page)
        context.theme.follow(self._rebuild, size_only=True)

    @override
    def show_session(self, session: Session, state: State) -> None:
        """Show the session of a state."""
        method, units, beside = state.method, state.units, self._unmeasured(state)
        shown = state.open_session
        compared = shown is not None and state.gaps_of(shown) is not None
        self.request(
            (shown, method, units, beside, compared),
            lambda: overview(session, method, units, beside, values_compared=compared),
        )

    def _unmeasured(self, state: State) -> str:
        """Return the variant open beside the session that was not measured, empty for none."""
        shown = compared_sessions(state)
        variants = [state.history.of_session(one.id) for one in shown]
        related = len({one.program for one in variants if one is not None}) == 1
        if len(shown) != 2 or None in variants or not related:
            return ""
        jobs = self.context.jobs
        able = are_measurable(shown, jobs.run_form.method)
        if not able or jobs.measurements.known(shown) is not None:
            return ""
        other = next(one for one in shown if one.id != state.current)
        return f"{other.id} {other.session.name}"

    @override
    def show_result(self, result: object) -> None:
        """Show an overview."""
        self._content = result if isinstance(result, Overview) else None
        self._work = {}
        self._counting.cancel()
        self._counted = False
        self._rebuild()

    def _count_work(self) -> None:
        """Count the work of the methods, once the page is there: both at once take turns."""
        session = self.state.session
        if session is not None and not self._counted:
            self._counted = True
            self._counting.submit(lambda _token: methods_work(session))

    def _show_work(self, result: object) -> None:
        self._work = cast("dict[str, tuple[Fact, ...]]", result)
        for name, card in self._cards.items():  # in place: building the page anew would scroll
            card.add_facts(self._work.get(name, ()))
        self._add_work()

    def _add_work(self) -> None:
        if self._headline is not None and self._content is not None:
            self._headline.add_costs(self._work.get(self._content.time.method, ()))

    @property
    @override
    def working(self) -> bool:
        """Return whether a result, or the rest of its page, is pending."""
        return super().working or self._building.busy

    def _rebuild(self) -> None:
        content = self._content
        if content is not None:  # a page at once would keep the window for 90 ms
            self.page.begin()
            self._building.start(self._parts(content))

    def _parts(self, content: Overview) -> Iterator[None]:
        """Build the page, a card at each step."""
        self.page.clear()
        self._headline = None
        self._cards.clear()
        self.page.add_head(self._head(content))
        yield
        if content.time.whole or self.state.session is None or self.state.session.dumps:
            self.page.add_head(self._time(content))
        waiting = self.waits()
        self.show_content()  # the cards that follow are placed one by one
        yield
        yield from self._add_left(content)
        yield from self._add_right(content)
        self.page.end()
        self._count_work()
        focus = QApplication.focusWidget()
        if waiting and (focus is None or self.isAncestorOf(focus)):
            self.take_focus()

    def _head(self, content: Overview) -> QWidget:
        head = QWidget()
        head.setAccessibleName("Session")
        title = QLabel(content.title)
        title.setFont(self.theme.sans(FontSize.LARGE, strong=True))
        subtitle = QLabel(content.subtitle)
        set_role(subtitle, "role", "muted")
        layout = FlowLayout(space=12, line_space=2)
        head.setLayout(layout)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(title)
        layout.addWidget(subtitle)
        return head

    def _time(self, content: Overview) -> QWidget:
        if not content.time.whole:
            card = Card(self.theme, "Time")
            card.add(card_text(self.theme, content.time.reason))
            return card
        self._headline = card = HeadlineCard(self.theme, content.time, content.costs)
        self._add_work()
        card.chosen.connect(lambda view: self._ask(ShowView(view)))
        return card

    def _add_left(self, content: Overview) -> Iterator[None]:
        card = Card(self.theme, "Findings")
        self.page.add_left(card)
        for number, (finding, entry) in enumerate(
            zip(content.findings, content.entries, strict=True)
        ):
            # the cards of this page say more about what is of it
            leads = finding.view != "overview"
            row = LinkRow(self.theme, entry, leads=leads, word=finding.tone.severity)
            if leads:
                row.clicked.connect(lambda _on=False, number=number: self._choose(number))
            card.add_line(row, self._action(finding, number))
            yield
        if not content.entries:
            card.add(card_text(self.theme, "Nothing stands out in these files."))
        for lack in content.missing:
            card = Card(self.theme, f"Not open: {lack.what}")
            card.add_missing(lack)
            self.page.add_left(card)
            yield

    def _action(self, finding: Finding, number: int) -> QWidget | None:
        """Return the button that acts on a finding, None where nothing can be done."""
        entry = action_entry(finding)
        if entry is None:
            return None
        button = PushButton("Try it…" if finding.edits else "Show")
        button.setAccessibleName(f"{entry.title}: {finding.text}")
        button.setToolTip(entry.title)
        button.clicked.connect(
            lambda: self._try(finding) if finding.edits else self._choose(number)
        )
        return button

    def _add_right(self, content: Overview) -> Iterator[None]:
        self._add_next(content)
        yield
        if content.verdict is not None:
            card = Card(self.theme, "Do the files belong together?")
            card.add_entries((content.verdict.entry,))
            card.add_entries(content.verdict.links)
            self.page.add_right(card)
            yield
        for group in content.methods:
            card = self._cards[group.title] = Card(self.theme, f"Method {group.title}")
            card.add_facts((*group.facts, *self._work.get(group.title, ())))
            self.page.add_far(card)
            yield
        for group in (*content.memory, content.files):
            card = Card(self.theme, group.title)
            card.add_facts(group.facts)
            self.page.add_far(card)
            yield

    def _add_next(self, content: Overview) -> None:
        """Add the suggested next steps, and once a hint that the program can be changed here."""
        session = self.state.session
        if session is None or not (content.steps or content.change):
            return
        card = Card(self.theme, "What to do next")
        for step in content.steps:
            entry = step_entry(session, step)
            row = LinkRow(self.theme, entry)
            row.clicked.connect(lambda _on=False, one=step: self._take(one))
            card.add_line(row)
        if content.change:
            words = card_text(self.theme, content.change, FontSize.SMALL)
            set_role(words, "role", "muted")
            card.add(words)
        self.page.add_right(card)

    def _take(self, step: NextStep) -> None:
        session = self.state.session
        if step.action is NextAction.TRY and step.finding is not None:
            self._try(step.finding)
        elif step.action is NextAction.OPEN:
            self._ask(ChooseFiles(beside=True))
        elif step.finding is not None and session is not None:
            self._ask(finding_request(session, self.state.method, step.finding))
        else:
            self._ask(ShowView(step.view, begin=step.action in _STARTED))

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
        self._building.stop()
        self._counting.close()
        super().shut_down()


SPEC = ViewSpec("overview", "Overview", Area.CENTRE, OverviewPane, "overview")
