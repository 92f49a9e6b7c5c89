"""One line over the panels below the views: what they have, and a button for each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QToolButton
from typing_extensions import override

from devtools_app.appearance.theme import Theme, set_role
from devtools_app.jobs.computed import Computed
from devtools_app.state.state import State
from devtools_app.views.spec import ViewSpec
from devtools_app.widgets.elided_label import ElidedLabel
from devtools_app.widgets.fields import ToolButton
from inspector.tables.selection import Units

if TYPE_CHECKING:  # the window is on the screen before anything of the readers is needed
    from devtools_app.viewmodels.below import BelowFacts
    from inspector.files.session import Session

_KEY = "Ctrl+J"
_COUNTED = "issues"


class FoldBar(QFrame):
    """The first panel at the left with its facts, the others at the right.

    Signals:
        pressed(name): the user opens or folds a panel
        float_pressed(): the user wants the open panel as a window
    """

    pressed = Signal(str)
    float_pressed = Signal()

    def __init__(self, theme: Theme, specs: Iterable[ViewSpec]) -> None:
        super().__init__()
        self.setObjectName("foldBar")
        self._theme = theme
        self._state = State()
        self._titles = {spec.name: spec.title for spec in specs}
        self._computed: Computed[BelowFacts] = Computed("below", self)
        self._computed.ready.connect(lambda _key: self._refresh())
        self._facts = ElidedLabel()
        set_role(self._facts, "role", "muted")
        self.buttons = {name: self._button(name, title) for name, title in self._titles.items()}
        layout = QHBoxLayout(self)
        layout.setContentsMargins(8, 0, 8, 0)
        layout.setSpacing(8)
        for number, button in enumerate(self.buttons.values()):
            layout.addWidget(button)
            if number == 0:
                layout.addWidget(self._facts, 1)
        self._float = ToolButton()
        self._float.clicked.connect(self.float_pressed)
        layout.addWidget(self._float)
        theme.follow(self._restyle)
        self._restyle()
        self.show_open("")

    @property
    def text(self) -> str:
        """Return the facts as shown."""
        return self._facts.text()

    def show_state(self, state: State) -> None:
        """Show the facts of the method of a state."""
        self._state = state
        if self.isVisible():
            self._refresh()

    def show_open(self, name: str) -> None:
        """Show which panel is open, empty for none."""
        words = f"Float {self._titles.get(name, '')}".rstrip()
        self._float.setAccessibleName(words)
        self._float.setToolTip(words)
        self._float.setVisible(bool(name))
        for number, (one, button) in enumerate(self.buttons.items()):
            is_open = one == name
            button.setChecked(is_open)
            if number == 0:
                arrow = Qt.ArrowType.DownArrow if is_open else Qt.ArrowType.RightArrow
                button.setArrowType(arrow)
            verb = "Fold" if is_open else "Open"
            key = f"  ({_KEY})" if is_open or number == 0 else ""
            button.setToolTip(f"{verb} {self._titles[one]}{key}")
            button.setAccessibleDescription("open" if is_open else "folded")

    def show_fact(self, name: str, fact: str) -> None:
        """Show a fact beside the name of a panel; empty for none."""
        if name in self.buttons:
            self.buttons[name].setText(f"{self._titles[name]} {fact}".rstrip())

    def shut_down(self) -> None:
        """Stop computing."""
        self._computed.close()

    @override
    def setVisible(self, visible: bool) -> None:
        super().setVisible(visible)
        if visible:
            self._refresh()

    def _button(self, name: str, title: str) -> QToolButton:
        button = ToolButton()
        button.setText(title)
        button.setAccessibleName(title)
        button.setCheckable(True)
        button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        button.clicked.connect(lambda: self.pressed.emit(name))
        return button

    def _refresh(self) -> None:
        one, method, units = self._state.open_session, self._state.method, self._state.units
        if one is None:
            self._show("", 0)
            return
        session = one.session
        key = (one.id, one.revision, method, units)
        facts = self._computed.ask(key, lambda _token: _facts(session, method, units))
        if facts is not None:
            self._show(facts.operators, facts.issues)

    def _show(self, operators: str, issues: int) -> None:
        self._facts.setText(operators)
        self.show_fact(_COUNTED, f"{issues:,}")

    def _restyle(self) -> None:
        self._facts.setFont(self._theme.sans())
        self._float.setIcon(self._theme.icon("float", "muted"))
        for number, button in enumerate(self.buttons.values()):
            button.setFont(self._theme.sans(strong=number == 0))


def _facts(session: Session, method: str, units: Units) -> BelowFacts:
    from devtools_app.viewmodels.below import below_facts

    return below_facts(session, method, units)
