"""The operators dock: every operator that ran, or every event, to sort, filter, group and copy."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetrics, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QSplitter, QStackedWidget
from typing_extensions import override

from devtools_app.state.requests import Select
from devtools_app.state.state import State
from devtools_app.viewmodels.scene_search import related_to
from devtools_app.views.edit_marks import EDITED, EditMarks
from devtools_app.views.editing import offer_edits_of_rows
from devtools_app.views.pane import Pane
from devtools_app.views.pane_parts import PanelActions
from devtools_app.views.spec import Area, ViewContext, ViewSpec
from devtools_app.widgets.badge import Badge
from devtools_app.widgets.empty_state import Need
from devtools_app.widgets.fields import ToolButton
from devtools_app.widgets.item_panel import ItemPanel
from devtools_app.widgets.sample_plot import SamplePlot
from devtools_app.widgets.table_view import TableView
from devtools_app.widgets.toolbar_combo import ToolbarCombo
from devtools_app.widgets.tree_view import TreeView
from inspector.files.session import Session
from inspector.profile.join_index import JoinIndex, join_index
from inspector.profile.methods import VALUES_LOGGED
from inspector.tables.events import all_events
from inspector.tables.grouping import GroupKey, group_rows
from inspector.tables.operators import (
    DELEGATE,
    OperatorsTable,
    call_groups,
    group_selection,
    operators_table,
    operators_tree,
)
from inspector.tables.roofline import WORK_TITLES
from inspector.tables.row_order import RowOrder, SortKey
from inspector.tables.selection import Selection, Units
from inspector.tables.tree import TreeOrder
from schema.objects.plural import plural

_GROUPS = ("operator", "event", "module", "backend", "delegate", "block")
_NO_GROUP = ""
_WITH_PLOT = 50  # widths of an M from which the runs of a row stand beside the table
_FEW_GROUPS = 3  # that are open at first
_NOTHING = Need(
    "No operators",
    "A program (.pte) or an ETRecord lists the operators; a trace (ETDump) adds their times."
    " Open one of them beside the files that are here.",
)
_NONE_RUN = Need(
    "No operators",
    "This method runs no operator: it returns only inputs and constants.",
)


@dataclass(frozen=True, slots=True, eq=False)
class _OperatorsContent:
    rows: OperatorsTable
    order: RowOrder
    tree: TreeOrder | None
    find: Callable[[Hashable], int]
    index: JoinIndex
    heads: Mapping[int, int] = field(default_factory=dict)  # overhead -> its delegate, in the tree


class OperatorsPane(PanelActions, Pane):
    """A table, or a tree of groups, with the runs of the current row beside it."""

    HAS_TOOLS = False

    def __init__(self, context: ViewContext) -> None:
        super().__init__(context, "Operators")
        self._content: _OperatorsContent | None = None
        self._shape: tuple[str, ...] = ()
        self._tree_shape: tuple[str, ...] = ()
        self._reported = Selection()
        self._filtered = ""
        self._equipped: ItemPanel | None = None
        self._has_samples = False  # of the current row
        self._edits = EditMarks(self)
        self._marked: tuple[Mapping[str, str], _OperatorsContent | None] = ({}, None)
        self._edits.changed.connect(self._mark_edits)
        self.table = TableView(context.theme, "operators")
        self.tree = TreeView(context.theme, "operators by group")
        self.plot = SamplePlot(context.theme)
        self.groups = ToolbarCombo(context.theme, "group by", "Group operators by")
        self.groups.show_choices([("none", _NO_GROUP), (DELEGATE, DELEGATE)], DELEGATE)
        self.groups.activated.connect(self._refresh)
        self.events = ToolButton()
        self.events.setText("All events")
        self.events.setCheckable(True)
        self.events.setAccessibleName("All events")
        self.events.setToolTip(
            "One row per event as the runtime logged it, framework events included  (E)"
        )
        self.events.toggled.connect(self._refresh)
        self.work = ToolButton()
        self.work.setText("FLOPs")
        self.work.setCheckable(True)
        self.work.setAccessibleName("FLOPs and bytes")
        self.work.setToolTip(
            "FLOPs and bytes of each operator, its rates and the limit of the machine it is near"
        )
        self.work.toggled.connect(self._refresh)
        self.runs = Badge(context.theme)
        self.runs.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.panels = QStackedWidget()
        for panel in (self.table, self.tree):
            self.panels.addWidget(panel)
            offer_edits_of_rows(panel, self.context)
            panel.row_chosen.connect(self._row_chosen)
            panel.row_activated.connect(self._row_activated)
            panel.filter_changed.connect(self._filter_changed)
        self.add_keys("E", self.events.toggle)
        self._arrange()
        context.theme.follow(self._give_room)

    def _arrange(self) -> None:
        split = QSplitter(Qt.Orientation.Horizontal)
        split.addWidget(self.panels)
        split.addWidget(self.plot)
        split.setStretchFactor(0, 1)
        split.setSizes([800, 150])
        self.plot.hide()
        split.setCollapsible(0, False)
        split.setHandleWidth(1)
        self.set_content(split)
        self._equip(self.table)

    def _equip(self, panel: ItemPanel) -> None:
        """Bring a panel to the front and place the tools next to its filter."""
        if panel is self._equipped:
            if self.busy.parentWidget() is self._bar:
                panel.add_tool(self.busy, right=True)
            return
        self._equipped = panel
        panel.add_tool(self.groups)
        panel.add_tool(self.events)
        panel.add_tool(self.work)
        panel.add_tool(self.busy, right=True)
        panel.add_tool(self.runs, right=True)
        self.panels.setCurrentWidget(panel)

    @property
    def panel(self) -> TableView | TreeView:
        """Return the table, or the tree while rows are grouped."""
        return self.tree if self.panels.currentWidget() is self.tree else self.table

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._give_room()

    def _give_room(self) -> None:
        """Show the runs of a row where the table keeps enough for its columns."""
        room = _WITH_PLOT * QFontMetrics(self.context.theme.sans()).horizontalAdvance("M")
        self.plot.setVisible(self._has_samples and self.width() >= room)

    @override
    def show_busy(self) -> None:
        if self.stack.currentIndex() == 0:  # the line of tools of the panels is not seen yet
            self.tools.addWidget(self.busy)
            super().show_busy()

    # -- state -----------------------------------------------------------------------------

    @override
    def show_session(self, session: Session, state: State) -> None:
        """Show the operators of the method of a state."""
        events, group = self.events.isChecked(), str(self.groups.currentData() or _NO_GROUP)
        work = self.work.isChecked() and not events
        key = (state.open_session, state.method, state.units, events, work, group)
        method, units = state.method, state.units
        self.work.setEnabled(not events)  # events are no operators
        self._mark_edits()
        self.request(key, lambda: _build(session, method, units, group, events=events, work=work))
        if self._filtered != state.filter_text:
            self._filtered = state.filter_text
            self.panel.set_filter_text(state.filter_text)

    def _refresh(self) -> None:
        self.show_state(self.state)

    @override
    def show_result(self, result: object) -> None:
        """Show the operators of a method."""
        content = self._content = result if isinstance(result, _OperatorsContent) else None
        if content is None or not (content.rows.table.length or self.events.isChecked()):
            session = self.state.session
            known = session is not None and self.state.method in session.methods
            self.show_need(_NONE_RUN if known else _NOTHING)
            return
        self._offer_groups(content)
        if content.tree is None:
            self._show_table(content)
        else:
            self._show_tree(content, content.tree)
        self._filtered = self.state.filter_text
        self.panel.set_filter_text(self._filtered)
        runs = content.rows.runs
        text = f"mean of {plural(runs, 'steady run')}" if runs else "no trace"
        session = self.state.session
        logged = runs and session is not None and session.times_with_values
        tag, tone = (f" · {VALUES_LOGGED}", "warn") if logged else ("", "")
        words = f"What the times are computed from: {text}{tag}"
        self.runs.set_badge(text + tag, tone, words)
        self.show_content()
        self._reported = Selection()
        self._mark_edits()
        self.show_selection(self.state)

    def _mark_edits(self) -> None:
        """Mark the rows of the nodes that the edits of the recipe are about."""
        content, edits = self._content, self._edits.of(self.state)
        if content is None or self._marked == (edits, content):
            return
        self._marked = (edits, content)
        words: dict[int, list[str]] = {}
        for name, text in edits.items():
            rows = content.rows.rows_of(content.index.of_node(name))
            for place in self._places(content, rows, [content.rows.table.key(row) for row in rows]):
                words.setdefault(place, []).append(text)
        self.panel.mark_rows(
            {place: f"{EDITED}{'; '.join(dict.fromkeys(found))}" for place, found in words.items()}
        )

    @override
    def shut_down(self) -> None:
        super().shut_down()
        self._edits.close()

    def _show_table(self, content: _OperatorsContent) -> None:
        self._equip(self.table)
        titles = tuple(column.title for column in content.rows.table.columns)
        keys = _same_order(self.table.model.sort_keys, self._shape, titles)
        self.table.show_table(content.order)
        if titles != self._shape:
            self._shape = titles
            self.table.model.set_sort(keys)
            if content.rows.runs and not keys:
                self.table.sort_by(titles.index("mean"), descending=True)

    def _show_tree(self, content: _OperatorsContent, tree: TreeOrder) -> None:
        self._equip(self.tree)
        titles = tuple(column.title for column in content.rows.table.columns)
        groups = len(tree.tree.parents) - content.rows.table.length
        keys = _same_order(self.tree.model.sort_keys, self._tree_shape, titles)
        self.tree.show_tree(tree, open_levels=int(groups <= _FEW_GROUPS))  # unsorted
        self.tree.model.set_sort(keys)
        if titles != self._tree_shape:
            self._tree_shape = titles
            if content.rows.runs and not keys:
                self.tree.sort_by(titles.index("mean"), descending=True)

    def _offer_groups(self, content: _OperatorsContent) -> None:
        titles = [column.title for column in content.rows.table.columns]
        choices = [("none", _NO_GROUP), *((name, name) for name in _GROUPS if name in titles)]
        chosen = str(self.groups.currentData() or _NO_GROUP)
        self.groups.show_choices(choices, chosen if (chosen, chosen) in choices else _NO_GROUP)

    def _filter_changed(self, text: str) -> None:
        self._filtered = text
        self.store.update(filter_text=text)

    # -- selection -------------------------------------------------------------------------

    def _row_of(self, place: int) -> int:
        """Return the row of the table for a row of the panel in front, -1 for a group."""
        content = self._content
        if content is None or place < 0:
            return -1
        if content.tree is None:
            return place
        return content.find(self.tree.rows.key(place))

    def _row_chosen(self, place: int) -> None:
        row, content = self._row_of(place), self._content
        self._plot(row)
        if content is None:
            return
        selection = content.rows.selection(row) if row >= 0 else Selection()
        if row < 0 and content.tree is not None:
            selection = group_selection(content.tree.tree, place, self.state.method)
        if selection:
            self._reported = selection
            self.select(selection)

    def _row_activated(self, place: int) -> None:
        row = self._row_of(place)
        if self._content is not None and row >= 0 and (found := self._content.rows.selection(row)):
            self._ask(Select(found, "graph"))

    def _plot(self, row: int) -> None:
        content = self._content
        samples = content.rows.samples_of(row) if content is not None and row >= 0 else None
        self._has_samples = samples is not None
        self._give_room()
        if content is not None and samples is not None:
            times, steady = samples
            title = content.rows.table.text(row, 0)
            unit, tick = self.state.units.time, content.rows.tick_ns(row)
            self.plot.show_samples(title, times, unit, steady, tick)

    @override
    def show_selection(self, state: State) -> None:
        content = self._content
        if content is None:
            return
        rows = content.rows.rows_of(related_to(state.selection, content.index))
        keys = [content.rows.table.key(row) for row in rows]
        panel = self.panel
        places = self._places(content, rows, keys)
        heads = [content.heads[place] for place in places if place in content.heads]
        panel.highlight([*heads, *(places if len(places) > len(heads) else ())])
        current = panel.current_key()
        if state.selection == self._reported and (current in keys or isinstance(current, GroupKey)):
            return
        self._reported = state.selection
        if heads:  # whole calls: the delegate stands for what is below it
            panel.show_current(panel.rows.key(heads[0]))
            self._plot(-1)
            return
        panel.show_current(keys[0] if keys else None)
        self._plot(rows[0] if rows else -1)

    def _places(
        self, content: _OperatorsContent, rows: list[int], keys: list[Hashable]
    ) -> list[int]:
        if content.tree is None:
            return rows
        nodes = (self.tree.model.node_of(key) for key in keys)
        return [node for node in nodes if node >= 0]

    # -- contract --------------------------------------------------------------------------


def _same_order(
    keys: Sequence[SortKey], old: Sequence[str], new: Sequence[str]
) -> tuple[SortKey, ...]:
    """Return sort keys for a table of the same columns, or that gained or lost those of work."""
    if set(old) ^ set(new) not in (set(), set(WORK_TITLES)):
        return ()
    titles = ((old[key.column], key) for key in keys if key.column < len(old))
    return tuple(replace(key, column=new.index(title)) for title, key in titles if title in new)


def _build(
    session: Session, method: str, units: Units, group: str, *, events: bool, work: bool = False
) -> _OperatorsContent:
    content = (all_events if events else operators_table)(session, method, units)
    if work:
        content = replace(content, table=content.table.complete())
    order = RowOrder(content.table).prepare()
    titles = [column.title for column in content.table.columns]
    index = join_index(session, method)
    if group == DELEGATE:
        owned = operators_tree(order)
        by_owner = None if owned is None else TreeOrder(owned).prepare()
        heads = {} if owned is None else call_groups(owned)
        return _OperatorsContent(content, order, by_owner, content.table.finder(), index, heads)
    if group not in titles or not content.table.length:
        return _OperatorsContent(content, order, None, content.table.finder(), index)
    rows = np.arange(content.table.length)
    tree = TreeOrder(group_rows(order, titles.index(group), rows)).prepare()
    return _OperatorsContent(content, order, tree, content.table.finder(), index)


SPEC = ViewSpec("operators", "Operators", Area.BOTTOM, OperatorsPane, "operators")
