"""The guide: the packaged documents, a section at a time, with a search."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QStackedWidget, QVBoxLayout, QWidget

from devtools_app.state.panel_layout import Showing
from devtools_app.state.state import State
from devtools_app.viewmodels.entries import ListEntry
from devtools_app.viewmodels.guide_pages import (
    FOLDER,
    GuideHit,
    GuideSection,
    guide_sections,
    search_guide,
    section_of_link,
    section_of_view,
    shown_text,
)
from devtools_app.views.spec import Area, ViewContext, ViewSpec
from devtools_app.widgets.accessible import add_clear_button
from devtools_app.widgets.document_view import DocumentView
from devtools_app.widgets.dot_list import DotList
from devtools_app.widgets.fields import ToolButton
from devtools_app.widgets.toolbar_combo import ToolbarCombo

_NOTHING = ListEntry("No section has any of these words")


class GuidePane(QWidget):
    """A search field and a list of sections over the section shown."""

    def __init__(self, context: ViewContext) -> None:
        super().__init__()
        self._context = context
        self._subject = ""
        self._shown: GuideSection | None = None
        self._past: list[GuideSection] = []
        self._hits: tuple[GuideHit, ...] = ()
        self.search = QLineEdit()
        self.search.setAccessibleName("Search the guide")
        self.search.setPlaceholderText("Search the guide")
        add_clear_button(self.search)
        self.sections = ToolbarCombo(context.theme, "", "Section of the guide")
        self.back = ToolButton()
        self.back.setAccessibleName("Back to the section before")
        self.back.setToolTip("Back to the section before")
        self.page = DocumentView(context.theme, FOLDER, "Section of the guide")
        self.results = DotList(context.theme, "Sections found")
        self._pages = QStackedWidget()
        self._lay_out()
        self._wire()
        self._restyle()

    @property
    def shown(self) -> GuideSection | None:
        """Return the section shown."""
        return self._shown

    def show_state(self, state: State) -> None:
        """Show the section about the view that help was requested for."""
        if state.help_subject != self._subject or self._shown is None:
            self._subject = state.help_subject
            self.search.clear()
            found = section_of_view(state.help_subject)
            if found is not None:
                self.show_section(found)

    def show_section(self, section: GuideSection) -> None:
        """Show a section instead of the matches."""
        if self._shown is not None and section != self._shown:
            self._past.append(self._shown)
        self._put(section)

    def start_find(self) -> None:
        """Focus the search field."""
        self.search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.search.selectAll()

    def take_focus(self) -> None:
        """Focus the text, which the arrow keys scroll."""
        shown = self._pages.currentWidget() or self.page
        shown.setFocus(Qt.FocusReason.OtherFocusReason)

    def _lay_out(self) -> None:
        tools = QHBoxLayout()
        tools.setContentsMargins(8, 6, 8, 2)
        tools.addWidget(self.back)
        tools.addWidget(self.sections, 1)
        find = QHBoxLayout()
        find.setContentsMargins(8, 2, 8, 6)
        find.addWidget(self.search)
        self._pages.addWidget(self.page)
        self._pages.addWidget(self.results)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(tools)
        layout.addLayout(find)
        layout.addWidget(self._pages, 1)

    def _wire(self) -> None:
        self.search.textChanged.connect(self._search)
        self.search.returnPressed.connect(lambda: self._open_hit(0))
        self.sections.activated.connect(self._chosen)
        self.back.clicked.connect(self._go_back)
        self.page.followed.connect(self._follow)
        self.results.opened.connect(self._open_hit)
        down = QShortcut(QKeySequence(Qt.Key.Key_Down), self.search)
        down.setContext(Qt.ShortcutContext.WidgetShortcut)
        down.activated.connect(self.results.setFocus)
        self._context.theme.follow(self._restyle)

    def _put(self, section: GuideSection) -> None:
        self._shown = section
        choices = [(f"{one.title}", one.key) for one in guide_sections()]
        self.sections.show_choices(choices, section.key)
        self.page.show_markdown(f"## {section.title}\n\n{shown_text(section)}")
        self._pages.setCurrentWidget(self.page)
        self.back.setEnabled(bool(self._past))

    def _chosen(self, index: int) -> None:
        key = self.sections.itemData(index)
        found = next((one for one in guide_sections() if one.key == key), None)
        if found is not None:
            self.show_section(found)

    def _go_back(self) -> None:
        if self._past:
            self._put(self._past.pop())

    def _follow(self, link: str) -> None:
        found = section_of_link(link, self._shown.page if self._shown is not None else "")
        if found is not None:
            self.show_section(found)

    def _search(self, text: str) -> None:
        self._hits = search_guide(text)
        if not text.strip():
            self._pages.setCurrentWidget(self.page)
            return
        entries = [ListEntry(one.section.title, one.snippet, "accent") for one in self._hits]
        self.results.show_entries(entries or [_NOTHING])
        self._pages.setCurrentWidget(self.results)

    def _open_hit(self, index: int) -> None:
        if 0 <= index < len(self._hits):
            self.show_section(self._hits[index].section)
            self.take_focus()

    def _restyle(self) -> None:
        self.back.setIcon(self._context.theme.icon("back"))


SPEC = ViewSpec(
    "guide",
    "Guide",
    Area.RIGHT,
    GuidePane,
    "info",
    without_session=True,
    showing=Showing.NEVER,
)
