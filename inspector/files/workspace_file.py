"""The sessions of a workspace file (.etscope), which the window writes."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from schema.errors import FormatError
from schema.objects.codec import from_json, read_object

SUFFIX = ".etscope"
FORMAT = 1
MAX_BYTES = 4 << 20  # notes included; anything larger is not a workspace
_WHAT = "a workspace of ETScope"
_VERSION = "etscope_workspace"
_MAX_SESSIONS = 64

SessionFiles = tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class SessionPart:
    """A session as stored in a workspace file; paths are relative to the folder of the file."""

    id: str = ""
    paths: tuple[str, ...] = ()


def is_workspace(path: str) -> bool:
    """Return whether a path has the suffix of a workspace."""
    return path.lower().endswith(SUFFIX)


def read_workspace(path: Path) -> dict[str, object]:
    """Return the content of a workspace file.

    Raises: FormatError if it is not a workspace or of a later format; OSError
    """
    content = read_object(path, _WHAT, MAX_BYTES)
    version = content.get(_VERSION)
    if type(version) is not int:
        raise FormatError(_WHAT, "other JSON", field=_VERSION, file=str(path))
    if version > FORMAT:
        newer = f"{version}, written by a later version of ETScope"
        raise FormatError(f"format {FORMAT}", newer, field=_VERSION, file=str(path))
    return content


def resolved(parts: Iterable[SessionPart], folder: Path) -> SessionFiles:
    """Return id and absolute paths of the sessions that have any, in order.

    Args:
        parts: as the file has them
        folder: of the file
    """
    named = (
        (one.id, tuple(os.path.normpath(folder / name) for name in one.paths if "\0" not in name))
        for one in list(parts)[:_MAX_SESSIONS]
    )
    return tuple((name, paths) for name, paths in named if paths)


def workspace_sessions(path: Path) -> SessionFiles:
    """Return id and files of the sessions in a workspace file.

    Raises: FormatError if it is not a workspace, or names no files; OSError
    """
    content = read_workspace(path)
    parts = from_json(content.get("sessions", []), tuple[SessionPart, ...], f"{path}: sessions")
    found = resolved(parts, path.resolve().parent)
    if not found:
        raise FormatError("sessions with files", "none", field="sessions", file=str(path))
    return found
