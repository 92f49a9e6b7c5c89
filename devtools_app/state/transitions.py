"""State transitions: pure functions, each testable in a line."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from devtools_app.state.state import Bookmark, Gaps, OpenSession, Place, State
from devtools_app.state.tab_groups import TabGroup, Tabs
from inspector.tables.selection import NOTHING, Selection

if TYPE_CHECKING:
    from inspector.files.session import Session, SessionOptions

HISTORY_LIMIT = 200  # places remembered each way; further back is rarely visited
BOOKMARK_SLOTS = 10  # Ctrl+1 ... Ctrl+9, Ctrl+0


def select(state: State, selection: Selection) -> State:
    """Return the state with a new selection and a history entry."""
    if selection == state.selection:
        return state
    past = (*state.past, state.place)[-HISTORY_LIMIT:]
    method = selection.method or state.method
    return replace(state, selection=selection, method=method, past=past, future=())


def go_to(state: State, place: Place) -> State:
    """Return the state at another place, possibly of another session, with a history entry."""
    if place == state.place or not _is_open(state, place):
        return state
    past = (*state.past, state.place)[-HISTORY_LIMIT:]
    return _at(replace(state, past=past, future=()), place)


def back(state: State) -> State:
    """Return the state one step back in the history, skipping places of closed sessions."""
    past = _drop_closed(state, state.past)
    if not past:
        return replace(state, past=())
    future = (*state.future, state.place)
    return _at(replace(state, past=past[:-1], future=future), past[-1])


def forward(state: State) -> State:
    """Return the state one step forward in the history."""
    future = _drop_closed(state, state.future)
    if not future:
        return replace(state, future=())
    past = (*state.past, state.place)
    return _at(replace(state, past=past, future=future[:-1]), future[-1])


def set_bookmark(state: State, label: str, slot: int | None = None) -> State:
    """Return the state with the current place under a slot, by default the first free one.

    If all slots are used the oldest bookmark is replaced.
    """
    taken = [bookmark.slot for bookmark in state.bookmarks]
    free = [(n + 1) % BOOKMARK_SLOTS for n in range(BOOKMARK_SLOTS)]
    if slot is None:
        slot = next((n for n in free if n not in taken), taken[0] if taken else 1)
    kept = tuple(bookmark for bookmark in state.bookmarks if bookmark.slot != slot)
    return replace(state, bookmarks=(*kept, Bookmark(slot, state.place, label)))


def bookmark_at(state: State, slot: int) -> Bookmark | None:
    """Return the bookmark of a slot, None if it is empty."""
    return next((bookmark for bookmark in state.bookmarks if bookmark.slot == slot), None)


def add_session(
    state: State, session: Session, paths: tuple[str, ...], *, behind: bool = False
) -> State:
    """Return the state with one more session, shown at once unless behind another one."""
    added = OpenSession(session_id(state.opened), session, paths)
    more = replace(state, sessions=(*state.sessions, added), opened=state.opened + 1)
    if behind and state.sessions:
        return replace(more, unseen=more.unseen | {added.id})
    return _show(more, added)


def replace_session(
    state: State, key: str, session: Session, paths: tuple[str, ...] | None = None
) -> State:
    """Return the state with a session read again; the selection is kept.

    The method falls back to the first one if the new program lacks it. ``paths`` replaces its
    files.
    """

    def renewed(one: OpenSession) -> OpenSession:
        kept = one.paths if paths is None else paths
        return OpenSession(one.id, session, kept, one.revision + 1)

    sessions = tuple(renewed(one) if one.id == key else one for one in state.sessions)
    changed = replace(state, sessions=sessions)
    if key == state.current and state.method not in session.methods:
        return replace(changed, method=_first_method(session), selection=NOTHING)
    return changed


def show_session(state: State, key: str) -> State:
    """Return the state with another session shown."""
    found = next((one for one in state.sessions if one.id == key), None)
    if found is None or key == state.current:
        return state
    return _show(state, found)


def with_gaps(state: State, gaps: Gaps) -> State:
    """Return the state with the values of a session compared; its former comparison is dropped."""
    there = {id(one) for one in state.sessions if one is not gaps.session}
    kept = (one for one in state.all_gaps if id(one.session) in there)
    shown = gaps if gaps.session is state.open_session else state.gaps
    return replace(state, gaps=shown, all_gaps=(*kept, gaps))


def close_session(state: State, key: str) -> State:
    """Return the state without a session; its neighbour becomes current, bookmarks are removed."""
    ids = [one.id for one in state.sessions]
    if key not in ids:
        return state
    index = ids.index(key)
    sessions = tuple(one for one in state.sessions if one.id != key)
    changed = replace(
        state,
        sessions=sessions,
        bookmarks=tuple(mark for mark in state.bookmarks if mark.place.session != key),
        expanded=frozenset(one for one in state.expanded if not one.startswith(f"{key}/")),
        notes={other: text for other, text in state.notes.items() if other != key},
    )
    if key != state.current:
        return changed
    if not sessions:
        return replace(changed, current="", method="", selection=NOTHING, past=(), future=())
    return _show(changed, sessions[min(index, len(sessions) - 1)])


def with_options(state: State, options: SessionOptions) -> State:
    """Return the state with every session read under other options, but its own unit of ticks."""
    from inspector.files.origin import with_known_unit  # not before: it imports the readers

    for one in state.sessions:
        known = with_known_unit(one.session.files, options)
        if one.session.options != known:
            state = replace_session(state, one.id, replace(one.session, options=known))
    return state


def _first_method(session: Session) -> str:
    from inspector.profile.methods import first_method  # numpy, which a window starts without

    return first_method(session)


def session_id(number: int) -> str:
    """Return the letters for the n-th session, counted from 0."""
    letters = ""
    number += 1
    while number:
        number, digit = divmod(number - 1, 26)
        letters = chr(ord("A") + digit) + letters
    return letters


def _show(state: State, one: OpenSession) -> State:
    past = (*state.past, state.place)[-HISTORY_LIMIT:] if state.current else state.past
    return replace(
        state,
        current=one.id,
        unseen=state.unseen - {one.id},
        method=_first_method(one.session),
        selection=NOTHING,
        past=past,
        future=(),
    )


def _is_open(state: State, place: Place) -> bool:
    return not place.session or any(one.id == place.session for one in state.sessions)


def _drop_closed(state: State, places: tuple[Place, ...]) -> tuple[Place, ...]:
    kept = [place for place in places if _is_open(state, place)]
    while kept and kept[-1] == state.place:
        kept.pop()
    return tuple(kept)


def _at(state: State, place: Place) -> State:
    unseen = state.unseen - {place.session}
    shown = replace(state, current=place.session, unseen=unseen)
    return replace(shown, method=place.method, selection=place.selection)


def with_group_of_view(state: State, tabs: Tabs) -> State:
    """Return the state with a group in front that has the view in front.

    That of the state if it has the view, else the first one that does; a view of no group changes
    nothing.
    """
    if state.view in tabs.get(state.group, ()):
        group = state.group
    else:
        found = next((one for one, names in tabs.items() if state.view in names), None)
        if found is None:
            return state
        group = found
    if (group, state.fronts.get(group)) == (state.group, state.view):
        return state
    return replace(state, group=group, fronts={**state.fronts, group: state.view})


def show_group(state: State, group: TabGroup, tabs: Tabs) -> State:
    """Return the state with another group in front, at the view that was in front of it."""
    names = tabs.get(group, ())
    front = state.fronts.get(group, "")
    if group is state.group or not names:
        return state
    return replace(state, group=group, view=front if front in names else names[0])
