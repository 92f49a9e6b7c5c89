"""The two palettes: Ctrl+P goes to a place, Ctrl+Shift+P runs a command."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QDockWidget, QMenu

from devtools_app.actions.table import ACTIONS
from devtools_app.dialogs.palette_dialog import PaletteDialog
from devtools_app.jobs.computed import Computed
from devtools_app.state.requests import Select, ShowTensor, ShowView
from devtools_app.viewmodels.fuzzy import Choice
from inspector.tables.selection import Selection

if TYPE_CHECKING:
    from devtools_app.actions.host import CommandHost, Services
    from inspector.files.session import Session

_ICONS = {spec.name: spec.icon for spec in ACTIONS}
_KEYS = {spec.name: spec.keys for spec in ACTIONS}
_GO, _RUN = "goto", "commands"  # the actions that open the palettes
_MNEMONIC = re.compile(r"&(&?)")  # marks the letter behind it; two are the sign itself
_NATIVE = QKeySequence.SequenceFormat.NativeText


class Palettes(QObject):
    """Creates the dialogs when they are first opened; names are collected in a thread."""

    def __init__(self, services: Services, window: CommandHost) -> None:
        """Connect to a window.

        Args:
            services: the state and the look
            window: knows all commands
        """
        super().__init__(services.parent)
        self._parent = services.parent
        self._theme = services.theme
        self._store = services.store
        self._ask = services.ask
        self._window = window
        self._goto: PaletteDialog | None = None
        self._commands: PaletteDialog | None = None
        self._names: Computed[tuple[Choice, ...]] = Computed("names", self)
        self._names.ready.connect(self._names_known)

    def go_to(self) -> None:
        """Open the palette of places, if a session is open."""
        if self._store.state.open_session is None:
            return
        if self._goto is None:
            name = "Go to node, operator, module or weight"
            self._goto = PaletteDialog(
                self._theme, self._parent, name, f"{name} …", _found_by("views and commands", _RUN)
            )
            self._goto.picked.connect(self._picked)
        self._show_names()
        self._goto.popup()

    def commands(self) -> None:
        """Open the palette of commands."""
        if self._commands is None:
            others = _found_by("nodes, operators, modules and weights", _GO)
            self._commands = PaletteDialog(
                self._theme, self._parent, "Commands", "Command …", others
            )
            self._commands.picked.connect(self._run)
        choices = [_choice(action) for action in self._window.all_actions() if action.isEnabled()]
        self._commands.show_choices(choices)
        self._commands.popup()

    def shut_down(self) -> None:
        """Stop collecting names."""
        self._names.close()

    def _names_known(self, _key: object) -> None:
        self._show_names()

    def _show_names(self) -> None:
        state = self._store.state
        one = state.open_session
        if one is None or self._goto is None:
            return
        session, method = one.session, state.method
        found = self._names.ask(
            (one.id, one.revision, method), lambda _token: _choices(session, method)
        )
        self._goto.show_choices(found or (), complete=found is not None)

    def _picked(self, payload: object) -> None:
        if isinstance(payload, Selection):
            self._ask(Select(payload))
        elif isinstance(payload, (ShowTensor, ShowView)):
            self._ask(payload)

    def _run(self, payload: object) -> None:
        if isinstance(payload, QAction):
            payload.trigger()


def _choices(session: Session, method: str) -> tuple[Choice, ...]:
    from devtools_app.viewmodels.goto import goto_choices

    return goto_choices(session, method)


def _found_by(what: str, action: str) -> str:
    """Return which palette finds something, with its key as this system writes it."""
    return f"{what}: {QKeySequence(_KEYS[action][0]).toString(_NATIVE)}"


def _choice(action: QAction) -> Choice:
    keys = "  ".join(key.toString(_NATIVE) for key in action.shortcuts())
    state = ("on" if action.isChecked() else "off") if action.isCheckable() else ""
    icon = _ICONS.get(action.objectName(), "")
    parent = action.parent()
    title = f"Panel {action.text()}" if isinstance(parent, QDockWidget) else action.text()
    if isinstance(parent, QMenu):  # of entries that are names alone
        title = f"{parent.title()}: {title}"
    return Choice(
        title.replace("&&", "\0").replace("&", "").replace("\0", "&"), state, keys, action, icon
    )
