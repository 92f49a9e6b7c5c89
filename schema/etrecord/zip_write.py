"""Writes zip archives of stored members, zip64 where sizes ask for it.

Members are stored, as the stock tool does it: weights do not deflate, and a stored member can
be read as a view of the file.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from schema.etrecord.zip_index import (
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
_UTF8 = 0x800
_UNIX = 3 << 8
_FILE_MODE = 0o100600 << 16
_LIMIT = 0xFFFF_FFFF


@dataclass(frozen=True, slots=True)
class Content:
    """A member to write.

    Attributes:
        name: path inside the archive
        data: its bytes
        stamp: DOS date and time
    """

    name: str
    data: bytes | memoryview
    stamp: int = EPOCH


def write_archive(contents: Iterable[Content]) -> bytes:
    """Return a zip archive of stored members."""
    return b"".join(archive_chunks(contents))


def archive_chunks(contents: Iterable[Content]) -> Iterator[bytes | memoryview]:
    """Return the same archive piece by piece; the bytes of members are not copied."""
    directory: list[bytes] = []
    at = 0
    # A record has the same weights twice, as the same object: their sum takes a second a gigabyte.
    sums: dict[int, tuple[bytes | memoryview, int]] = {}
    for content in contents:
        if id(content.data) not in sums:
            sums[id(content.data)] = content.data, zlib.crc32(content.data)
        local, central = _headers(content, at, sums[id(content.data)][1])
        directory.append(central)
        yield local
        yield content.data
        at += len(local) + len(content.data)
    yield from directory
    yield _end(len(directory), sum(map(len, directory)), at)


def _headers(content: Content, at: int, crc: int) -> tuple[bytes, bytes]:
    name = content.name.encode()
    flags = 0 if content.name.isascii() else _UTF8
    size = len(content.data)
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
    maker = version | _UNIX
    head = (CENTRAL_MAGIC, maker, version, flags, 0, time, date, crc, shown, shown)
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
