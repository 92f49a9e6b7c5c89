"""Keeps the selection when another variant of the program is shown, if it has a counterpart there.

Ctrl+R, undo and the tree of variants switch variants; graphs are aligned in a
thread, so that large programs do not block the window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from devtools_app.jobs.latest import Latest
from devtools_app.state.state import State
from devtools_app.state.store import Store
from inspector.tables.selection import Selection

if TYPE_CHECKING:  # the window is on the screen before anything of the inspector is loaded
    from inspector.files.session import Session


class SelectionSync(QObject):
    """Transfers the selection to the variant shown next."""

    def __init__(self, store: Store, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._latest = Latest("selection of a variant", self)
        self._latest.ready.connect(self._found)
        self._requested: tuple[str, str] = ("", "")  # the session it is looked for in, its method
        self._left: State | None = None  # before the variant was opened and is known
        store.changed.connect(self._changed)

    def shut_down(self) -> None:
        """Stop; called before the window closes."""
        self._latest.close()

    def _changed(self, old: State, new: State) -> None:
        if old.current != new.current:
            self._left = old
        if self._left is None or new.selection:
            self._left = None
            return
        before, one = new.history.of_session(self._left.current), new.open_session
        if one is None or before is None:
            self._left = None
            return
        shown = new.history.of_session(one.id)
        if shown is None:  # the recipe_store has yet to see it
            return
        left, self._left = self._left, None
        if shown.program == before.program and left.session is not None and left.selection:
            self._look(left, left.session, new)

    def _look(self, left: State, former: Session, new: State) -> None:
        session, selection, method = new.session, left.selection, left.method
        if session is None:
            return
        self._requested = (new.current, method)
        self._latest.submit(lambda _token: _kept(former, session, method, selection))

    def _found(self, result: object) -> None:
        state = self._store.state
        session, method = self._requested
        if not isinstance(result, Selection) or not result:
            return
        if state.current == session and not state.selection:
            self._store.update(selection=result, method=method)


def _kept(former: Session, session: Session, method: str, selection: Selection) -> Selection:
    from devtools_app.viewmodels.kept_selection import kept_selection

    return kept_selection(former, session, method, selection)
