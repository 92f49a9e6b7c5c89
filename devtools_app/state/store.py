"""The only owner of State; all changes go through it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypedDict

from PySide6.QtCore import QObject, Signal
from typing_extensions import Unpack

from devtools_app.state.state import Bookmark, Gaps, OpenSession, Place, State
from devtools_app.state.tab_groups import TabGroup
from devtools_app.state.variants import History
from inspector.tables.selection import Selection, Units

_MAX_ROUNDS = 50  # observers that keep changing the state for ever are a bug, not a feature


class Changes(TypedDict, total=False):
    """The fields of State that an update may name."""

    sessions: tuple[OpenSession, ...]
    current: str
    method: str
    selection: Selection
    filter_text: str
    overlay: str
    units: Units
    expanded: frozenset[str]
    graph_filters: tuple[str, ...]
    view: str
    group: TabGroup
    fronts: Mapping[str, str]
    split_view: str
    opened: int
    bookmarks: tuple[Bookmark, ...]
    notes: dict[str, str]
    past: tuple[Place, ...]
    future: tuple[Place, ...]
    gaps: Gaps | None
    all_gaps: tuple[Gaps, ...]
    history: History
    compared: tuple[str, ...]
    sweep: str
    tensor: str
    gap_reference: str
    help_subject: str
    gates: tuple[str, ...]


class Store(QObject):
    """Holds the State and emits `changed`.

    Signals:
        changed(old, new): the state differs from the last one emitted; an observer that updates the
            store in its slot causes another round after all have seen this one, so
            every observer sees every state in the same order
    """

    changed = Signal(object, object)

    def __init__(
        self,
        state: State | None = None,
        parent: QObject | None = None,
        settle: Callable[[State], State] = lambda state: state,
    ) -> None:
        """Begin with a state.

        Args:
            state: the first one, by default of a window without sessions
            parent: owner
            settle: returns a requested state with its parts in agreement
        """
        super().__init__(parent)
        self._settle = settle
        self._state = State() if state is None else state
        self._reported = self._state
        self._reporting = False

    @property
    def state(self) -> State:
        """Return the current state."""
        return self._state

    def update(self, **changes: Unpack[Changes]) -> None:
        """Replace the named fields; no signal is emitted without a difference."""
        self.put(replace(self._state, **changes))

    def put(self, state: State) -> None:
        """Set the state, as returned by the functions of ``devtools_app.state.transitions``."""
        state = self._settle(state)
        if state == self._state:
            return  # the same object stays, so that "is" shows views whether they are up to date
        self._state = state
        if not self._reporting:
            self._report()

    def _report(self) -> None:
        self._reporting = True
        try:
            for _ in range(_MAX_ROUNDS):
                if self._state == self._reported:
                    return
                old, self._reported = self._reported, self._state
                self.changed.emit(old, self._reported)
        finally:
            self._reporting = False
        raise RuntimeError(f"the state did not settle after {_MAX_ROUNDS} rounds of changes")
