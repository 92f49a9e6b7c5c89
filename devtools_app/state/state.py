"""The state of the window as one frozen value: open sessions, selection, filter, overlay, units.

Views store no shared state: they receive a State
and request changes from the Store.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from devtools_app.state.tab_groups import TabGroup
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
        id: one letter or more, A, B, ..., Z, AA; never reused while the window is open
        session: its data; not compared because it may be huge
        paths: opened by the user, for reloading
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
        session: the compared session and revision
        runs: comparisons of its runs, the displayed one first
    """

    session: OpenSession
    runs: tuple[RunGap, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """An entry of the selection history.

    Attributes:
        session: id of the session
        method: its method
        selection: the selection there
    """

    session: str = ""
    method: str = ""
    selection: Selection = NOTHING


@dataclass(frozen=True, slots=True)
class Bookmark:
    """A place bookmarked under a number key.

    Attributes:
        slot: 0 to 9, the digit of the shortcut
        place: the target
        label: displayed text
    """

    slot: int
    place: Place
    label: str


_NONE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class State:
    """The state that all views depend on.

    Attributes:
        sessions: open sessions, in the order they were opened
        current: id of the current one, or empty
        unseen: ids of those that a job opened behind the current one and that were not shown yet
        method: name of the method shown
        selection: the selection
        filter_text: filter of the operators, as typed
        overlay: meaning of colours, a name of OVERLAYS
        units: how numbers are shown
        expanded: opened clusters of the graph view, each ``scope`` + its path
        graph_filters: saved searches of the graph view
        view: name of the view in front
        group: its group of tabs
        fronts: the view in front of each group, by its value
        split_view: name of the second view, may be empty
        opened: number of sessions opened so far
        bookmarks: places under number keys
        notes: text by session id
        past: places to go back to, oldest first
        future: places to go forward to, nearest last
        history: variants of the programs, with their recipes
        compared: ids of the sessions in the compare view, the baseline first; empty for the
            defaults of the history
        gaps: the last numeric comparison, or None
        all_gaps: the last one of each open session, for comparing sessions
        sweep: results file or folder of the sweep shown, may be empty
        tensor: key of the tensor shown, may be empty
        gap_reference: recorded graph that the numeric gap compares with
        help_subject: title of the view that the guide was opened for
        gates: requirements that all sessions are judged by, each as a string
    """

    sessions: tuple[OpenSession, ...] = ()
    current: str = ""
    unseen: frozenset[str] = frozenset()
    method: str = ""
    selection: Selection = NOTHING
    filter_text: str = ""
    overlay: str = "time"
    units: Units = AUTOMATIC
    expanded: frozenset[str] = frozenset()
    graph_filters: tuple[str, ...] = ()
    view: str = ""
    group: TabGroup = TabGroup.LOOK
    fronts: Mapping[str, str] = field(default_factory=lambda: _NONE)
    split_view: str = ""
    opened: int = 0
    bookmarks: tuple[Bookmark, ...] = ()
    notes: Mapping[str, str] = field(default_factory=lambda: _NONE)
    past: tuple[Place, ...] = ()
    future: tuple[Place, ...] = ()
    history: History = field(default_factory=History)
    compared: tuple[str, ...] = ()
    gaps: Gaps | None = None
    all_gaps: tuple[Gaps, ...] = ()
    sweep: str = ""
    tensor: str = ""
    gap_reference: str = "edge"
    help_subject: str = ""
    gates: tuple[str, ...] = ()

    @property
    def gap(self) -> RunGap | None:
        """Return the comparison of a run of the method shown, or None."""
        if self.gaps is None or self.gaps.session is not self.open_session:
            return None
        return next((run for run in self.gaps.runs if run.method == self.method), None)

    def gaps_of(self, session: OpenSession) -> Gaps | None:
        """Return the last numeric comparison of a session, or None."""
        return next((one for one in self.all_gaps if one.session is session), None)

    @property
    def open_session(self) -> OpenSession | None:
        """Return the current session, or None."""
        return next((one for one in self.sessions if one.id == self.current), None)

    @property
    def session(self) -> Session | None:
        """Return the data of the current session, or None."""
        found = self.open_session
        return None if found is None else found.session

    @property
    def scope(self) -> str:
        """Return the prefix of ids that are unique within a method of a session."""
        return f"{self.current}/{self.method}/"

    @property
    def place(self) -> Place:
        """Return the current place."""
        return Place(self.current, self.method, self.selection)
