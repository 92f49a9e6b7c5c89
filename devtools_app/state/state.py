"""What the window shows, as one frozen value: open sessions, selection, filter, overlay, units.

Views keep no state that other views need: they are handed a State
and ask the Store for a new one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from devtools_app.state.variants import History
from inspector.tables.selection import AUTOMATIC, NOTHING, Selection, Units

if TYPE_CHECKING:  # importing the readers takes longer than showing the window
    from inspector.files.session import Session
    from inspector.numerics.report import RunGap

# what colour can mean in the views that draw; (name, words)
OVERLAYS = (
    ("time", "time"),
    ("backend", "backend"),
    ("bytes", "bytes"),
    ("gap", "numeric gap"),
    ("own gap", "own error"),
    ("change", "what changed"),
)


@dataclass(frozen=True, slots=True)
class OpenSession:
    """A session in the window.

    Attributes:
        id: one letter or more, A, B, ..., Z, AA; never reused while the window lives
        session: what was loaded; left out of comparisons because it may be huge
        paths: what the user opened, to reload it
        revision: counts reloads, so that a reloaded session differs from the old one
    """

    id: str
    session: Session = field(compare=False)
    paths: tuple[str, ...] = ()
    revision: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Gaps:
    """The numeric comparison of a session with its recorded program.

    Attributes:
        session: that was compared, as it was read then
        runs: the one that is looked at first
    """

    session: OpenSession
    runs: tuple[RunGap, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """A stop of the selection history.

    Attributes:
        session: id of the session
        method: its method
        selection: what was selected there
    """

    session: str = ""
    method: str = ""
    selection: Selection = NOTHING


@dataclass(frozen=True, slots=True)
class Bookmark:
    """A place kept under a number key.

    Attributes:
        slot: 0 to 9, the digit of the shortcut
        place: where it leads
        label: what the user sees
    """

    slot: int
    place: Place
    label: str


_NO_NOTES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class State:
    """Everything the views depend on.

    Attributes:
        sessions: open sessions, in the order they were opened
        current: id of the one shown, empty when none is
        method: name of the method shown
        selection: the selection
        filter_text: what the operators are filtered by, as typed
        overlay: what colour means, a name of OVERLAYS
        units: how numbers are shown
        expanded: opened clusters of the graph view, each ``scope`` + its path
        view: name of the view in front
        split_view: name of the view beside it, empty when there is no split
        opened: how many sessions were opened so far; numbers the next one
        bookmarks: places kept under number keys
        notes: text by session id
        past: places to go back to, oldest first
        future: places to go forward to, nearest last
        history: variants of the programs, with their recipes
        compared: ids of the sessions in the compare view, the former one first; none for those
            that the history suggests
        gaps: the last numeric comparison, None before the first
        all_gaps: the last one of each session that is open, for comparing sessions
        sweep: results file or folder of the sweep shown, empty for none
    """

    sessions: tuple[OpenSession, ...] = ()
    current: str = ""
    method: str = ""
    selection: Selection = NOTHING
    filter_text: str = ""
    overlay: str = "time"
    units: Units = AUTOMATIC
    expanded: frozenset[str] = frozenset()
    view: str = ""
    split_view: str = ""
    opened: int = 0
    bookmarks: tuple[Bookmark, ...] = ()
    notes: Mapping[str, str] = field(default_factory=lambda: _NO_NOTES)
    past: tuple[Place, ...] = ()
    future: tuple[Place, ...] = ()
    history: History = field(default_factory=History)
    compared: tuple[str, ...] = ()
    gaps: Gaps | None = None
    all_gaps: tuple[Gaps, ...] = ()
    sweep: str = ""

    @property
    def gap(self) -> RunGap | None:
        """Return the comparison of a run of the method shown, None when there is none."""
        if self.gaps is None or self.gaps.session is not self.open_session:
            return None
        return next((run for run in self.gaps.runs if run.method == self.method), None)

    def gaps_of(self, session: OpenSession) -> Gaps | None:
        """Return the last numeric comparison of a session, None if there is none."""
        return next((one for one in self.all_gaps if one.session is session), None)

    @property
    def open_session(self) -> OpenSession | None:
        """Return the session shown, None when there is none."""
        return next((one for one in self.sessions if one.id == self.current), None)

    @property
    def session(self) -> Session | None:
        """Return what was loaded for the session shown, None when there is none."""
        found = self.open_session
        return None if found is None else found.session

    @property
    def scope(self) -> str:
        """Return what prefixes ids that are unique only within a method of a session."""
        return f"{self.current}/{self.method}/"

    @property
    def place(self) -> Place:
        """Return the current place."""
        return Place(self.current, self.method, self.selection)
