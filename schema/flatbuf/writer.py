"""Writes dataclasses as flatbuffers by the same field tables that read them."""

from __future__ import annotations

import struct
from typing import Any, TypeVar, cast

import flatbuffers  # pyright: ignore[reportMissingTypeStubs] - it ships none
from flatbuffers import number_types  # pyright: ignore[reportMissingTypeStubs]

from schema.flatbuf.spec import Blob, Scalar, Spec, String, Union, UnknownMember, Vec

T = TypeVar("T")
_POINTER = 4  # bytes of an offset
_FLAGS: dict[str, Any] = {
    "?": number_types.BoolFlags,
    "b": number_types.Int8Flags,
    "B": number_types.Uint8Flags,
    "h": number_types.Int16Flags,
    "H": number_types.Uint16Flags,
    "i": number_types.Int32Flags,
    "I": number_types.Uint32Flags,
    "q": number_types.Int64Flags,
    "Q": number_types.Uint64Flags,
    "f": number_types.Float32Flags,
    "d": number_types.Float64Flags,
}


class Writer:
    """Builds one flatbuffer; equal strings and vectors of scalars are written once."""

    def __init__(self) -> None:
        self._builder: Any = flatbuffers.Builder(1024)
        self._vtables: dict[int, dict[Any, int]] = {}  # by size of the table
        self._shared: dict[Any, int] = {}

    def finish(self, table: Spec[T], value: T, identifier: bytes, *, prefixed: bool) -> bytes:
        """Write the root table and return the finished bytes."""
        root = self.table(table, value)
        if prefixed:
            self._builder.FinishSizePrefixed(root, identifier)
        else:
            self._builder.Finish(root, identifier)
        return bytes(self._builder.Output())

    def table(self, table: Spec[T], value: T) -> int:
        """Write one table, children first; returns its builder offset."""
        plain: list[tuple[int, Scalar, Any, Any]] = []
        offsets: list[tuple[int, int]] = []
        for field in table.fields:
            item = getattr(value, field.name)
            if item is None:
                continue
            if isinstance(field.type, Scalar):
                default = None if field.always else field.default
                plain.append((field.slot, field.type, item, default))
            elif isinstance(field.type, Union):
                tag, child = self._union(field.type, item)
                plain.append((field.slot, Scalar("u8", "B", 1), tag, 0))
                offsets.append((field.slot + 1, child))
            else:
                offsets.append((field.slot, self._child(field.type, item)))
        return self._object(table.slots, plain, offsets)

    def _object(
        self, slots: int, plain: list[tuple[int, Scalar, Any, Any]], offsets: list[tuple[int, int]]
    ) -> int:
        builder = self._builder
        builder.StartObject(slots)
        for slot, kind, item, default in sorted(plain, key=lambda row: -row[1].nbytes):
            if default is None or _pack(kind, (item,)) != _pack(kind, (default,)):
                builder.Prepend(_FLAGS[kind.code], item)
                builder.Slot(slot)
        for slot, child in offsets:
            builder.PrependUOffsetTRelativeSlot(slot, child, 0)
        # Before 25.12 the builder shares vtables of equal offsets whatever the size of the table.
        builder.Prep(_POINTER, 0)
        nbytes = builder.Offset() + _POINTER - builder.objectEnd
        builder.vtables = self._vtables.setdefault(nbytes, {})
        return cast(int, builder.EndObject())

    def _union(self, kind: Union, item: Any) -> tuple[int, int]:  # noqa: ANN401
        if isinstance(item, UnknownMember):
            return item.tag, self._object(0, [], [])
        tag = kind.tag_of(item)
        member = kind.members[tag]
        if member is None:
            raise TypeError(f"{type(item).__name__} is not a member of {kind.name}")
        return tag, self.table(member, item)

    def _child(self, kind: Any, item: Any) -> int:  # noqa: ANN401
        if isinstance(kind, Spec):
            return self.table(cast("Spec[Any]", kind), item)
        if isinstance(kind, String):
            return cast(int, self._builder.CreateSharedString(item))
        if isinstance(kind, Blob):
            return self._raw(bytes(item), 1, kind.align)
        return self._vector(cast(Vec, kind), item)

    def _raw(self, data: bytes, item_bytes: int, align: int) -> int:
        builder = self._builder
        builder.StartVector(item_bytes, len(data) // item_bytes, align)
        builder.head = builder.head - len(data)
        builder.Bytes[builder.head : builder.head + len(data)] = data
        return cast(int, builder.EndVector())

    def _vector(self, kind: Vec, items: tuple[Any, ...]) -> int:
        builder, element = self._builder, kind.element
        if isinstance(element, Scalar):
            data = _pack(element, items)
            key = (element.code, data)
            if key not in self._shared:
                self._shared[key] = self._raw(data, element.nbytes, element.nbytes)
            return self._shared[key]
        children = [self._child(element, item) for item in items]
        builder.StartVector(4, len(children), 4)
        for child in reversed(children):
            builder.PrependUOffsetTRelative(child)
        return cast(int, builder.EndVector())


def _pack(kind: Scalar, items: tuple[Any, ...]) -> bytes:
    # Bytes, not values, decide equality: -0.0 and NaN survive.
    return struct.pack(f"<{len(items)}{kind.code}", *items)


def write_root(
    table: Spec[T], value: T, identifier: bytes = b"", *, prefixed: bool = False
) -> bytes:
    """Return the flatbuffer of a root table.

    Args:
        table: the root table's fields
        value: the dataclass to write
        identifier: four bytes after the root offset, empty if none
        prefixed: write the size first, as flatcc does for ETDump
    """
    return Writer().finish(table, value, identifier or None, prefixed=prefixed)  # pyright: ignore[reportArgumentType]
