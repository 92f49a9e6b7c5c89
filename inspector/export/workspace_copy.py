"""An anonymised workspace: a folder with a copy of each session and the file that opens them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from inspector.export.anonymise import AnonymousFile, anonymise, left_out
from inspector.export.anonymise_names import Names
from inspector.files.session import Session
from inspector.files.workspace_file import SUFFIX
from schema.objects.atomic_file import write_atomically

# of the workspace: how the window looked. Notes, bookmarks, filters, overlays of files and recipes
# are words of the user, or name what is replaced in the files.
_KEPT = ("etscope_workspace", "view", "group", "fronts", "split_view", "layouts")
WITHOUT = "notes, bookmarks, selection, filters and the recipes of variants"


@dataclass(frozen=True, slots=True)
class CopiedSession:
    """A session of a workspace in its copy.

    Attributes:
        id: in the workspace
        folder: of its files, below that of the copy
        files: without weights and names
        left_out: paths of the files that the copy lacks
    """

    id: str
    folder: str
    files: tuple[AnonymousFile, ...]
    left_out: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WorkspaceCopy:
    """A workspace without weights, names and paths.

    Attributes:
        name: of the workspace file
        content: of the workspace file
        sessions: in order; those without a file that could be copied are left out
    """

    name: str
    content: bytes
    sessions: tuple[CopiedSession, ...]

    @property
    def files(self) -> tuple[tuple[Path, str, bytes], ...]:
        """Return path below the folder, kind and content of each file, the workspace last."""
        found = [
            (Path(one.folder, file.name), file.kind, file.data)
            for one in self.sessions
            for file in one.files
        ]
        return (*found, (Path(self.name), "workspace", self.content))

    @property
    def left_out(self) -> tuple[str, ...]:
        """Return the paths of the files that the copy lacks."""
        return tuple(path for one in self.sessions for path in one.left_out)


def anonymous_workspace(
    content: Mapping[str, object], sessions: Iterable[tuple[str, Session]]
) -> WorkspaceCopy:
    """Return a copy of a workspace whose names are replaced alike in all of its sessions.

    Args:
        content: of the workspace file
        sessions: id and files of each

    Raises: FormatError if the structure of a file cannot be followed far enough to be sure
    """
    names, given = Names(), tuple(sessions)
    # traces that are alone have names of the programs of other sessions
    order = sorted(range(len(given)), key=lambda place: _is_without_names(given[place][1]))
    files = {place: anonymise(given[place][1], names) for place in order}
    copied = [
        CopiedSession(name, f"session_{place + 1}", files[place], left_out(session))
        for place, (name, session) in enumerate(given)
    ]
    full = [one for one in copied if one.files]
    kept = {key: content[key] for key in _KEPT if key in content}
    kept["sessions"] = [
        {"id": one.id, "paths": [f"{one.folder}/{file.name}" for file in one.files]} for one in full
    ]
    place = content.get("place")
    if isinstance(place, dict):
        kept["place"] = {key: place[key] for key in ("session", "method") if key in place}
    data = json.dumps(kept, ensure_ascii=False, indent=1).encode()
    return WorkspaceCopy(f"workspace{SUFFIX}", data, tuple(full))


def _is_without_names(session: Session) -> bool:
    return session.program is None and session.record is None


def write_copy(copy: WorkspaceCopy, folder: Path) -> None:
    """Write the files of a copy; the workspace comes last.

    Raises: OSError
    """
    for path, _, data in copy.files:
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(target, lambda stream, data=data: stream.write(data))
