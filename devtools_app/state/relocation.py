"""Finds the files of a workspace that lie elsewhere now, below one folder."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path, PurePath, PureWindowsPath

from devtools_app.state.workspace import Workspace

_MOST = 200_000  # entries of a folder that are looked at


def missing_paths(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the paths that are not there, each once."""
    return tuple(dict.fromkeys(path for path in paths if not os.path.lexists(path)))


def session_paths(workspace: Workspace, without: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the paths of the sessions of a workspace but some."""
    left = set(without)
    return tuple(path for key, paths in workspace.sessions if key not in left for path in paths)


def relocated(
    workspace: Workspace, folder: Path, check: Callable[[], object] = lambda: None
) -> Workspace:
    """Return a workspace whose missing files are those of the same name below a folder.

    Files that lay in one folder are taken from one folder: the one that has most of them, then the
    one whose path ends most like theirs. Between several that are equal none is chosen.

    Args:
        workspace: as it was read
        folder: to search
        check: called for each folder; raises to cancel
    """
    history = workspace.history
    variants = (path for one in history.variants for path in one.files)
    missing = missing_paths((*session_paths(workspace), *variants))
    found = _found(missing, folder, check)

    def moved(paths: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(found.get(path, path) for path in paths)

    ours = tuple(replace(one, files=moved(one.files)) for one in history.variants)
    return replace(
        workspace,
        sessions=tuple((key, moved(paths)) for key, paths in workspace.sessions),
        history=replace(history, variants=ours),
    )


def _found(missing: Iterable[str], folder: Path, check: Callable[[], object]) -> Mapping[str, str]:
    """Return the new place of each path that was found."""
    groups: dict[tuple[str, ...], dict[str, str]] = defaultdict(dict)
    for path in missing:
        parts = _parts(path)
        if parts:
            groups[parts[:-1]][parts[-1]] = path
    names = {name for group in groups.values() for name in group}
    places = _places(folder, names, check)
    found: dict[str, str] = {}
    for parent, group in groups.items():
        place = _best(parent, group, places)
        if place is not None:
            there = places[place]
            found |= {
                path: os.path.join(place, name) for name, path in group.items() if name in there
            }
    return found


def _places(folder: Path, names: set[str], check: Callable[[], object]) -> dict[str, set[str]]:
    """Return the names that each folder below one has."""
    found: dict[str, set[str]] = {}
    seen = 0
    for place, folders, files in os.walk(folder):
        check()
        folders.sort()
        seen += len(folders) + len(files)
        if there := names.intersection((*folders, *files)):
            found[place] = there
        if seen > _MOST:
            break
    return found


def _best(
    parent: tuple[str, ...], names: Iterable[str], places: Mapping[str, set[str]]
) -> str | None:
    """Return the folder most similar to the former one of the files, None if several are."""
    wanted = set(names)
    ranked = sorted(
        (
            (len(wanted & there), _common_end(parent, PurePath(place).parts), place)
            for place, there in places.items()
            if wanted & there
        ),
        reverse=True,
    )
    if not ranked or (len(ranked) > 1 and ranked[0][:2] == ranked[1][:2]):
        return None
    return ranked[0][2]


def _common_end(one: tuple[str, ...], two: tuple[str, ...]) -> int:
    count = 0
    for left, right in zip(reversed(one), reversed(two), strict=False):
        if left != right:
            break
        count += 1
    return count


def _parts(path: str) -> tuple[str, ...]:
    """Return the parts of a path of this or of another system."""
    parts = PurePath(path).parts
    last = parts[-1] if parts else ""
    return (*parts[:-1], *PureWindowsPath(last).parts) if "\\" in last else parts
