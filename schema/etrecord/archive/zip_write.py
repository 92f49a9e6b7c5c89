"""Writes zip archives of stored members, zip64 where sizes ask for it.

Members are stored, as the stock tool does it: weights do not deflate, and a stored member can
be read as a view of the file.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from schema.etrecord.archive.crc import joined
from schema.etrecord.archive.zip_index import (
    CENTRAL,
    CENTRAL_MAGIC,
    END,
    END64,
    END64_MAGIC,
    END_MAGIC,
    LOCAL,
    LOCAL_MAGIC,
    LOCATOR64,
    LOCATOR64_MAGIC,
)

EPOCH = 0x0021_0000  # 1980-01-01 00:00, the first DOS time
_UTF8 = 0x800  # general purpose flag 11, APPNOTE 4.4.4
_UNIX = 3 << 8  # version made by, APPNOTE 4.4.2: needed for the file mode
_FILE_MODE = 0o100600 << 16  # regular file, read and written by its owner
_LIMIT = 0xFFFF_FFFF  # this and larger sizes need zip64
_SUMMED_APART = 1 << 16  # joining two sums takes about as long as summing 64 KiB

Bytes: TypeAlias = "bytes | memoryview"


class Pieces:
    """Byte buffers to write one after the other without copying.

    Attributes:
        parts: the buffers
        size: in total
        crc: their checksum; large parts are summed once, even if written several times
    """

    __slots__ = ("crc", "parts", "size")

    def __init__(self, parts: Iterable[Bytes], sums: Sums) -> None:
        """Store buffers in order, with the checksums of those written before."""
        self.parts = tuple(parts)
        self.size = sum(map(len, self.parts))
        self.crc = 0
        for part in self.parts:
            if len(part) < _SUMMED_APART:
                self.crc = zlib.crc32(part, self.crc)
            else:
                self.crc = joined(self.crc, sums.of(part), len(part))


class Sums:
    """Checksums cached by object: the same weights are in a record several times."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Bytes, int]] = {}

    def of(self, data: Bytes) -> int:
        """Return the checksum of bytes."""
        if id(data) not in self._known:
            self._known[id(data)] = data, zlib.crc32(data)
        return self._known[id(data)][1]


@dataclass(frozen=True, slots=True)
class Content:
    """A member to write.

    Attributes:
        name: path inside the archive
        data: its bytes
        stamp: DOS date and time
    """

    name: str
    data: Bytes | Pieces
    stamp: int = EPOCH


def write_archive(contents: Iterable[Content]) -> bytes:
    """Return a zip archive of stored members."""
    return b"".join(archive_chunks(contents))


def archive_chunks(contents: Iterable[Content], sums: Sums | None = None) -> Iterator[Bytes]:
    """Return the same archive piece by piece; the bytes of members are not copied.

    Args:
        contents: the members in their order
        sums: the checksums that are known, of an archive around this one for example
    """
    directory: list[bytes] = []
    at = 0
    sums = Sums() if sums is None else sums
    for content in contents:
        data = content.data
        whole = data if isinstance(data, Pieces) else Pieces((data,), sums)
        local, central = _headers(content, whole, at)
        directory.append(central)
        yield local
        yield from whole.parts
        at += len(local) + whole.size
    yield from directory
    yield _end(len(directory), sum(map(len, directory)), at)


def _headers(content: Content, whole: Pieces, at: int) -> tuple[bytes, bytes]:
    name = content.name.encode()
    flags = 0 if content.name.isascii() else _UTF8
    size, crc = whole.size, whole.crc
    date, time = content.stamp >> 16, content.stamp & 0xFFFF
    wide = size >= _LIMIT
    version = 45 if wide or at >= _LIMIT else 20
    shown = _LIMIT if wide else size
    sizes = struct.pack("<QQ", size, size) if wide else b""
    local_extra = _extra(sizes)
    local = LOCAL.pack(
        LOCAL_MAGIC, version, flags, 0, time, date, crc, shown, shown, len(name), len(local_extra)
    )
    extra = _extra(sizes + (struct.pack("<Q", at) if at >= _LIMIT else b""))
    place = min(at, _LIMIT)
    builder = version | _UNIX
    head = (CENTRAL_MAGIC, builder, version, flags, 0, time, date, crc, shown, shown)
    central = CENTRAL.pack(*head, len(name), len(extra), 0, 0, 0, _FILE_MODE, place)
    return local + name + local_extra, central + name + extra


def _extra(body: bytes) -> bytes:
    return struct.pack("<HH", 1, len(body)) + body if body else b""


def _end(count: int, size: int, offset: int) -> bytes:
    wide = b""
    if count > 0xFFFE or size >= _LIMIT or offset >= _LIMIT:
        record = END64.pack(END64_MAGIC, 44, 45, 45, 0, 0, count, count, size, offset)
        wide = record + LOCATOR64.pack(LOCATOR64_MAGIC, 0, offset + size, 1)
    short = min(count, 0xFFFF)
    return wide + END.pack(END_MAGIC, 0, 0, short, short, min(size, _LIMIT), min(offset, _LIMIT), 0)
