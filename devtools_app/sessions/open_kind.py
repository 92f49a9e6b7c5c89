"""What opening a set of files does, of what they are and what is open."""

from __future__ import annotations

from enum import Enum, auto

from devtools_app.state.state import State
from devtools_app.state.sweep_file import sweep_path
from inspector.files.workspace_file import is_workspace


class Opens(Enum):
    """What files become once they are opened."""

    NOTHING = auto()  # there are none
    WORKSPACE = auto()  # its sessions come in addition to those that are open
    SWEEP = auto()  # the results of a sweep
    VALUES = auto()  # values of nodes, which join the session shown
    SESSIONS = auto()  # one session or more


def opens_as(paths: tuple[str, ...], state: State) -> Opens:
    """Return what files and folders become when they are opened together now."""
    from inspector.files.node_data import is_node_data

    if not paths:
        return Opens.NOTHING
    if any(map(is_workspace, paths)):
        return Opens.WORKSPACE
    if len(paths) == 1 and sweep_path(paths[0]):
        return Opens.SWEEP
    if state.open_session and all(map(is_node_data, paths)):
        return Opens.VALUES
    return Opens.SESSIONS
