"""A workspace file: open files, views and notes.

It holds neither file contents nor the theme.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from devtools_app.state.json_file import read_parts, write_json
from devtools_app.state.panel_layout import NO_LAYOUTS, PanelLayout, PanelLayouts
from devtools_app.state.state import Bookmark, Place, State
from devtools_app.state.tab_groups import TabGroup
from devtools_app.state.transitions import BOOKMARK_SLOTS
from devtools_app.state.variant_file import history_content, history_from
from devtools_app.state.variants import History
from inspector.files.workspace_file import FORMAT, SessionPart, read_workspace, resolved
from inspector.tables.selection import NOTHING, Selection
from schema.objects.codec import to_json

_NONE: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Workspace:
    """Content of a workspace file.

    Attributes:
        sessions: files of each session by its id at the time of saving
        current: id of the session shown
        method: its method
        view: view in front
        group: its group of tabs
        fronts: the view in front of each group
        split_view: second view, may be empty
        overlay: meaning of colours
        filter_text: filter of the operators
        selection: the selection
        bookmarks: places under number keys
        notes: text by session id
        layouts: where the panels are, by the group of tabs
        history: variants of the programs
    """

    sessions: tuple[tuple[str, tuple[str, ...]], ...] = ()
    current: str = ""
    method: str = ""
    view: str = ""
    group: TabGroup = TabGroup.LOOK
    fronts: Mapping[str, str] = field(default_factory=lambda: _NONE)
    split_view: str = ""
    overlay: str = "time"
    filter_text: str = ""
    selection: Selection = NOTHING
    bookmarks: tuple[Bookmark, ...] = ()
    notes: Mapping[str, str] = field(default_factory=lambda: _NONE)
    layouts: Mapping[str, PanelLayout] = field(default_factory=lambda: NO_LAYOUTS)
    history: History = field(default_factory=History)


def workspace_of(state: State, layouts: PanelLayouts) -> Workspace:
    """Return the workspace for a state and the places of the panels."""
    return Workspace(
        sessions=tuple((one.id, one.paths) for one in state.sessions),
        current=state.current,
        method=state.method,
        view=state.view,
        group=state.group,
        fronts=dict(state.fronts),
        split_view=state.split_view,
        overlay=state.overlay,
        filter_text=state.filter_text,
        selection=state.selection,
        bookmarks=state.bookmarks,
        notes=dict(state.notes),
        layouts=dict(layouts),
        history=state.history,
    )


@dataclass(frozen=True, slots=True)
class WorkspaceFile:
    """A workspace as its file has it: paths below its folder are relative to it."""

    etscope_workspace: int = FORMAT
    sessions: tuple[SessionPart, ...] = ()
    place: Place = field(default_factory=Place)
    view: str = ""
    group: TabGroup = TabGroup.LOOK
    fronts: Mapping[str, str] = field(default_factory=lambda: _NONE)
    split_view: str = ""
    overlay: str = "time"
    filter: str = ""
    bookmarks: tuple[Bookmark, ...] = ()
    notes: Mapping[str, str] = field(default_factory=lambda: _NONE)
    layouts: Mapping[str, PanelLayout] = field(default_factory=lambda: NO_LAYOUTS)
    variants: object = ()


def save_workspace(path: Path, workspace: Workspace) -> None:
    """Write a workspace; files below its folder are named relative to it.

    Raises: OSError
    """
    write_json(path, workspace_content(workspace, path.resolve().parent))


def workspace_content(workspace: Workspace, folder: Path) -> dict[str, Any]:
    """Return a workspace as the file in a folder has it."""
    file = WorkspaceFile(
        sessions=tuple(
            SessionPart(name, tuple(_stored(one, folder) for one in paths))
            for name, paths in workspace.sessions
        ),
        place=Place(workspace.current, workspace.method, workspace.selection),
        view=workspace.view,
        group=workspace.group,
        fronts=workspace.fronts,
        split_view=workspace.split_view,
        overlay=workspace.overlay,
        filter=workspace.filter_text,
        bookmarks=workspace.bookmarks,
        notes=dict(workspace.notes),
        layouts=workspace.layouts,
        variants=history_content(workspace.history, lambda path: _stored(path, folder)),
    )
    return to_json(file)


def load_workspace(path: Path) -> Workspace:
    """Read a workspace; invalid parts are dropped and logged.

    Raises: FormatError if it is not a workspace or of a later format; OSError
    """
    content = read_workspace(path)
    folder = path.resolve().parent

    def found(name: str) -> str:
        return os.path.normpath(folder / name)

    file = read_parts(content, WorkspaceFile, path.name)
    marks = {mark.slot: mark for mark in file.bookmarks if 0 <= mark.slot < BOOKMARK_SLOTS}
    return Workspace(
        sessions=resolved(file.sessions, folder),
        current=file.place.session,
        method=file.place.method,
        view=file.view,
        group=file.group,
        fronts=file.fronts,
        split_view=file.split_view,
        overlay=file.overlay,
        filter_text=file.filter,
        selection=file.place.selection,
        bookmarks=tuple(marks.values()),
        notes=file.notes,
        layouts=file.layouts,
        history=history_from(file.variants, found),
    )


def _stored(path: str, folder: Path) -> str:
    absolute = os.path.abspath(path)
    try:
        return Path(absolute).relative_to(folder).as_posix()
    except ValueError:
        return absolute
