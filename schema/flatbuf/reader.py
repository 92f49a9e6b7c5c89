"""A flatbuffer reader that checks every access and never does more work than the file is long.

The flatbuffers runtime for Python verifies nothing; a hostile offset there reads anywhere or
loops. Here each table is decoded once however often it is referenced, offsets only point
forward, and the sum of everything decoded is bounded by the size of the buffer.
"""

from __future__ import annotations

import struct
from typing import Any, TypeVar, cast

from schema.errors import FormatError, Issue, Severity
from schema.flatbuf.spec import Blob, Field, Scalar, Spec, Text, Union, UnknownMember, Vec

T = TypeVar("T")
_U32 = struct.Struct("<I")
_I32 = struct.Struct("<i")
_HH = struct.Struct("<HH")
_MAX_DEPTH = 64
_POINTER = 4


class Reader:
    """Decodes tables of one flatbuffer.

    Attributes:
        buffer: the bytes, from position 0 of the file so that offsets are file offsets
        limit: end of the flatbuffer region
        issues: odd but readable things met on the way
    """

    def __init__(self, buffer: memoryview, limit: int | None = None, *, where: str = "") -> None:
        self.buffer = buffer
        self.limit = len(buffer) if limit is None else min(limit, len(buffer))
        self.issues: list[Issue] = []
        self._where = where
        self._seen: dict[tuple[int, int], Any] = {}
        self._noted: set[str] = set()
        # Legal files never overlap: twice the region leaves room for shared vtables and text.
        self._budget = 2 * self.limit + 4096
        self._depth = 0

    def u32(self, at: int, field: str = "") -> int:
        """Return the unsigned number at a position."""
        self.check(at, _POINTER, field)
        return cast(int, _U32.unpack_from(self.buffer, at)[0])

    def check(self, at: int, nbytes: int, field: str = "") -> None:
        """Raise FormatError unless [at, at + nbytes) lies in the flatbuffer region."""
        if at < 0 or at + nbytes > self.limit:
            raise FormatError(
                f"{nbytes} bytes inside a region of {self.limit} bytes",
                f"a range ending at byte {at + nbytes}",
                field=field,
                offset=max(at, 0),
            )

    def spend(self, nbytes: int, at: int) -> None:
        """Charge decoded bytes against the budget of the file."""
        self._budget -= nbytes
        if self._budget < 0:
            raise FormatError(
                "tables and vectors that together fit the file",
                f"overlapping ones that add up to more than twice its {self.limit} bytes",
                offset=at,
            )

    def note(self, message: str, severity: Severity = Severity.INFO) -> None:
        """Record an issue once."""
        if message not in self._noted:
            self._noted.add(message)
            self.issues.append(Issue(severity, self._where, message))

    def root(self, table: Spec[T], base: int = 0) -> T:
        """Return the root table whose offset is stored at ``base``."""
        try:
            return self.table(table, self.follow(base))
        except FormatError as error:
            raise error.inside(table.name) from None

    def follow(self, at: int) -> int:
        """Return the position that the offset stored at a position points to."""
        target = at + self.u32(at)
        if target == at:
            raise FormatError("an offset to another place", "an offset of 0", offset=at)
        self.check(target, _POINTER)
        return target

    def slots(self, at: int) -> tuple[tuple[int, ...], int]:
        """Return the vtable entries of the table at a position, and the table's inline size."""
        self.check(at, _POINTER)
        vtable = at - cast(int, _I32.unpack_from(self.buffer, at)[0])
        self.check(vtable, _POINTER)
        vtable_bytes, table_bytes = cast("tuple[int, int]", _HH.unpack_from(self.buffer, vtable))
        if vtable_bytes < _POINTER or vtable_bytes % 2:
            raise FormatError("an even vtable size of 4 or more", str(vtable_bytes), offset=vtable)
        self.check(vtable, vtable_bytes)
        self.check(at, table_bytes)
        count = (vtable_bytes - _POINTER) // 2
        entries = struct.unpack_from(f"<{count}H", self.buffer, vtable + _POINTER)
        return entries, table_bytes

    def table(self, table: Spec[T], at: int) -> T:
        """Return the table at a position as its dataclass."""
        key = (id(table), at)
        if key in self._seen:
            return cast(T, self._seen[key])
        if self._depth >= _MAX_DEPTH:
            raise FormatError(
                f"tables nested at most {_MAX_DEPTH} deep", "deeper nesting", offset=at
            )
        self._depth += 1
        try:
            made = table.make(**self._fields(table, at))
        finally:
            self._depth -= 1
        self._seen[key] = made
        return made

    def _fields(self, table: Spec[Any], at: int) -> dict[str, Any]:
        entries, inline = self.slots(at)
        self.spend(inline, at)
        self._note_newer(table, entries)
        values: dict[str, Any] = {}
        for field in table.fields:
            try:
                values[field.name] = self._field(field, entries, at, inline)
            except FormatError as error:
                raise error.inside(field.name) from None
        return values

    def _note_newer(self, table: Spec[Any], entries: tuple[int, ...]) -> None:
        if len(entries) > table.slots and any(entries[table.slots :]):
            extra = len(entries) - table.slots
            self.note(f"{table.name} has {extra} field(s) of a newer schema, which are not shown")

    def _field(self, field: Field, entries: tuple[int, ...], at: int, inline: int) -> Any:  # noqa: ANN401
        slot = field.slot
        if isinstance(field.type, Union):
            return self._union(field.type, entries, slot, at, inline)
        offset = entries[slot] if slot < len(entries) else 0
        if not offset:
            return field.default
        size = field.type.nbytes if isinstance(field.type, Scalar) else _POINTER
        self._inside_table(offset, size, at, inline)
        return self.value(field.type, at + offset)

    def _inside_table(self, offset: int, size: int, at: int, inline: int) -> None:
        if offset < _POINTER or offset + size > inline:
            raise FormatError(
                f"a field inside a table of {inline} bytes",
                f"{size} bytes at offset {offset}",
                offset=at,
            )

    def _union(self, kind: Union, entries: tuple[int, ...], slot: int, at: int, inline: int) -> Any:  # noqa: ANN401
        tag_at = entries[slot] if slot < len(entries) else 0
        value_at = entries[slot + 1] if slot + 1 < len(entries) else 0
        if not tag_at:
            return None
        self._inside_table(tag_at, 1, at, inline)
        tag = self.buffer[at + tag_at]
        if tag == 0:
            return None
        if tag >= len(kind.members) or kind.members[tag] is None:
            self.note(f"{kind.name} has a member {tag} of a newer schema", Severity.WARNING)
            return UnknownMember(tag)
        if not value_at:
            raise FormatError(f"a {kind.name} value for tag {tag}", "none", offset=at)
        self._inside_table(value_at, _POINTER, at, inline)
        return self.value(kind.members[tag], at + value_at)

    def value(self, kind: Any, at: int) -> Any:  # noqa: ANN401
        """Return the field value of a type stored at a position."""
        if isinstance(kind, Scalar):
            self.check(at, kind.nbytes)
            if kind.code == "?":  # any non-zero byte is true, as in C++
                return self.buffer[at] != 0
            return struct.unpack_from("<" + kind.code, self.buffer, at)[0]
        target = self.follow(at)
        if isinstance(kind, Spec):
            return self.table(cast("Spec[Any]", kind), target)
        if isinstance(kind, Text):
            return self._text(target)
        if isinstance(kind, Blob):
            start, count = self.extent(target, 1)
            return self.buffer[start : start + count]
        return self._vector(cast(Vec, kind), target)

    def extent(self, at: int, nbytes: int) -> tuple[int, int]:
        """Return first position and count of the vector at a position; charges the budget."""
        count = self.u32(at)
        self.check(at + _POINTER, count * nbytes)
        self.spend(_POINTER + count * nbytes, at)
        return at + _POINTER, count

    def _text(self, at: int) -> str:
        key = (0, at)
        if key in self._seen:
            return cast(str, self._seen[key])
        start, count = self.extent(at, 1)
        raw = bytes(self.buffer[start : start + count])
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            text = raw.decode("utf-8", "backslashreplace")
            self.note(f"text at byte {at:#x} is not UTF-8 and is shown escaped", Severity.WARNING)
        self._seen[key] = text
        return text

    def _vector(self, kind: Vec, at: int) -> tuple[Any, ...]:
        key = (id(kind.element), -at)  # a table never has a negative position
        if key in self._seen:
            return cast("tuple[Any, ...]", self._seen[key])
        element = kind.element
        if isinstance(element, Scalar):
            start, count = self.extent(at, element.nbytes)
            code = "B" if element.code == "?" else element.code
            items: tuple[Any, ...] = struct.unpack_from(f"<{count}{code}", self.buffer, start)
            made = tuple(map(bool, items)) if element.code == "?" else items
        else:
            start, count = self.extent(at, _POINTER)
            made = tuple(self._element(element, start, index) for index in range(count))
        self._seen[key] = made
        return made

    def _element(self, element: Any, start: int, index: int) -> Any:  # noqa: ANN401
        try:
            return self.value(element, start + _POINTER * index)
        except FormatError as error:
            raise error.inside(f"[{index}]") from None
