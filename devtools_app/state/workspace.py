"""A workspace file: open files, views and notes.

It holds neither file contents nor the theme.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from devtools_app.state.json_file import (
    DamagedFileError,
    as_object,
    get_choice,
    get_int,
    get_list,
    get_object,
    get_optional_int,
    get_strings,
    get_text,
    read_json,
    write_json,
)
from devtools_app.state.state import Bookmark, Place, State
from devtools_app.state.transitions import BOOKMARK_SLOTS
from devtools_app.state.variant_file import history_content, history_from
from devtools_app.state.variants import History
from inspector.tables.selection import NOTHING, Selection, SelectionKind

SUFFIX = ".etscope"
FORMAT = 1
_MAX_SESSIONS = 64
_KINDS = [kind.value for kind in SelectionKind]
_NO_NOTES: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Workspace:
    """Content of a workspace file.

    Attributes:
        sessions: files of each session by its id at the time of saving
        current: id of the session shown
        method: its method
        view: view in front
        split_view: view beside it, empty for none
        overlay: what colour means
        filter_text: filter of the operators
        selection: what was selected
        bookmarks: places under number keys
        notes: text by session id
        layout: of the docks, base64 of Qt's bytes
        history: variants of the programs
    """

    sessions: tuple[tuple[str, tuple[str, ...]], ...] = ()
    current: str = ""
    method: str = ""
    view: str = ""
    split_view: str = ""
    overlay: str = "time"
    filter_text: str = ""
    selection: Selection = NOTHING
    bookmarks: tuple[Bookmark, ...] = ()
    notes: Mapping[str, str] = field(default_factory=lambda: _NO_NOTES)
    layout: str = ""
    history: History = field(default_factory=History)


def workspace_of(state: State, layout: str) -> Workspace:
    """Return the workspace for a state and a dock layout."""
    return Workspace(
        sessions=tuple((one.id, one.paths) for one in state.sessions),
        current=state.current,
        method=state.method,
        view=state.view,
        split_view=state.split_view,
        overlay=state.overlay,
        filter_text=state.filter_text,
        selection=state.selection,
        bookmarks=state.bookmarks,
        notes=dict(state.notes),
        layout=layout,
        history=state.history,
    )


def save_workspace(path: Path, workspace: Workspace) -> None:
    """Write a workspace; files below its folder are named relative to it.

    Raises: OSError
    """
    folder = path.resolve().parent
    sessions = [
        {"id": name, "paths": [_stored(one, folder) for one in paths]}
        for name, paths in workspace.sessions
    ]
    bookmarks = [
        {"slot": mark.slot, "label": mark.label, "place": _place_content(mark.place)}
        for mark in workspace.bookmarks
    ]
    place = Place(workspace.current, workspace.method, workspace.selection)
    content = {
        "etscope_workspace": FORMAT,
        "sessions": sessions,
        "place": _place_content(place),
        "view": workspace.view,
        "split_view": workspace.split_view,
        "overlay": workspace.overlay,
        "filter": workspace.filter_text,
        "bookmarks": bookmarks,
        "notes": dict(workspace.notes),
        "layout": workspace.layout,
        "variants": history_content(workspace.history, lambda path: _stored(path, folder)),
    }
    write_json(path, content)


def load_workspace(path: Path) -> Workspace:
    """Read a workspace; invalid parts are dropped.

    Raises: DamagedFileError if it is not a workspace or of a later format; OSError
    """
    content = read_json(path)
    number = get_optional_int(content, "etscope_workspace")
    if number is None:
        raise DamagedFileError(f"{path} is not a workspace of ETScope")
    if number > FORMAT:
        raise DamagedFileError(f"{path} was written by a later version of ETScope")
    folder = path.resolve().parent
    place = _place(get_object(content, "place"))
    notes = get_object(content, "notes")
    return Workspace(
        sessions=_sessions(content, folder),
        current=place.session,
        method=place.method,
        view=get_text(content, "view"),
        split_view=get_text(content, "split_view"),
        overlay=get_text(content, "overlay", "time"),
        filter_text=get_text(content, "filter"),
        selection=place.selection,
        bookmarks=_bookmarks(content),
        notes={key: get_text(notes, key) for key in notes},
        layout=get_text(content, "layout"),
        history=history_from(content, lambda path: os.path.normpath(folder / path)),
    )


def is_workspace(path: str) -> bool:
    """Return whether a path has the suffix of a workspace."""
    return path.lower().endswith(SUFFIX)


def _stored(path: str, folder: Path) -> str:
    absolute = os.path.abspath(path)
    try:
        return Path(absolute).relative_to(folder).as_posix()
    except ValueError:
        return absolute


def _sessions(content: dict[str, object], folder: Path) -> tuple[tuple[str, tuple[str, ...]], ...]:
    found: list[tuple[str, tuple[str, ...]]] = []
    for item in get_list(content, "sessions", _MAX_SESSIONS):
        entry = as_object(item)
        paths = tuple(
            os.path.normpath(folder / path)
            for path in get_strings(entry, "paths")
            if "\0" not in path
        )
        if paths:
            found.append((get_text(entry, "id"), paths))
    return tuple(found)


def _bookmarks(content: dict[str, object]) -> tuple[Bookmark, ...]:
    found: dict[int, Bookmark] = {}
    for item in get_list(content, "bookmarks", BOOKMARK_SLOTS):
        entry = as_object(item)
        slot = get_int(entry, "slot", -1)
        if 0 <= slot < BOOKMARK_SLOTS:
            place = _place(get_object(entry, "place"))
            found[slot] = Bookmark(slot, place, get_text(entry, "label"))
    return tuple(found.values())


def _place_content(place: Place) -> dict[str, object]:
    selection = place.selection
    keys = {
        name: getattr(selection, name)
        for name in Selection.__dataclass_fields__
        if name != "kind" and getattr(selection, name) not in ("", None)
    }
    return {
        "session": place.session,
        "method": place.method,
        "selection": {"kind": selection.kind.value, **keys},
    }


def _place(content: dict[str, object]) -> Place:
    chosen = get_object(content, "selection")
    selection = Selection(
        kind=SelectionKind(get_choice(chosen, "kind", _KINDS, "none")),
        method=get_text(chosen, "method"),
        graph=get_text(chosen, "graph"),
        node=get_text(chosen, "node"),
        instruction=get_optional_int(chosen, "instruction"),
        event=get_optional_int(chosen, "event"),
        value=get_optional_int(chosen, "value"),
        delegate=get_optional_int(chosen, "delegate"),
        part=get_text(chosen, "part"),
    )
    return Place(get_text(content, "session"), get_text(content, "method"), selection)
