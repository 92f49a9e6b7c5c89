"""The record member that a program was read from.

An unchanged program is written by copying these bytes, which preserves data that torch objects lack
and avoids serializing weights.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from schema import etrecord


class Origin(NamedTuple):
    """Where a program was read from.

    Attributes:
        artifact: the record
        member: name of the program in it
    """

    artifact: etrecord.RecordFile
    member: str


_KNOWN: WeakKeyDictionary[Any, tuple[Origin, str]] = WeakKeyDictionary()


def remember(program: Any, artifact: etrecord.RecordFile, member: str) -> None:  # noqa: ANN401
    """Record the origin of an ExportedProgram, with its graph at that time."""
    _KNOWN[program] = Origin(artifact, member), _text(program)


def origin_of(program: Any) -> Origin | None:  # noqa: ANN401
    """Return the origin of a program; None if it was not read from a record, or changed since."""
    try:
        origin, text = _KNOWN[program]
    except (KeyError, TypeError):
        return None
    return origin if _text(program) == text else None


def _text(program: Any) -> str:  # noqa: ANN401
    return str(program.graph)
