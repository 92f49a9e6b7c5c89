"""Payloads as other releases could have written them: fields absent, members and types unknown.

Every variant is made of a real payload by one change that a flatbuffer of another schema or
model could have: the tables stay well-formed, so each has to be read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import pytest

from schema.errors import FormatError
from schema.flatbuf.reader import Reader
from schema.flatbuf.spec import Blob, Scalar, Spec, String, Union, Vec
from schema.payloads.reading import PayloadReader
from tests.schema.payload_files import Blob as Item

_MOST_TABLES = 3_000
_NEWER = 199  # a union member and an enumeration value that no release has


@dataclass(frozen=True)
class Variant:
    """A changed payload.

    Attributes:
        what: absent, newer, empty, renamed or resized
        place: name of the table and field
        data: the bytes
    """

    what: str
    place: str
    data: bytes

    def __str__(self) -> str:
        return f"{self.what} {self.place}"


def variants(item: Item) -> Iterator[Variant]:
    """Yield each change of each kind of field once, at its first place in the payload."""
    seen: set[tuple[str, str]] = set()
    for reader, spec, at in _roots(item):
        for made in _tables(reader, spec, at, item.data):
            if (made.what, made.place) not in seen:
                seen.add((made.what, made.place))
                yield made


def _roots(item: Item) -> list[tuple[Reader, Spec[Any], int]]:
    """Return what the decoder of a payload reads as flatbuffers, by watching it."""
    found: list[tuple[Reader, Spec[Any], int]] = []
    real = PayloadReader.root

    def watched(self: PayloadReader, table: Spec[Any], base: int = 0) -> Any:
        if len(self.buffer) == len(item.data):
            found.append((Reader(self.buffer, self.limit), table, self.follow(base)))
        return real(self, table, base)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PayloadReader, "root", watched)
        item.decode()
    return found


def _tables(reader: Reader, root: Spec[Any], start: int, data: bytes) -> Iterator[Variant]:
    waiting: list[tuple[Spec[Any], int]] = [(root, start)]
    for number in range(_MOST_TABLES):
        if number >= len(waiting):
            return
        spec, at = waiting[number]
        entries, _ = reader.slots(at)
        layout = at - struct.unpack_from("<i", data, at)[0]
        for field in spec.fields:
            offset = entries[field.slot] if field.slot < len(entries) else 0
            if not offset:
                continue
            place = f"{spec.name}.{field.name}"
            yield _written(data, "absent", place, layout + 4 + 2 * field.slot, b"\0\0")
            if isinstance(field.type, Union):
                yield _written(data, "newer", place, at + offset, bytes((_NEWER,)))
                waiting += _member(reader, field.type, entries, field.slot, at)
            else:
                yield from _of_field(reader, field.type, place, at + offset, data)
                waiting += _below(reader, field.type, at + offset)


def _of_field(reader: Reader, kind: Any, place: str, at: int, data: bytes) -> Iterator[Variant]:
    if isinstance(kind, Scalar):
        if kind.nbytes == 1 and kind.name != "bool":
            yield _written(data, "newer", place, at, b"\x63")
        return
    if isinstance(kind, (String, Blob, Vec)):
        target = reader.follow(at)
        yield _written(data, "empty", place, target, bytes(4))
    if isinstance(kind, String):
        length = reader.u32(reader.follow(at))
        yield _written(data, "renamed", place, reader.follow(at) + 4, b"z" * length)
    if isinstance(kind, Vec) and isinstance(kind.element, Scalar) and kind.element.nbytes >= 4:
        target = reader.follow(at)
        width = kind.element.nbytes
        if reader.u32(target):
            largest = ((1 << (8 * width - 1)) - 1).to_bytes(width, "little")
            for number in (bytes(width), b"\xff" * width, largest):
                name = f"{place} {int.from_bytes(number, 'little', signed=True)}"
                yield _written(data, "resized", name, target + 4, number)


def _member(
    reader: Reader, kind: Union, entries: tuple[int, ...], slot: int, at: int
) -> list[tuple[Spec[Any], int]]:
    tag = reader.buffer[at + entries[slot]]
    behind = entries[slot + 1] if slot + 1 < len(entries) else 0
    member = kind.members[tag] if tag < len(kind.members) else None
    return [(member, reader.follow(at + behind))] if member is not None and behind else []


def _below(reader: Reader, kind: Any, at: int) -> list[tuple[Spec[Any], int]]:
    if isinstance(kind, Spec):
        return [(cast("Spec[Any]", kind), reader.follow(at))]
    if not isinstance(kind, Vec) or not isinstance(kind.element, Spec):
        return []
    target = reader.follow(at)
    places = range(target + 4, target + 4 + 4 * reader.u32(target), 4)
    found: list[tuple[Spec[Any], int]] = []
    for place in places:
        try:
            found.append((kind.element, reader.follow(place)))
        except FormatError:
            continue  # vectors of tables may hold null entries
    return found


def _written(data: bytes, what: str, place: str, at: int, new: bytes) -> Variant:
    return Variant(what, place, data[:at] + new + data[at + len(new) :])
