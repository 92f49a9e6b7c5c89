"""The source view: source lines of the program with their run time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QSplitter, QStackedWidget
from typing_extensions import override

from devtools_app.jobs.computed import Computed
from devtools_app.state.requests import AddSourceRoot, OpenSource
from devtools_app.state.state import State
from devtools_app.viewmodels.scene_search import graph_title, related_to
from devtools_app.views.pane import Pane
from devtools_app.views.pane_parts import PanelActions
from devtools_app.views.spec import Area, ViewContext, ViewSpec
from devtools_app.widgets.empty_state import EmptyState, Need
from devtools_app.widgets.timed_code import TimedCode
from devtools_app.widgets.toolbar_combo import ToolbarCombo
from devtools_app.widgets.tree_view import TreeView
from inspector.files.session import Session
from inspector.graph.model_graph import COMPILED
from inspector.graph.program_text import INSTRUCTIONS, ProgramText, program_text, text_names
from inspector.graph.snippet import file_name
from inspector.profile.join_index import JoinIndex, join_index
from inspector.tables.selection import Selection, SelectionKind
from inspector.tables.source_lines import (
    LineKey,
    SourceFiles,
    SourceText,
    source_files,
    source_text,
)
from inspector.tables.tree import TreeOrder
from schema.objects.plural import plural

_NOTHING = Need(
    "No source lines",
    "Stack traces are in the ETRecord: open it beside the files that are here.",
    "to_edge_transform_and_lower(..., generate_etrecord=True)"
    "\nprogram.get_etrecord().save('model.etrecord')",
)
_NOT_READ = Need(
    "No source lines",
    "The ETRecord that is open has no stack traces of this method; what is damaged in it is under"
    " Issues.",
)
_NAME_WIDTH = 140
_FILES = ""
_CHOOSE = Need("Choose a file or a line", "Its code appears here with the time of each line.")


@dataclass(frozen=True, slots=True, eq=False)
class _SourceContent:
    source: SourceFiles
    order: TreeOrder
    index: JoinIndex
    name: str
    text: ProgramText | None


class SourcePane(PanelActions, Pane):
    """Files and lines with their times, and the code of the selected file or program."""

    def __init__(self, context: ViewContext) -> None:
        super().__init__(context, "Source")
        self._content: _SourceContent | None = None
        self._line = LineKey("")
        self.tree = TreeView(context.theme, "source lines", _NAME_WIDTH)
        self.code = TimedCode(context.theme, "Code of the file")
        self.absent = EmptyState(context.theme, _CHOOSE)
        self.root_button = self.absent.add_button("Set a source root…", self._ask_root)
        self.root_button.hide()  # until a file is not found: while one is read it takes no keys
        self.pages = QStackedWidget()
        self.pages.addWidget(self.absent)
        self.pages.addWidget(self.code)
        split = QSplitter(Qt.Orientation.Horizontal)
        split.addWidget(self.tree)
        split.addWidget(self.pages)
        split.setChildrenCollapsible(False)
        split.setHandleWidth(1)
        split.setSizes([420, 560])
        split.setStretchFactor(0, 2)
        split.setStretchFactor(1, 5)
        self.set_content(split)
        self._name = _FILES
        self.programs = ToolbarCombo(context.theme, "show", "Source files, or a program as code")
        self.programs.activated.connect(self._program_chosen)
        self.add_tool(self.programs)
        self._texts: Computed[SourceText] = Computed("source text", self)
        self._texts.ready.connect(lambda _key: self._show_code())
        self.editor = self.add_button(
            "Open in editor", "Open this line in your editor", self._edit, keys="Ctrl+Return"
        )
        self.editor.setEnabled(False)
        self.tree.row_chosen.connect(self._row_chosen)
        self.tree.row_activated.connect(lambda _row: self._edit())
        self.code.line_chosen.connect(self._code_chosen)

    # -- state -----------------------------------------------------------------------------

    @override
    def show_session(self, session: Session, state: State) -> None:
        """Show the source lines of the method of a state."""
        method, units = state.method, state.units
        names = text_names(session, method)
        if self._name not in names:
            self._name = _FILES
        choices = [("source files", _FILES), *((graph_title(name), name) for name in names)]
        self.programs.show_choices(choices, self._name)
        name = self._name
        key = (state.open_session, method, units, name)

        def work() -> _SourceContent:
            content = source_files(session, method, units)
            shown = names[0] if names and name == _FILES and not content.files else name
            text = program_text(session, method, shown) if shown != _FILES else None
            order = TreeOrder(content.tree).prepare()
            return _SourceContent(content, order, join_index(session, method), shown, text)

        self.request(key, work)

    @override
    def show_result(self, result: object) -> None:
        """Show the lines of a method."""
        content = self._content = result if isinstance(result, _SourceContent) else None
        if content is None or (not content.source.files and content.text is None):
            session = self.state.session
            has_record = session is not None and session.record is not None
            self.show_need(_NOT_READ if has_record else _NOTHING)
            return
        self._texts.forget()
        self.programs.setCurrentIndex(self.programs.findData(content.name))
        self.tree.setVisible(content.text is None)
        if content.text is not None:
            self._show_program(content.text)
            return
        self.tree.show_tree(content.order, open_levels=1 if len(content.source.files) < 4 else 0)
        lines = sum(map(len, content.source.files.values()))
        rest = content.source.unplaced
        without = f" · {plural(rest, 'node')} without a line" if rest else ""
        files = len(content.source.files)
        text = f"{plural(lines, 'line')} in {plural(files, 'file')}"
        self.note.setText(text + without)
        self.show_content()
        self.show_selection(self.state)
        if not self._line.file or self._line.file not in content.source.files:
            self._line = LineKey(next(iter(content.source.files)))
        self._show_code()

    # -- a program as code -----------------------------------------------------------------

    def _program_chosen(self) -> None:
        self._name = str(self.programs.currentData())
        self.show_state(self.state)

    def _show_program(self, text: ProgramText) -> None:
        self.note.setText(plural(len(text.lines), "line"))
        self.editor.setEnabled(False)
        self.show_content()
        self.code.show_costs({}, self.state.units.time)
        self.code.show_code(text.lines)
        self.pages.setCurrentWidget(self.code)
        self.show_selection(self.state)

    def _node_chosen(self, content: _SourceContent, text: ProgramText, line: int) -> None:
        node = text.node_at(line)
        session = self.state.session
        if node is not None and session is not None:
            graph = (
                COMPILED if _is_compiled(session, self.state.method, content.name) else content.name
            )
            self.select(Selection(SelectionKind.NODE, self.state.method, graph, node))

    def _mark_nodes(self, content: _SourceContent, text: ProgramText, state: State) -> None:
        chosen = state.selection
        nodes: Iterable[str] = (chosen.node,) if chosen.graph == content.name else ()
        if state.session is not None and _is_compiled(state.session, state.method, content.name):
            nodes = related_to(chosen, content.index).nodes
        self.code.mark(sorted(text.line_of[one] for one in nodes if one in text.line_of))

    # -- code ------------------------------------------------------------------------------

    def _show_code(self) -> None:
        content, session, file = self._content, self.state.session, self._line.file
        self.editor.setEnabled(bool(file))
        if content is None or session is None or not file:
            return
        key = (self.state.open_session, file)
        text = self._texts.ask(key, lambda _token: source_text(file, session))
        if text is None:
            return
        if text.problem:
            need = Need(f"{file_name(file)} cannot be shown", f"{file}\n{text.problem}")
            self.absent.show_need(need)
            self.root_button.setVisible(text.path is None)
            self.pages.setCurrentWidget(self.absent)
            return
        fresh = self.code.toPlainText() != "\n".join(text.lines)
        if fresh:
            self.code.show_code(text.lines)
        self.code.show_costs(content.source.files.get(file, {}), self.state.units.time)
        if fresh and not self._line.line:
            self.code.reveal_slowest()
        self.code.mark((self._line.line,) if self._line.line else ())
        self.pages.setCurrentWidget(self.code)

    def _ask_root(self) -> None:
        self._ask(AddSourceRoot())

    def _edit(self) -> None:
        if self._line.file:
            self._ask(OpenSource(self._line.file, max(1, self._line.line)))

    # -- selection -------------------------------------------------------------------------

    def _row_chosen(self, row: int) -> None:
        key = self.tree.rows.key(row)
        if isinstance(key, LineKey):
            self._go(key)

    def _code_chosen(self, line: int) -> None:
        content = self._content
        if content is not None and content.text is not None:
            self._node_chosen(content, content.text, line)
            return
        key = LineKey(self._line.file, line)
        if self._content is not None and line in self._content.source.files.get(key.file, {}):
            self.tree.show_current(key)
            self._go(key)

    def _go(self, key: LineKey) -> None:
        self._line = key
        self._show_code()
        line = (
            self._content.source.files[key.file].get(key.line)
            if self._content is not None
            else None
        )
        if line is not None:
            method = self.state.method
            chosen = Selection(SelectionKind.NODE, method, COMPILED, line.nodes[0])
            self.select(chosen)

    @override
    def show_selection(self, state: State) -> None:
        content = self._content
        if content is None:
            return
        if content.text is not None:
            self._mark_nodes(content, content.text, state)
            return
        related = related_to(state.selection, content.index)
        found = [
            content.source.line_of[one] for one in related.nodes if one in content.source.line_of
        ]
        nodes = (self.tree.model.node_of(key) for key in dict.fromkeys(found))
        self.tree.highlight([node for node in nodes if node >= 0])
        if found and self._line not in found:
            self._line = found[0]
            self.tree.show_current(self._line)
            self._show_code()

    # -- contract --------------------------------------------------------------------------

    @property
    @override
    def panel(self) -> TreeView:
        return self.tree

    @override
    def shut_down(self) -> None:
        """Stop running threads; called once before the window closes."""
        self._texts.close()
        super().shut_down()


def _is_compiled(session: Session, method: str, name: str) -> bool:
    """Return whether a program has the nodes of the compiled graph."""
    record = session.record
    edge = record.roles.edge.get(method) if record is not None else None
    return name == (edge or INSTRUCTIONS)


def _needs(session: Session) -> Need | None:
    return _NOTHING if session.record is None and session.program is None else None


SPEC = ViewSpec("source", "Source", Area.CENTRE, SourcePane, "source", needs=_needs)
