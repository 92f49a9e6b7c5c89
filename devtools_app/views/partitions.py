"""The partitions view: nodes of each delegate, boundary tensors, nodes not delegated."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QSplitter
from typing_extensions import override

from devtools_app.state.state import State
from devtools_app.viewmodels.scene_search import related_to
from devtools_app.views.editing import offer_edits_of_rows
from devtools_app.views.pane import Pane
from devtools_app.views.pane_parts import PanelActions
from devtools_app.views.spec import Area, ViewContext, ViewSpec
from devtools_app.widgets.beside import Beside
from devtools_app.widgets.empty_state import Need
from devtools_app.widgets.fact_panel import FactPanel
from devtools_app.widgets.table_view import TableView
from devtools_app.widgets.toolbar_combo import ToolbarCombo
from devtools_app.widgets.tree_view import TreeView
from inspector.files.session import Session
from inspector.profile.join_index import JoinIndex, join_index
from inspector.tables.partitions import (
    COUNTING,
    Partitions,
    boundary_table,
    constants_table,
    counts_text,
    delegate_sheet,
    method_sheet,
    partitions,
)
from inspector.tables.selection import SelectionKind
from inspector.tables.tree import TreeOrder
from inspector.tables.verdicts import verdict_table
from schema.backends import DEFAULT

_BORDER, _CONSTANTS, _VERDICTS = "boundary", "constants", "verdicts"
_NOTHING = Need(
    "No delegation data",
    "What was delegated is in the program (.pte) and, by operator and module, in the ETRecord."
    " Open one of them beside the files that are here.",
    f"to_edge_transform_and_lower(program, partitioner=[{DEFAULT.partitioners[0].class_name}()])",
)
_NOT_READ = Need(
    "No delegation data",
    "The files that are open have none of this method; what is damaged in them is under Issues.",
)
_NO_VERDICTS = Need(
    "No verdicts in the ETRecord",
    "Records of programs that were compiled here record for every node which partitioner "
    "examined it, which rule decided, and why. Records of other compilers do not.",
)


@dataclass(frozen=True, slots=True, eq=False)
class _PartitionsContent:
    partitions: Partitions
    order: TreeOrder
    index: JoinIndex


_PARTITIONS_SHARE = 48  # percent: most programs have few delegates, and many boundary tensors


class PartitionsPane(PanelActions, Pane):
    """Lists delegates with their nodes, and shows details of the selected one."""

    def __init__(self, context: ViewContext) -> None:
        super().__init__(context, "Partitions")
        self.tree = TreeView(context.theme, "partitions")
        self.facts = FactPanel(context.theme, "Facts of the delegate")
        self.table = TableView(context.theme, "boundary tensors")
        self._content: _PartitionsContent | None = None
        self._delegate: int | None = None
        self.lists = ToolbarCombo(self.theme, "list", "What to list of the delegate")
        choices = [
            ("boundary tensors", _BORDER),
            ("constants", _CONSTANTS),
            ("verdicts", _VERDICTS),
        ]
        self.lists.show_choices(choices, _BORDER)
        self.lists.activated.connect(lambda _index: self._show_delegate())
        self.table.add_tool(self.lists, right=True)
        side = QSplitter(Qt.Orientation.Vertical)
        side.addWidget(self.facts)
        side.addWidget(self.table)
        side.setChildrenCollapsible(False)
        side.setSizes([240, 200])
        self.set_content(Beside(self.tree, side, _PARTITIONS_SHARE))
        for panel in (self.tree, self.table):
            offer_edits_of_rows(panel, self.context)
        self.tree.row_chosen.connect(self._row_chosen)
        self.table.row_chosen.connect(self._boundary_chosen)

    # -- state -----------------------------------------------------------------------------

    @override
    def show_session(self, session: Session, state: State) -> None:
        """Show the delegation of the method of a state."""
        method, units = state.method, state.units
        key = (state.open_session, method, units)
        self.request(key, lambda: _build(session, method, units.time, units.size))

    @override
    def show_result(self, result: object) -> None:
        """Show the delegates of a method."""
        self._content = result if isinstance(result, _PartitionsContent) else None
        content = self._content
        if content is None:
            session = self.state.session
            opened = session is not None and (session.program or session.record) is not None
            self.show_need(_NOT_READ if opened else _NOTHING)
            return
        self._delegate = None
        levels = 0 if len(content.partitions.facts.delegates) > 1 else 1
        self.tree.show_tree(content.order, open_levels=levels)
        self.note.setText(counts_text(content.partitions))
        counting = content.partitions.facts.counting
        self.note.setToolTip(COUNTING.get(counting, counting))
        self.show_content()
        self._show_delegate()
        self.show_selection(self.state)

    def _show_delegate(self) -> None:
        content, index, session = self._content, self._delegate, self.state.session
        if content is None or session is None:
            return
        parts, unit = content.partitions, self.state.units.size
        self.facts.show_sheet(
            method_sheet(parts) if index is None else delegate_sheet(parts, index)
        )
        if self.lists.currentData() == _CONSTANTS:
            self.table.set_need(Need("No constants in the payload"))
            self.table.show_table(constants_table(session, parts, index, unit))
            return
        if self.lists.currentData() == _VERDICTS:
            self.table.set_need(_NO_VERDICTS)
            self.table.show_table(verdict_table(parts, index))
            return
        self.table.set_need(Need("No tensor crosses a delegate boundary"))
        self.table.show_table(boundary_table(parts, index, unit))

    # -- selection -------------------------------------------------------------------------

    def _row_chosen(self, row: int) -> None:
        if self.select_key(self.tree.rows.key(row)):
            return
        self._delegate = None
        self._show_delegate()

    def _boundary_chosen(self, row: int) -> None:
        self.select_key(self.table.rows.key(row))

    @override
    def show_selection(self, state: State) -> None:
        content = self._content
        if content is None:
            return
        selection = state.selection
        related = related_to(selection, content.index)
        delegate = selection.delegate
        if delegate is None and related.delegates:
            delegate = related.delegates[0]
        if delegate != self._delegate:
            self._delegate = delegate
            self._show_delegate()
        if selection.kind is SelectionKind.DELEGATE:
            rows = [content.partitions.keys.row_of_delegate(selection.delegate)]
        else:
            rows = sorted(map(content.partitions.keys.row_of, related.nodes))
        highlighted = [row for row in rows if row >= 0]
        self.tree.highlight(highlighted)
        if highlighted and self.tree.current_row() not in highlighted:
            self.tree.show_current(self.tree.rows.key(highlighted[0]))

    @property
    @override
    def panel(self) -> TreeView:
        return self.tree


def _build(
    session: Session, method: str, time_unit: str, size_unit: str
) -> _PartitionsContent | None:
    content = partitions(session, method, time_unit, size_unit)
    if content is None:
        return None
    order = TreeOrder(content.tree).prepare()
    return _PartitionsContent(content, order, join_index(session, method))


def _needs(session: Session) -> Need | None:
    has_any = session.program is not None or session.record is not None
    return None if has_any else _NOTHING


SPEC = ViewSpec("partitions", "Partitions", Area.CENTRE, PartitionsPane, "partitions", needs=_needs)
