"""Bounded reading shared by the payload decoders."""

from __future__ import annotations

import struct
from typing import Any

from schema.errors import FormatError
from schema.flatbuf.reader import Reader

_MAX_OFFSETS = 400_000  # tables may be shared, so that their number is not bounded by the size


class PayloadReader(Reader):
    """A flatbuffer reader that also bounds the number of offsets it follows.

    A payload graph of 30,000 nodes needs half of the limit; a hostile payload of a few
    megabytes could otherwise refer to millions of tables and strings.

    Attributes:
        offsets: number followed so far
    """

    def __init__(self, buffer: memoryview, limit: int | None = None, *, where: str = "") -> None:
        super().__init__(buffer, limit, where=where)
        self.offsets = 0

    def follow(self, at: int) -> int:
        """Return the position that the offset stored at a position points to."""
        self.offsets += 1
        if self.offsets > _MAX_OFFSETS:
            raise FormatError(
                f"at most {_MAX_OFFSETS} tables, vectors and strings", "more", offset=at
            )
        return super().follow(at)


def span(data: memoryview, offset: int, nbytes: int, field: str) -> memoryview:
    """Return a range of the payload.

    Raises: FormatError if it is not inside
    """
    if offset < 0 or nbytes < 0 or offset + nbytes > len(data):
        raise FormatError(
            f"{nbytes} bytes inside a payload of {len(data)} bytes",
            f"a range starting at byte {offset}",
            field=field,
            offset=max(0, min(offset, len(data))),
        )
    return data[offset : offset + nbytes]


def unpack(layout: struct.Struct, data: memoryview, offset: int, field: str) -> tuple[Any, ...]:
    """Return the scalars of a fixed layout.

    Raises: FormatError if the payload is too short for it
    """
    return layout.unpack(span(data, offset, layout.size, field))


def expect_identifier(data: memoryview, base: int, allowed: tuple[bytes, ...]) -> str:
    """Return the flatbuffer identifier after ``base``.

    Raises: FormatError if it is not one of those allowed
    """
    found = bytes(span(data, base, 8, "flatbuffer")[4:8])
    if found not in allowed:
        names = " or ".join(name.decode("ascii") for name in allowed)
        raise FormatError(f"a flatbuffer {names}", repr(found)[1:], offset=base + 4)
    return found.decode("ascii")
