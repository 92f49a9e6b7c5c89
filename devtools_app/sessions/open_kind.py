"""What opening a set of files does, of what they are and what is open."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from pathlib import Path

from devtools_app.state.state import State
from devtools_app.state.sweep_file import sweep_path
from inspector.files.workspace_file import is_workspace


class Opens(Enum):
    """What files become once they are opened."""

    NOTHING = auto()  # there are none
    WORKSPACE = auto()  # its sessions come in addition to those that are open
    SWEEP = auto()  # the results of a sweep
    PERHAPS_VALUES = auto()  # text; if it holds values of nodes, they join the session shown
    SESSIONS = auto()  # one session or more


class FileContent(Enum):
    """What reading files shows them to be."""

    VALUES = auto()  # of nodes, all of them
    SESSION = auto()  # one that a session can be of is among them
    UNKNOWN = auto()  # none is of a known format: opening them is an error


def opens_as(paths: tuple[str, ...], state: State) -> Opens:
    """Return what files and folders become when they are opened together now.

    Only first bytes are read, so that the GUI thread may ask; `content_of` decides the rest.
    """
    if not paths:
        return Opens.NOTHING
    if any(map(is_workspace, paths)):
        return Opens.WORKSPACE
    if len(paths) == 1 and sweep_path(paths[0]):
        return Opens.SWEEP
    if state.open_session:
        from inspector.files.node_data import begins_like_node_data

        if all(map(begins_like_node_data, paths)):
            return Opens.PERHAPS_VALUES
    return Opens.SESSIONS


def hold_values(paths: tuple[str, ...], check: Callable[[], None]) -> bool:
    """Return whether all files hold values of nodes; for a thread, since they are read whole.

    Args:
        paths: the files
        check: called before each file; may raise to stop
    """
    from inspector.files.node_data import is_node_data

    for path in paths:
        check()
        if not is_node_data(path):
            return False
    return True


def content_of(paths: tuple[str, ...], check: Callable[[], None]) -> FileContent:
    """Return what files and folders are by their content; for a thread, as `hold_values`.

    Args:
        paths: files and folders
        check: called before each file; may raise to stop
    """
    from inspector.files.load import expand, sniff_file

    if hold_values(paths, check):
        return FileContent.VALUES
    try:
        names = expand(paths)
    except OSError:  # a folder that may not be read, as opening it will say
        return FileContent.UNKNOWN
    for name in names:
        check()
        if sniff_file(Path(name)):
            return FileContent.SESSION
    return FileContent.UNKNOWN
