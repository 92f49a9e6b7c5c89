"""Variants side by side: changes, gain, and its significance."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QLabel, QSplitter, QVBoxLayout, QWidget
from typing_extensions import override

from devtools_app.appearance.theme import FontSize, set_role
from devtools_app.jobs.measuring import are_measurable
from devtools_app.state.requests import (
    ChooseFiles,
    GoTo,
    OpenVariant,
    ShowDisk,
    ShowLosses,
    ShowSession,
    ShowView,
)
from devtools_app.state.state import OpenSession, Place, State
from devtools_app.state.variant_steps import compared_sessions, shown_variant
from devtools_app.state.variants import Variant, walked
from devtools_app.viewmodels.change_colours import CHANGE
from devtools_app.viewmodels.compare_content import CompareContent, compared, quantized
from devtools_app.viewmodels.recipe_form import change_line
from devtools_app.viewmodels.variant_list import variant_entries
from devtools_app.views.pane import NO_SESSION, Pane
from devtools_app.views.pane_parts import PanelActions
from devtools_app.views.spec import Area, ViewContext, ViewSpec
from devtools_app.widgets.block_plot import BlockLane, BlockPlot
from devtools_app.widgets.delta_bars import DeltaBar, DeltaBars
from devtools_app.widgets.dot_list import DotList
from devtools_app.widgets.empty_state import Need
from devtools_app.widgets.form_scroll import FormScroll
from devtools_app.widgets.kept_focus import kept_focus
from devtools_app.widgets.push_button import push_button
from devtools_app.widgets.splitter import fill_splitter
from devtools_app.widgets.table_view import TableView
from devtools_app.widgets.toolbar_combo import ToolbarCombo
from inspector.compare.model import Comparison
from inspector.numerics.report import FLOAT
from inspector.tables.compare import CompareLink, any_known, headline, subtitle, summary_table
from inspector.tables.compare_lists import (
    GAPS,
    LISTS,
    OPERATORS,
    OWNERS,
    TIMES,
    detail_table,
    list_title,
    time_bars,
)
from inspector.units import NS_PER_MS, format_elapsed

_ALONE = Need(
    "Nothing to compare with",
    "Change the recipe and press Ctrl+R: the new variant opens beside this one. Or open another "
    "program: any two sessions can be compared.",
    "etscope compare model.pte other.pte",
)
_ALONE_FIXED = Need(
    _ALONE.title, "Open another program: any two sessions can be compared.", _ALONE.command
)
_CLOSED = "Other variants of this program are closed: one that is chosen here opens beside it."
_FAILED = "No other variant of this program could be compiled so far; each line gives the reason."
_ALL = "*"
_BOTH = 800  # pixels from which the variants are listed beside the figures
_TABLES = 280  # pixels of both tables together, with text of the usual size
_NO_METHOD = "The programs have no method in common to measure"
_MEASURE = "Measure the programs side by side until their times differ significantly or not at all"
_LOSSES = "Which modules lose by quantization: the numeric gap beside the float program"


class ComparePane(PanelActions, Pane):
    """A headline, a summary, the tree of variants, and lists of differences."""

    def __init__(self, context: ViewContext) -> None:
        super().__init__(context, "Comparison")
        self._jobs = context.jobs
        self.measurer = context.jobs.measurements
        self.errors = context.jobs.output_errors
        self._content: CompareContent | None = None
        self._variants: tuple[Variant, ...] = ()
        self._list_kept = False  # the user has chosen one
        self.former = ToolbarCombo(context.theme, "former", "Baseline session")
        self.newer = ToolbarCombo(context.theme, "with", "Sessions to compare with it")
        self.lists = ToolbarCombo(context.theme, "list", "What to list")
        self.lists.show_choices([(text, name) for name, text in LISTS], OWNERS)
        self.headline = QLabel()
        self.about = QLabel()
        self.summary = TableView(context.theme, "summary of the comparison")
        self.summary.hide_tools(folds=True)
        self.blocks = BlockPlot(context.theme)
        self.tree = DotList(context.theme, "Variants of this program")
        self._disk = push_button(
            "Disk use…",
            "Disk use of runs and variants, and removing some",
            lambda: context.ask(ShowDisk()),
        )
        self._variant_side = QWidget()
        self._has_variants = False
        self.details = TableView(context.theme, "differences")
        self.bars = DeltaBars(context.theme, "Where the time went")
        for tool in (self.former, self.newer):
            self.add_tool(tool)
        self._measure = push_button("Measure", _MEASURE, self.measure)
        self.add_tool(self._measure)
        self._losses = push_button("Loss by module", _LOSSES, self._show_losses)
        self.add_tool(self._losses)
        self._cancel = self.add_button(
            "Cancel", "Cancel the measurement", self.measurer.follower.cancel, right=True
        )
        self._offers = (
            self.empty.add_button("Show the recipe", lambda: self._ask(ShowView("recipe"))),
            self.empty.add_button("Open files…", lambda: self._ask(ChooseFiles())),
        )
        self._offer_others(recipe=False, files=False)
        self._lay_out_content()
        self._wire()

    def _lay_out_content(self) -> None:
        set_role(self.about, "role", "muted")
        for label, name in ((self.headline, "Verdict"), (self.about, "What was changed")):
            label.setWordWrap(True)
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setAccessibleName(name)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.details.add_tool(self.lists, right=True)
        upper, lower = (QSplitter(Qt.Orientation.Horizontal) for _ in range(2))
        page, split = QWidget(), QSplitter(Qt.Orientation.Vertical)
        self._lower, self._split = lower, split
        self.set_content(FormScroll(page))  # large text leaves the tables no room below the verdict
        layout = QVBoxLayout(page)
        layout.setContentsMargins(0, 4, 0, 0)
        layout.setSpacing(2)
        for label in (self.headline, self.about):
            label.setContentsMargins(14, 0, 14, 4)
            layout.addWidget(label)
        layout.addWidget(split, 1)
        fill_splitter(split, upper, lower, sizes=[260, 240])
        fill_splitter(upper, self.summary, self._variant_side, sizes=[770, 230])
        fill_splitter(lower, self.details, self.bars, sizes=[620, 320])
        for part, at, factor in ((upper, 0, 3), (upper, 1, 1), (lower, 0, 1)):
            part.setStretchFactor(at, factor)
        for part in (upper, lower, split):
            part.setHandleWidth(1)
        beside = QVBoxLayout(self._variant_side)
        beside.setContentsMargins(0, 0, 8, 4)
        beside.addWidget(self.blocks)
        beside.addWidget(self.tree, 1)
        beside.addWidget(self._disk, 0, Qt.AlignmentFlag.AlignRight)
        self.theme.follow(self._restyle)
        self._restyle()

    def _show_variants(self) -> None:
        """Show the variants where the figures have room for their certainty, or are missing."""
        room = self.width() >= _BOTH or self.summary.isHidden()
        shown = self._has_variants or not self.blocks.is_empty()
        self._variant_side.setVisible(shown and room)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show_variants()

    def _wire(self) -> None:
        self.former.activated.connect(self._chosen)
        self.newer.activated.connect(self._chosen)
        self.lists.activated.connect(self._list_chosen)
        self.summary.row_activated.connect(lambda row: self._follow(self.summary.rows.key(row)))
        self.details.row_activated.connect(lambda row: self._follow(self.details.rows.key(row)))
        self.tree.opened.connect(self._variant_opened)
        self.measurer.follower.changed.connect(self._measured)
        self.errors.follower.changed.connect(self._errors_changed)

    # -- state -----------------------------------------------------------------------------

    @override
    def show_state(self, state: State) -> None:
        """Compare the sessions that a state names."""
        if state.session is None:
            self._offer_others(recipe=False, files=False)
            self.show_need(NO_SESSION)
            return
        shown = compared_sessions(state)
        alone = len(shown) < 2
        changes = alone and shown_variant(state) is not None
        self._offer_others(recipe=changes, files=alone)
        self._offer(state, shown)
        self._show_tree(state)
        self.errors.end_others(shown)
        if alone:
            self._show_alone(can_change=changes)
            return
        measurement = self.measurer.known(shown)
        gaps = tuple(state.gaps_of(one) for one in shown)
        errors = self.errors.known(shown)
        key = (shown, id(measurement), id(errors), *map(id, gaps))
        self.request(key, lambda: compared(shown, measurement, gaps, errors))
        self._refresh_tools()

    def _offer(self, state: State, shown: tuple[OpenSession, ...]) -> None:
        sessions = [(f"{one.id}  {one.session.name}", one.id) for one in state.sessions]
        first = shown[0].id if shown else ""
        self.former.show_choices(sessions, first)
        others = [choice for choice in sessions if choice[1] != first]
        if len(others) > 1:
            others.append(("all others", _ALL))
        self.newer.show_choices(others, shown[1].id if len(shown) == 2 else _ALL)
        method = self._jobs.run_form.method
        without = [one.id for one in shown if not are_measurable((one,), method)]
        able = not without and are_measurable(shown, method)
        self._measure.setEnabled(able)
        self._losses.setVisible(bool(quantized(state, shown)))
        no_program = f"No program to run in {', '.join(without)}"
        self._measure.setToolTip(_MEASURE if able else no_program if without else _NO_METHOD)

    def _show_losses(self) -> None:
        if found := quantized(self.state, compared_sessions(self.state)):
            self._ask(ShowLosses(found, FLOAT))

    def _show_tree(self, state: State) -> None:
        one = state.history.of_session(state.current)
        rows = list(walked(state.history, one.program)) if one is not None else []
        self._variants = tuple(each for _, each in rows)
        current = self._variants.index(one) if one in self._variants else -1
        self.tree.show_entries(variant_entries(rows, state.history, self.theme.palette), current)
        self._has_variants = len(rows) > 0
        self._show_variants()

    def _show_alone(self, *, can_change: bool) -> None:
        """Show that a second session is missing, or offer other variants of the program."""
        self.show_need(_ALONE if can_change else _ALONE_FIXED)
        others = [one for one in self._variants if not one.session]
        if others:
            self._content = None
            _put(self.headline, _ALONE.title)
            _put(self.about, _CLOSED if any(one.files for one in others) else _FAILED)
            self.about.setVisible(True)
            self._show_tables(shown=False)
            self.stack.setCurrentIndex(1)

    def _offer_others(self, *, recipe: bool, files: bool) -> None:
        for button, shown in zip(self._offers, (recipe, files), strict=True):
            button.setVisible(shown)

    def _show_tables(self, *, shown: bool) -> None:
        for part in (self.summary, self._lower):
            part.setVisible(shown)
        self._show_variants()

    def _chosen(self) -> None:
        first, second = str(self.former.currentData()), str(self.newer.currentData())
        ids = [one.id for one in self.state.sessions]
        if second == _ALL:
            chosen = (first, *(each for each in ids if each != first))
        else:
            others = [each for each in ids if each != first]
            chosen = (first, second if second != first else others[0])
        self.store.update(compared=chosen)
        shown = compared_sessions(self.state)
        if self.measurer.known(shown) is None and not self.measurer.runs_for(shown):
            self.measure()  # the sessions chosen to be compared differ in time

    @override
    def show_result(self, result: object) -> None:
        """Show a comparison."""
        if not isinstance(result, CompareContent):
            return
        before, self._content = self._content, result
        found, letters = result.comparison, result.letters
        _put(self.about, subtitle(found, self._edits(letters), result.runs))
        self.about.setVisible(bool(self.about.text()))
        self.summary.show_table(summary_table(found, letters))
        other = before is None or before.letters != letters
        if before is None or other or before.runs != result.runs:
            self.summary.scroll_to_top()  # another pair, or measured now: latency is the first row
        if not self._list_kept:
            self.lists.setCurrentIndex(self.lists.findData(result.list))
        self.blocks.show_lanes(self._lanes(found, letters))
        self._show_details()
        if other:
            self.details.scroll_to_top()
        if result.job is not None:
            self.errors.start(result.shown, result.job)
        self._refresh_tools()
        self._show_tables(shown=True)
        self.show_content()

    @staticmethod
    def _lanes(found: Comparison, letters: tuple[str, ...]) -> tuple[BlockLane, ...]:
        sides = np.array(found.blocks, np.float64).reshape(-1, len(letters)).T * NS_PER_MS
        shown = next((one.values for one in found.summary if one.verdicts), ())
        times = [None if one is None else one * NS_PER_MS for one in shown]
        times = times or [None] * len(letters)
        return tuple(map(BlockLane, letters, sides, times))

    def _show_headline(self) -> None:
        """Show what is known of the sessions, and what is still measured or computed of them."""
        content = self._content
        if content is None or self.working:
            return  # a new result shows itself
        waiting = {
            area
            for area, runs in (("latency", self.measurer), ("error", self.errors))
            if runs.runs_for(content.shown)
        }
        _put(self.headline, headline(content.comparison, content.letters, waiting))

    def _errors_changed(self) -> None:
        if not self.errors.follower.running and self.isVisible():
            self.show_state(self.state)
        self._show_headline()

    def _edits(self, letters: tuple[str, ...]) -> str:
        history = self.state.history
        one, two = history.of_session(letters[0]), history.of_session(letters[1])
        if len(letters) > 2 or one is None or two is None or one.program != two.program:
            return ""
        return change_line(one.recipe.job, two.recipe.job)

    def _list_chosen(self, _index: int) -> None:
        self._list_kept = True
        self._show_details()
        self.details.scroll_to_top()

    def _show_details(self) -> None:
        content, kind = self._content, str(self.lists.currentData() or OWNERS)
        if content is None:
            return
        self.details.set_need(_nothing(kind, content))
        self.details.show_table(detail_table(content.comparison, kind, content.letters))
        timed = kind if kind in TIMES else OPERATORS
        bars = time_bars(content.comparison, timed, content.letters)
        before, after = content.letters[:2]
        self.bars.show_rows(
            f"{list_title(timed).capitalize()}: {after} − {before}, recorded runs",
            tuple(DeltaBar(*one) for one in bars),
        )
        self.bars.setVisible(bool(bars))

    # -- measuring -------------------------------------------------------------------------

    def begin(self) -> None:
        """Measure the programs, unless that is going on."""
        if not self._measure.isHidden():
            self._measure.click()

    def measure(self) -> None:
        """Run the programs side by side, in a separate process."""
        self.measurer.measure(compared_sessions(self.state), self._jobs.run_form)

    def _measured(self) -> None:
        found = self.measurer.follower.current
        if found is not None and not found.running and self.isVisible():
            self.show_state(self.state)
        self._refresh_tools()

    def _refresh_tools(self) -> None:
        self._show_headline()
        found = self.measurer.follower.current
        busy = self.measurer.follower.running and found is not None
        with kept_focus(self._cancel, self._measure):
            self._cancel.setVisible(busy)
            self._measure.setVisible(not busy)
        self.note.setText("")
        if busy and found is not None:
            at = found.counted
            far = f" · {at.done:,} of {at.total:,} blocks" if at is not None else ""
            self.note.setText(f"Measuring{far} · {format_elapsed(found.seconds)}")
        elif found is not None and found.outcome is not None and found.outcome.sentence:
            self.note.setText(found.outcome.sentence)

    # -- links -----------------------------------------------------------------------------

    def _follow(self, key: Hashable | None) -> None:
        if not isinstance(key, CompareLink):
            return
        method = key.selection.method or self.state.method
        if key.view == "graph":
            self.store.update(overlay=CHANGE)
        if key.selection or key.session != self.state.current:
            self._ask(GoTo(Place(key.session, method, key.selection)))
        self._ask(ShowView(key.view))

    def _variant_opened(self, index: int) -> None:
        one = self._variants[index] if index < len(self._variants) else None
        if one is None or not one.files:
            return
        self._ask(ShowSession(one.session) if one.session else OpenVariant(one.files))

    @property
    @override
    def panel(self) -> TableView:
        return self.details

    def _restyle(self) -> None:
        large = self.theme.sans(FontSize.LARGE).pixelSize()
        # as rules: in a scroll area the style of the application drops a font that was set
        self.headline.setStyleSheet(f"font-size: {large}px; font-weight: 600")
        self._split.setMinimumHeight(round(_TABLES * self.theme.scale))
        self._show_tree(self.state)  # its dots have colours of the palette


def _nothing(kind: str, content: CompareContent) -> Need:
    """Return the message of an empty list: no difference, or not compared."""
    if kind == GAPS and content.unknown:
        where = "The view Numeric gap compares them."
        return Need(f"The values of {content.unknown} are not compared yet", where)
    if not any_known(content.comparison):
        return Need("Nothing to compare", "No metric is available for both sessions.")
    if kind == OWNERS and not content.comparison.graphs:
        return Need("Owners are not compared", "Open a program or an ETRecord of both.")
    return Need(f"No difference: {list_title(kind)}")


def _put(label: QLabel, text: str) -> None:
    """Show a text, whole on hover: in a low window its last line may have no room."""
    label.setText(text)
    label.setToolTip(text)


SPEC = ViewSpec("compare", "Compare", Area.CENTRE, ComparePane, "compare")
