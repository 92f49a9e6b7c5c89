"""What a drop of dragged data on the window would do, in words, before it is dropped."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QMimeData

from devtools_app.sessions.open_kind import FileContent, Opens, opens_as
from devtools_app.state.state import State

_NAMED = 3  # files that are named one by one


@dataclass(frozen=True)
class DropWords:
    """The message about dragged data.

    Attributes:
        title: what happens to it
        text: one sentence more
        paths: files and folders that would be opened; empty if the data is refused
        unread: whether only reading the files shows what they are
    """

    title: str
    text: str
    paths: tuple[str, ...] = ()
    unread: bool = False


def drop_words(data: QMimeData, state: State) -> DropWords:
    """Return what dropping data on a window in this state would do, or why it is refused."""
    paths = dropped_files(data)
    if paths:
        readable = any(os.path.isfile(path) or os.path.isdir(path) for path in paths)
        return opening_words(paths, state) if readable else _unreadable(paths)
    if data.hasUrls():
        return DropWords(
            "An address cannot be opened", "Download the file and drop it from a folder."
        )
    return DropWords("Only files can be dropped here", "Text can be dropped on a text field.")


def dropped_files(data: QMimeData) -> tuple[str, ...]:
    """Return the files and folders of this machine in dragged data."""
    return tuple(url.toLocalFile() for url in data.urls() if url.isLocalFile())


def _unreadable(paths: tuple[str, ...]) -> DropWords:
    exists = any(map(os.path.lexists, paths))
    why = "is neither a file nor a folder" if exists else "does not exist"
    if len(paths) > 1:
        why = why.replace("is neither", "are neither").replace("does not", "do not")
    return DropWords(f"{_named(paths)} {why}", "Nothing is opened.")


def opening_words(
    paths: tuple[str, ...], state: State, content: FileContent | None = None
) -> DropWords:
    """Return what opening files and folders would do.

    Args:
        paths: of which one exists at least
        state: of the window
        content: of the files; None if they were not read yet
    """
    names, shown = _named(paths), state.open_session
    others = f" {len(state.sessions)} open already stay." if state.sessions else ""
    if others and len(state.sessions) == 1:
        others = f" {state.sessions[0].session.name} stays open."
    kind = opens_as(paths, state)
    match kind:
        case Opens.WORKSPACE:
            words = f"Open the workspace {names}", f"Its sessions open.{others}"
        case Opens.SWEEP:
            words = f"Show the sweep {names}", "Its points open in the Sweep view."
        case _ if content is FileContent.UNKNOWN:
            return _unknown(paths)
        case _ if content is FileContent.VALUES and shown is None:
            text = "Open the program of these nodes first; they colour its graph."
            return DropWords(f"{names}: values of nodes", text)
        case _ if content is FileContent.VALUES and shown is not None:
            words = f"Add {names} to {shown.session.name}", "Its values colour the graph."
        case Opens.PERHAPS_VALUES if content is None and shown is not None:
            into = f"Values of nodes colour the graph of {shown.session.name}"
            words = f"Open {names}", f"{into}, anything else opens as a new session."
        case _ if all(map(os.path.isdir, paths)):
            words = f"Open {names}", f"Each program found there becomes a session.{others}"
        case _:
            together = "They open" if len(paths) > 1 else "It opens"
            words = f"Open {names}", f"{together} as a new session.{others}"
    settled = kind in (Opens.WORKSPACE, Opens.SWEEP) or content is not None
    return DropWords(*words, paths, unread=not settled)


def _unknown(paths: tuple[str, ...]) -> DropWords:
    names = _named(paths)
    if all(map(os.path.isdir, paths)):
        title = f"No ExecuTorch file lies in {names}"
    elif len(paths) > 1:
        title = f"No ExecuTorch file is among {names}"
    else:
        title = f"{names} is not an ExecuTorch file"
    text = "Nothing is opened."
    if all(path.endswith(".py") for path in paths):
        text += " File > Compile… makes a program of a function in it."
    return DropWords(title, text)


def _named(paths: tuple[str, ...]) -> str:
    """Return the names of files, of many only the number."""
    names = [Path(path).name or path for path in paths]
    if len(names) > _NAMED:
        return f"{len(names):,} files"
    return " and ".join((", ".join(names[:-1]), names[-1])) if len(names) > 1 else names[0]
