"""The contents of the folders that sessions were opened from, to notice new files."""

from __future__ import annotations

import os
from collections.abc import Iterable

_DEPTH = 2  # below the folder: the runs of a program, and what is in them
_MOST = 500  # entries that are read; a folder with more is not opened

Listing = dict[str, tuple[int, int]]


def listing(folder: str) -> tuple[Listing, tuple[str, ...]]:
    """Return size and time of each file in a folder, and the folders to watch for it."""
    files: Listing = {}
    folders: list[str] = []
    level = [folder]
    for depth in range(_DEPTH + 1):
        below: list[str] = []
        for place in level:
            folders.append(place)
            for entry in _entries(place):
                if len(files) + len(folders) + len(below) >= _MOST:
                    return files, tuple(folders)
                _take(entry, files, below if depth < _DEPTH else [])
        level = below
    return files, tuple(folders)


def _take(entry: os.DirEntry[str], files: Listing, folders: list[str]) -> None:
    if entry.name.startswith("."):
        return
    try:
        if entry.is_dir():
            folders.append(entry.path)
        else:
            found = entry.stat()
            files[entry.path] = (found.st_size, found.st_mtime_ns)
    except OSError:  # removed meanwhile
        return


def _entries(folder: str) -> Iterable[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return sorted(found, key=lambda entry: entry.name)
    except OSError:
        return ()
