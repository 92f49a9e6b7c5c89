"""Walks a flatbuffer by its field tables: every table, vtable, vector and string with its position.

The structure view expands Places one level at a time; all runs of bytes are in `extents`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from schema.errors import FormatError
from schema.flatbuf.reader import Reader
from schema.flatbuf.spec import Blob, Field, Scalar, Spec, String, Union, Vec

_POINTER = 4
_PREVIEW = 120


@dataclass(frozen=True, slots=True)
class FieldPlace:
    """A field, element or table with its position in the file.

    Attributes:
        name: field name, or ``[index]`` for an element
        type: as written in .fbs files
        offset: first byte of the datum itself (the table, vector or scalar)
        nbytes: bytes of the datum without referenced ones
        text: printable value, empty for tables
        kind: number, text, blob, vector, table or absent
        target: the type to expand with, None for leaves
    """

    name: str
    type: str
    offset: int
    nbytes: int
    text: str
    kind: str
    target: Any = None

    @property
    def expandable(self) -> bool:
        """Return whether `children` returns anything."""
        return self.target is not None


def root_place(reader: Reader, table: Spec[Any], base: int = 0) -> FieldPlace:
    """Return the root table's place; ``base`` is where its offset is stored."""
    return _table_place(reader, table.name, table, reader.follow(base))


def children(reader: Reader, place: FieldPlace) -> list[FieldPlace]:
    """Return the fields of a table or the elements of a vector.

    Raises: FormatError where the bytes cannot be followed
    """
    target: object = place.target
    if isinstance(target, Spec):
        return _fields(reader, cast("Spec[Any]", target), place.offset)
    if isinstance(target, Vec):
        return list(_elements(reader, target, place.offset, range(reader.u32(place.offset))))
    return []


def element_count(reader: Reader, place: FieldPlace) -> int:
    """Return the number of elements of a vector, 0 for any other place."""
    return reader.u32(place.offset) if isinstance(place.target, Vec) else 0


def elements(reader: Reader, place: FieldPlace, start: int, stop: int) -> list[FieldPlace]:
    """Return some elements of a vector, so that a long one is read a page at a time.

    Raises: FormatError where the bytes cannot be followed
    """
    target: object = place.target
    if not isinstance(target, Vec):
        return []
    stop = min(stop, reader.u32(place.offset))
    return list(_elements(reader, target, place.offset, range(max(start, 0), stop)))


def _table_place(reader: Reader, name: str, table: Spec[Any], at: int) -> FieldPlace:
    entries, inline = reader.slots(at)
    nbytes = max(inline, *(_end(field, entries) for field in table.fields), _POINTER)
    return FieldPlace(name, table.name, at, min(nbytes, reader.limit - at), "", "table", table)


def _end(field: Field, entries: tuple[int, ...]) -> int:
    """Return where a field ends; tables may share the vtable of a smaller or larger one."""
    first, second = (*entries[field.slot : field.slot + 2], 0, 0)[:2]
    if isinstance(field.type, Union):
        return second + _POINTER if second else first
    size = field.type.nbytes if isinstance(field.type, Scalar) else _POINTER
    return first + size if first else 0


def _fields(reader: Reader, table: Spec[Any], at: int) -> list[FieldPlace]:
    entries, _ = reader.slots(at)
    return [_field(reader, field, entries, at) for field in table.fields]


def _field(reader: Reader, field: Field, entries: tuple[int, ...], at: int) -> FieldPlace:
    slot = field.slot
    offset = entries[slot] if slot < len(entries) else 0
    kind = field.type
    if isinstance(kind, Union):
        return _union(reader, field.name, kind, entries, slot, at)
    if not offset:
        return FieldPlace(field.name, kind.name, at, 0, f"{field.default!r} (absent)", "absent")
    if offset < _POINTER:
        raise FormatError("a field after the start of its table", f"offset {offset}", offset=at)
    return _datum(reader, field.name, kind, at + offset)


def _union(
    reader: Reader, name: str, kind: Union, entries: tuple[int, ...], slot: int, at: int
) -> FieldPlace:
    tag_at = entries[slot] if slot < len(entries) else 0
    value_at = entries[slot + 1] if slot + 1 < len(entries) else 0
    if not tag_at or not value_at:
        return FieldPlace(name, kind.name, at, 0, "NONE", "absent")
    reader.check(at + tag_at, 1)
    tag = reader.buffer[at + tag_at]
    member = kind.members[tag] if tag < len(kind.members) else None
    if member is None:
        return FieldPlace(name, kind.name, at + tag_at, 1, f"member {tag} (unknown)", "number")
    return _table_place(reader, name, member, reader.follow(at + value_at))


def _datum(reader: Reader, name: str, kind: Any, at: int) -> FieldPlace:  # noqa: ANN401 - field type
    if isinstance(kind, Scalar):
        return FieldPlace(name, kind.name, at, kind.nbytes, repr(reader.value(kind, at)), "number")
    target = reader.follow(at)
    if isinstance(kind, Spec):
        return _table_place(reader, name, cast("Spec[Any]", kind), target)
    count = reader.u32(target)
    width = kind.element.nbytes if _is_scalar_vector(kind) else 1
    width = _POINTER if isinstance(kind, Vec) and not _is_scalar_vector(kind) else width
    reader.check(target + _POINTER, count * width)
    nbytes = _POINTER + count * width
    if isinstance(kind, String):
        raw = bytes(reader.buffer[target + _POINTER : target + _POINTER + min(count, _PREVIEW)])
        text = repr(raw.decode("utf-8", "backslashreplace"))
        return FieldPlace(name, kind.name, target, nbytes + 1, text, "text")
    if isinstance(kind, Blob):
        return FieldPlace(name, kind.name, target, nbytes, f"{count} bytes", "blob")
    vector = cast(Vec, kind)
    return FieldPlace(
        name, vector.name, target, nbytes, _preview(reader, vector, target, count), "vector", vector
    )


def _is_scalar_vector(kind: Any) -> bool:  # noqa: ANN401 - field type
    return isinstance(kind, Vec) and isinstance(kind.element, Scalar)


def _preview(reader: Reader, kind: Vec, at: int, count: int) -> str:
    if not isinstance(kind.element, Scalar):
        return f"{count} entries"
    width = kind.element.nbytes
    shown = [
        str(reader.value(kind.element, at + _POINTER + width * i)) for i in range(min(count, 12))
    ]
    return f"[{', '.join(shown)}{', …' if count > len(shown) else ''}]"


def _elements(reader: Reader, kind: Vec, at: int, requested: range) -> Iterator[FieldPlace]:
    element = kind.element
    width = element.nbytes if isinstance(element, Scalar) else _POINTER
    for index in requested:
        yield _datum(reader, f"[{index}]", element, at + _POINTER + width * index)
