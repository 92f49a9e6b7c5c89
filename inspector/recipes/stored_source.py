"""Files that hold a program to compile, known by their first bytes: a .pt2 file, an ETRecord."""

from __future__ import annotations

from pathlib import Path

from schema.etrecord import sniff as is_record
from schema.files.formats import recognise

_HEAD, _ZIP = 4096, b"PK"  # a .pt2 file is a zip archive


def holds_record(path: str) -> bool:
    """Return whether a file is to be read as an ETRecord.

    Raises: OSError
    """
    head = _head(path)
    return is_record(head) or (head.startswith(_ZIP) and Path(path).suffix == ".etrecord")


def unlike_program(path: str) -> str:
    """Return why a file holds no program to compile, empty if it looks like one.

    Raises: OSError
    """
    head = _head(path)
    if head.startswith(_ZIP) or is_record(head):
        return ""
    known = recognise(memoryview(head))
    found = known.title if known is not None else "neither"
    return f"{path}: expected a .pt2 file or an ETRecord, found {found}"


def _head(path: str) -> bytes:
    with open(path, "rb") as stream:
        return stream.read(_HEAD)
