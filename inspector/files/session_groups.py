"""Splits the paths that are opened together into sessions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from inspector.files.load import PROGRAMS, siblings, sniff_file, stem_of
from inspector.files.session import EXPORTED
from schema.files.vendor_models import is_vendor_model


def split_sessions(paths: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Split paths into sessions.

    A folder with a program or a record begins a new session if the current one already has such a
    folder; other folders and files belong to the preceding session. One folder alone that holds
    several programs is a session for each, where the names of its files show whose they are.
    """
    if len(paths) == 1:
        return _by_program(Path(paths[0])) or (tuple(paths),)
    groups: list[list[str]] = [[]]
    begun = False
    several = sum(Path(path).is_dir() for path in paths) > 1
    for path in paths:
        begins = several and _is_session_folder(Path(path))
        if begins and begun:
            groups.append([])
        begun = begun or begins
        groups[-1].append(path)
    return tuple(map(tuple, groups))


def _by_program(folder: Path) -> tuple[tuple[str, ...], ...]:
    """Return the files of each of several programs of a folder, which share its stem.

    A folder named as one of them belongs to it, too. Empty where there are not several or where a
    file has the name of none.
    """
    if is_vendor_model(folder) or not folder.is_dir():
        return ()
    try:
        names = siblings(folder)
    except OSError:  # as opening it will say
        return ()
    groups: dict[str, list[str]] = {}
    for name in names:
        if sniff_file(Path(name)) in (*PROGRAMS, EXPORTED):
            groups.setdefault(stem_of(name), [])
    if len(groups) < 2 or any(stem_of(name) not in groups for name in names):
        return ()
    for stem, group in groups.items():
        beside = folder / stem
        if beside.is_dir() and _is_session_folder(beside):
            group.append(str(beside))
        group += [name for name in names if stem_of(name) == stem]
    return tuple(map(tuple, groups.values()))


def _is_session_folder(path: Path) -> bool:
    if is_vendor_model(path):
        return path.is_dir()
    try:
        entries = [entry for entry in path.iterdir() if entry.is_file()]
    except OSError:  # a file, or a folder that may not be read, as opening it will say
        return False
    return any(sniff_file(entry) in PROGRAMS for entry in entries)
