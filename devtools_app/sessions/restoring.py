"""A workspace while its files are read, and its sessions that could not be opened."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from devtools_app.state.state import Bookmark, Place, State
from devtools_app.state.transitions import show_session
from devtools_app.state.variants import History, joined
from devtools_app.state.workspace import Workspace


@dataclass(slots=True)
class Restoring:
    """A workspace whose files are being read.

    Attributes:
        workspace: content of the file
        path: the file
        names: id of a session in the workspace -> its id in the window
        opened: sessions of it that were opened before the files of others were located
        first: number of variants that the window had made before the workspace; -1 before it is in
    """

    workspace: Workspace
    path: Path
    names: dict[str, str] = field(default_factory=dict[str, str])
    opened: frozenset[str] = frozenset()
    first: int = -1


def restored_state(state: State, restoring: Restoring) -> State:
    """Return the state as the workspace describes it, with its session ids mapped to ours."""
    workspace, names = restoring.workspace, restoring.names
    new = {key: name for key, name in names.items() if key not in restoring.opened}
    notes = {new[key]: text for key, text in workspace.notes.items() if key in new}
    marks = [_renamed(mark, new) for mark in workspace.bookmarks if mark.place.session in new]
    slots = {mark.slot for mark in marks}
    others = tuple(mark for mark in state.bookmarks if mark.slot not in slots)
    state = replace(
        state,
        notes={**state.notes, **notes},
        bookmarks=(*others, *marks),
        view=workspace.view or state.view,
        group=workspace.group,
        fronts={**state.fronts, **workspace.fronts},
        split_view=workspace.split_view,
        overlay=workspace.overlay,
        filter_text=workspace.filter_text,
        history=_with_history(state, restoring),
    )
    current = names.get(workspace.current)
    if current is None:
        return state
    state = show_session(state, current)
    session = state.session
    if session is None or workspace.method not in session.methods:
        return state
    return replace(state, method=workspace.method, selection=workspace.selection)


def _with_history(state: State, restoring: Restoring) -> History:
    """Return the variants of the window with those of the workspace, which are there once only."""
    history, workspace, names = state.history, restoring.workspace, restoring.names
    new = {key: name for key, name in names.items() if key not in restoring.opened}
    if restoring.first < 0:
        restoring.first = history.created
        return joined(history, workspace.history, names)
    moved = {one.id + restoring.first: one for one in workspace.history.variants}
    variants = tuple(
        replace(
            one,
            files=moved[one.id].files,
            session=one.session or new.get(moved[one.id].session, ""),
        )
        if one.id in moved
        else one
        for one in history.variants
    )
    return replace(history, variants=variants)


def absent_part(restoring: Restoring) -> Workspace:
    """Return the sessions of a workspace that could not be opened, with all their data.

    They are preserved when the workspace is saved: missing files may come back, and notes about
    them belong to the user.
    """
    workspace, names = restoring.workspace, restoring.names
    absent = {key for key, _ in workspace.sessions if key not in names}
    return Workspace(
        sessions=tuple(one for one in workspace.sessions if one[0] in absent),
        bookmarks=tuple(mark for mark in workspace.bookmarks if mark.place.session in absent),
        notes={key: text for key, text in workspace.notes.items() if key in absent},
    )


def with_absent(workspace: Workspace, absent: Workspace) -> Workspace:
    """Return a workspace with sessions that are not open, under ids that are free in it."""
    taken = {key for key, _ in workspace.sessions}
    names: dict[str, str] = {}
    for key, _ in absent.sessions:
        name = key
        while name in taken:
            name += "'"
        taken.add(name)
        names[key] = name
    slots = {mark.slot for mark in workspace.bookmarks}
    marks = (_renamed(mark, names) for mark in absent.bookmarks if mark.slot not in slots)
    return replace(
        workspace,
        sessions=(*workspace.sessions, *((names[key], paths) for key, paths in absent.sessions)),
        bookmarks=(*workspace.bookmarks, *marks),
        notes={**workspace.notes, **{names[key]: text for key, text in absent.notes.items()}},
    )


def _renamed(mark: Bookmark, names: dict[str, str]) -> Bookmark:
    place = Place(names[mark.place.session], mark.place.method, mark.place.selection)
    return replace(mark, place=place)
