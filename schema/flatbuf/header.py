"""Fixed fields at the head of a file, for the structure view."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from schema.errors import FormatError


@dataclass(frozen=True, slots=True)
class HeaderField:
    """One field of a header.

    Attributes:
        name: as the format documents write it
        offset: first byte in the file
        size: bytes
        value: integer, or string of an identifier
        meaning: one sentence
    """

    name: str
    offset: int
    size: int
    value: int | str
    meaning: str


def header_field(head: bytes, name: str, offset: int, code: str, meaning: str) -> HeaderField:
    """Return the field stored at an offset.

    Args:
        head: first bytes of the file
        name: field name
        offset: first byte
        code: struct format of a little-endian scalar; ``4s`` for an identifier
        meaning: one sentence

    Raises: FormatError if the head ends before the field does
    """
    size = struct.calcsize(f"<{code}")
    if offset + size > len(head):
        raise FormatError(
            f"{size} bytes of {name}", f"a file of {len(head)} bytes", field=name, offset=offset
        )
    item = struct.unpack_from(f"<{code}", head, offset)[0]
    value = item.decode("ascii", "backslashreplace") if isinstance(item, bytes) else int(item)
    return HeaderField(name, offset, size, value, meaning)
