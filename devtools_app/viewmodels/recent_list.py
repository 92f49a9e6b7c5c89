"""Names of sessions that were open: the folder first, as much of it as distinguishes them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

_SHOWN = 3  # files


def recent_titles(recents: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return one line for each session: the end of its folder, and its first files."""
    homes = [_home(paths) for paths in recents]
    return tuple(
        f"{shortest_ending(home, homes)}    {_files(paths)}".rstrip()
        for home, paths in zip(homes, recents, strict=True)
    )


def _home(paths: Sequence[str]) -> tuple[str, ...]:
    """Return the parts of the folder of a session, which may have been opened as a folder."""
    first = PurePath(paths[0])
    return first.parts if _is_folder(paths) else first.parent.parts


def _is_folder(paths: Sequence[str]) -> bool:
    return len(paths) == 1 and not PurePath(paths[0]).suffix


def _files(paths: Sequence[str]) -> str:
    if _is_folder(paths):
        return ""
    names = [PurePath(path).name for path in paths]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def shortest_ending(home: tuple[str, ...], homes: Sequence[tuple[str, ...]]) -> str:
    """Return the last parts of a folder that no other folder ends in."""
    others = {one for one in homes if one != home}
    for count in range(1, len(home) + 1):
        if not any(one[-count:] == home[-count:] for one in others):
            return str(PurePath(*home[-count:]))
    return str(PurePath(*home)) if home else "."
