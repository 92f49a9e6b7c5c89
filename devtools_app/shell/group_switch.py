"""The control that chooses the group of tabs: Look 1, Change 2, Prove 3."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFontMetrics, QPainter, QPaintEvent
from PySide6.QtWidgets import QApplication, QButtonGroup, QFrame, QHBoxLayout
from typing_extensions import override

from devtools_app.appearance.theme import Theme, set_role
from devtools_app.state.tab_groups import TabGroup
from devtools_app.widgets.badge import key_width, paint_key
from devtools_app.widgets.fields import PushButton

_ROOM = 26  # around the word
_WHAT = {
    TabGroup.LOOK: "what is slow, large or not delegated",
    TabGroup.CHANGE: "how the program is compiled",
    TabGroup.PROVE: "whether a change is better",
}


class _Segment(PushButton):
    """A word and the number of its key."""

    def __init__(self, theme: Theme, title: str, number: int) -> None:
        super().__init__(title)
        self._theme = theme
        self._number = str(number)
        self.setCheckable(True)
        set_role(self, "segment", "true")
        theme.follow(self._fit)
        self._fit()

    def _fit(self) -> None:
        self.setFont(self._theme.sans())
        words = QFontMetrics(self._theme.sans()).horizontalAdvance(self.text())
        self.setMinimumWidth(words + key_width(self._number, self._theme) + _ROOM)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        with QPainter(self) as painter:
            paint_key(painter, self.rect().toRectF(), self._number, self._theme)


class GroupSwitch(QFrame):
    """One button for each group; the arrow keys go from one to the next.

    Signals:
        chosen(group): the user chose a group
    """

    chosen = Signal(object)

    def __init__(self, theme: Theme, groups: Iterable[TabGroup]) -> None:
        super().__init__()
        self.setObjectName("segments")
        self.setAccessibleName("Groups of views")
        self.buttons: dict[TabGroup, _Segment] = {}
        together = QButtonGroup(self)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(2, 2, 2, 2)
        layout.setSpacing(2)
        shown = set(groups)
        for number, group in enumerate(TabGroup, 1):
            button = _Segment(theme, group.word, number)
            button.setAccessibleName(group.word)
            button.setAccessibleDescription(_WHAT[group])
            button.setToolTip(f"{group.word}: {_WHAT[group]}  (Ctrl+Alt+{number})")
            button.setVisible(group in shown)
            button.setFocusPolicy(
                Qt.FocusPolicy.TabFocus
            )  # a click leaves the keyboard to the view
            button.clicked.connect(lambda _on=False, one=group: self._choose(one))
            together.addButton(button)
            layout.addWidget(button, 0, Qt.AlignmentFlag.AlignVCenter)
            self.buttons[group] = button

    def show_group(self, group: TabGroup) -> None:
        """Press the button of a group, without a signal."""
        self.buttons[group].setChecked(True)

    def _choose(self, group: TabGroup) -> None:
        """Report a group; where the keyboard is in the switch it stays here, for the next arrow."""
        focus = QApplication.focusWidget()
        is_by_key = focus is not None and self.isAncestorOf(focus)
        self.chosen.emit(group)
        if is_by_key:
            self.buttons[group].setFocus(Qt.FocusReason.OtherFocusReason)
