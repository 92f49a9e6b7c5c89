"""The search of the timeline: a field, the number of matches, and the way from one to the next."""

from __future__ import annotations

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QLabel, QLineEdit

from devtools_app.appearance.theme import set_role
from devtools_app.viewmodels.layout.timeline_found import FoundEvents, search_events
from devtools_app.views.pane import Pane
from devtools_app.widgets.canvas import NOTHING
from devtools_app.widgets.filter_box import FilterBox
from devtools_app.widgets.timeline_canvas import TimelineCanvas
from inspector.tables.filter import FilterError

_HELP = (
    "Words must all occur in the name or the lane of an event.\n"
    "/conv|gelu/ is a regular expression.\n"
    "duration>10us compares. Return: the next match, Shift+F3: the one before."
)


class EventSearch(QObject):
    """Finds events by name, lane and duration, and goes from one match to the next.

    Attributes:
        field: the search text
        matches: number of matches, and which one is selected
    """

    def __init__(self, pane: Pane, canvas: TimelineCanvas) -> None:
        super().__init__(pane)
        self._canvas = canvas
        self._found: FoundEvents | None = None
        self.field = FilterBox("Find in the timeline")
        self.field.setPlaceholderText("find   /regex/")
        self.field.setToolTip(_HELP)
        self.matches = QLabel()
        set_role(self.matches, "role", "muted")
        self.matches.hide()
        pane.add_tool(self.field, right=True)
        pane.add_tool(self.matches, right=True)
        back = pane.add_button("", "Match before", lambda: self.step(-1), icon="up", right=True)
        ahead = pane.add_button("", "Next match", lambda: self.step(1), icon="down", right=True)
        self._steps = (back, ahead)
        pane.add_keys("F3", lambda: self.step(1))
        pane.add_keys("Shift+F3", lambda: self.step(-1))
        pane.add_keys("/", self.start)
        self.field.filter_changed.connect(self._search)
        self.field.left.connect(self._left)
        canvas.selected.connect(lambda _event: self._show_count())
        self._show_count()

    @property
    def active(self) -> bool:
        """Return whether something was found."""
        return bool(self._found)

    def start(self) -> None:
        """Focus the field."""
        self.field.setFocus()
        QLineEdit.selectAll(self.field)

    def search(self, text: str) -> None:
        """Find the events or nodes that a search text matches."""
        self.field.show_text(text)
        self._search(text)

    def again(self) -> None:
        """Find the same in other events."""
        self._search(self.field.text())

    def step(self, by: int) -> bool:
        """Select the next (1) or previous (-1) match; return whether there is one."""
        found = self._found
        if not found:
            return False
        current = self._canvas.current
        place = found.next(current, self._canvas.camera.x, by)
        self._canvas.go_to(int(found.rows[place]))
        self._show_count()
        return True

    def _left(self) -> None:
        if not self.step(1):
            self._canvas.setFocus()

    def _search(self, text: str) -> None:
        data = self._canvas.data
        rows = None
        if data is not None:
            try:
                rows = search_events(data, text)
                self.field.show_error("")
            except FilterError as error:
                self.field.show_error(str(error))
        self._found = self._canvas.set_found(rows)
        self._show_count()

    def _show_count(self) -> None:
        found = self._found
        for button in self._steps:
            button.setEnabled(bool(found))
        self.matches.setVisible(found is not None)
        if found is None:
            return
        current = self._canvas.current
        place = found.place(current)
        before = f"{place + 1:,} of " if place != NOTHING else ""
        self.matches.setText(f"{before}{len(found):,}" if len(found) else "none found")
