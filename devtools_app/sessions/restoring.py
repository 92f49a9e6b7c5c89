"""A workspace while its files are read, and its sessions that could not be opened."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from devtools_app.state.state import Bookmark, Place, State
from devtools_app.state.transitions import show_session
from devtools_app.state.variants import joined
from devtools_app.state.workspace import Workspace


@dataclass(slots=True)
class Restoring:
    """A workspace whose files are being read.

    Attributes:
        workspace: content of the file
        path: the file
        names: id of a session in the workspace -> its id in the window
    """

    workspace: Workspace
    path: Path
    names: dict[str, str] = field(default_factory=dict[str, str])


def restored_state(state: State, restoring: Restoring) -> State:
    """Return the state as the workspace describes it, with its session ids mapped to ours."""
    workspace, names = restoring.workspace, restoring.names
    notes = {names[key]: text for key, text in workspace.notes.items() if key in names}
    marks = [_renamed(mark, names) for mark in workspace.bookmarks if mark.place.session in names]
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
        history=joined(state.history, workspace.history, names),
    )
    current = names.get(workspace.current)
    if current is None:
        return state
    state = show_session(state, current)
    session = state.session
    if session is None or workspace.method not in session.methods:
        return state
    return replace(state, method=workspace.method, selection=workspace.selection)


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
