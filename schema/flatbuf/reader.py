"""A flatbuffer reader that checks every access and whose work is bounded by the file size.

The flatbuffers runtime for Python verifies nothing; a hostile offset there reads arbitrary memory
or
loops. Here offsets only point forward, nesting is bounded, and everything decoded is charged
against the size of the buffer: a table for each reference to it; strings and vectors of
scalars, which writers share, only once.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from schema.errors import FormatError, Issue, Severity
from schema.flatbuf.spec import Blob, Field, Scalar, Spec, String, Union, UnknownMember, Vec

T = TypeVar("T")
_U32 = struct.Struct("<I")
_I32 = struct.Struct("<i")
_HH = struct.Struct("<HH")
_MAX_DEPTH = 64  # as deep as the verifier of flatbuffers allows
_POINTER = 4
_MOST_SLOTS = 256  # read from one vtable; the widest table known has 32
_MOST_SHAPES = 4096  # remembered; files have a few dozen
_TABLE_COST = 8  # bytes charged for an object in memory; the smallest legal tables average 10
_SHAPE_COST = 64
_SPARE = 1 << 15  # a small file may have a shape for each of the 150 members of a union
_SCALARS = {code: struct.Struct(f"<{code}") for code in "bBhHiIqQfd"}


@dataclass(frozen=True, slots=True)
class _Shape:
    """Layout of the tables of one spec with a given vtable.

    Attributes:
        nbytes: of the table, up to the end of its last field
        absent: values of absent fields
        present: name, type and offset of stored fields; for a union also the offset of the tag
    """

    nbytes: int
    absent: dict[str, Any]
    present: tuple[tuple[str, Any, int, int], ...]


class Reader:
    """Decodes tables of one flatbuffer.

    Attributes:
        buffer: the bytes, from position 0 of the file so that offsets are file offsets
        limit: end of the flatbuffer region
        issues: inconsistencies found so far
    """

    def __init__(self, buffer: memoryview, limit: int | None = None, *, where: str = "") -> None:
        self.buffer = buffer
        self.limit = len(buffer) if limit is None else min(limit, len(buffer))
        self.issues: list[Issue] = []
        self._where = where
        self._shapes: dict[tuple[int, int], _Shape] = {}
        self._texts: dict[int, str] = {}
        self._numbers: dict[tuple[str, int], tuple[Any, ...]] = {}
        self._noted: set[str] = set()
        # Legal files never overlap: twice the region leaves room for the memory of tables.
        self._budget = 2 * self.limit + _SPARE
        self._depth = 0

    def u32(self, at: int, field: str = "") -> int:
        """Return the unsigned integer at a position."""
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
            raise FormatError("a different offset", "an offset of 0", offset=at)
        self.check(target, _POINTER)
        return target

    def slots(self, at: int) -> tuple[tuple[int, ...], int]:
        """Return the vtable entries of the table at a position, and the table's inline size.

        Entries beyond the 256th are ignored.
        """
        vtable = self._vtable(at)
        self.check(vtable, _POINTER)
        vtable_bytes, table_bytes = cast("tuple[int, int]", _HH.unpack_from(self.buffer, vtable))
        if vtable_bytes < _POINTER or vtable_bytes % 2:
            raise FormatError("an even vtable size of 4 or more", str(vtable_bytes), offset=vtable)
        self.check(vtable, vtable_bytes)
        self.check(at, table_bytes)
        count = min((vtable_bytes - _POINTER) // 2, _MOST_SLOTS)
        return struct.unpack_from(f"<{count}H", self.buffer, vtable + _POINTER), table_bytes

    def _vtable(self, at: int) -> int:
        self.check(at, _POINTER)
        return at - cast(int, _I32.unpack_from(self.buffer, at)[0])

    def table(self, table: Spec[T], at: int) -> T:
        """Return the table at a position as its dataclass."""
        shape = self._shape(table, at)
        self.check(at, shape.nbytes)
        self.spend(shape.nbytes + _TABLE_COST, at)
        if self._depth >= _MAX_DEPTH:
            raise FormatError(
                f"tables nested at most {_MAX_DEPTH} deep", "deeper nesting", offset=at
            )
        self._depth += 1
        try:
            return table.make(**self._fields(shape, at))
        finally:
            self._depth -= 1

    def _fields(self, shape: _Shape, at: int) -> dict[str, Any]:
        if not shape.present:
            return shape.absent
        values = dict(shape.absent)
        for name, kind, offset, tag_offset in shape.present:
            try:
                if isinstance(kind, Union):
                    values[name] = self._union(kind, at, tag_offset, offset)
                else:
                    values[name] = self.value(kind, at + offset)
            except FormatError as error:
                raise error.inside(name) from None
        return values

    def _shape(self, table: Spec[Any], at: int) -> _Shape:
        key = (id(table), self._vtable(at))
        shape = self._shapes.get(key)
        if shape is None:
            self.spend(_SHAPE_COST, at)
            shape = self._new_shape(table, at)
            if len(self._shapes) < _MOST_SHAPES:
                self._shapes[key] = shape
        return shape

    def _new_shape(self, table: Spec[Any], at: int) -> _Shape:
        entries, inline = self.slots(at)
        if any(entries[table.slots :]):
            extra = len(entries) - table.slots
            self.note(f"{table.name} has {extra} field(s) of a newer schema, which are not shown")
        absent: dict[str, Any] = {}
        present: list[tuple[str, Any, int, int]] = []
        end = inline
        for field in table.fields:
            first, second = (*entries[field.slot : field.slot + 2], 0, 0)[:2]
            if not first:
                absent[field.name] = field.default
                continue
            try:
                end = max(end, *self._ends(field, first, second, at))
            except FormatError as error:
                raise error.inside(field.name) from None
            if isinstance(field.type, Union):
                present.append((field.name, field.type, second, first))
            else:
                present.append((field.name, field.type, first, 0))
        if end > inline:
            self.note(
                f"{table.name} has tables whose fields end after the {inline} bytes of their"
                " vtable: Python's flatbuffers before 25.12 shares vtables of other sizes, which"
                " readers do not need"
            )
        return _Shape(end, absent, tuple(present))

    def _ends(self, field: Field, first: int, second: int, at: int) -> tuple[int, int]:
        """Return where the parts of a field end, from the start of its table."""
        if isinstance(field.type, Union):
            return self._end(first, 1, at), self._end(second, _POINTER, at) if second else 0
        size = field.type.nbytes if isinstance(field.type, Scalar) else _POINTER
        return self._end(first, size, at), 0

    def _end(self, offset: int, size: int, at: int) -> int:
        # The size in the vtable is not a bound: writers share vtables of equal offsets, and C++
        # verifies a field against the buffer alone.
        if offset < _POINTER or at + offset + size > self.limit:
            raise FormatError(
                f"a field in a region of {self.limit} bytes, after the start of its table",
                f"{size} bytes at offset {offset} of the table",
                offset=at,
            )
        return offset + size

    def _union(self, kind: Union, at: int, tag_offset: int, offset: int) -> Any:  # noqa: ANN401
        tag = self.buffer[at + tag_offset]
        if tag == 0:
            return None
        member = kind.members[tag] if tag < len(kind.members) else None
        if member is None:
            self.note(f"{kind.name} has a member {tag} of a newer schema", Severity.WARNING)
            return UnknownMember(tag)
        if not offset:
            raise FormatError(f"a {kind.name} value for tag {tag}", "none", offset=at)
        return self.table(member, self.follow(at + offset))

    def value(self, kind: Any, at: int) -> Any:  # noqa: ANN401
        """Return the field value of a type stored at a position."""
        if isinstance(kind, Scalar):
            self.check(at, kind.nbytes)
            if kind.code == "?":  # any non-zero byte is true, as in C++
                return self.buffer[at] != 0
            return _SCALARS[kind.code].unpack_from(self.buffer, at)[0]
        target = self.follow(at)
        if isinstance(kind, Spec):
            return self.table(cast("Spec[Any]", kind), target)
        if isinstance(kind, String):
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
        known = self._texts.get(at)
        if known is not None:
            return known
        start, count = self.extent(at, 1)
        raw = bytes(self.buffer[start : start + count])
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            text = raw.decode("utf-8", "backslashreplace")
            self.note(f"string at byte {at:#x} is not UTF-8 and is shown escaped", Severity.WARNING)
        self._texts[at] = text
        return text

    def _vector(self, kind: Vec, at: int) -> tuple[Any, ...]:
        if isinstance(kind.element, Scalar):
            return self._scalar_vector(kind.element, at)
        start, count = self.extent(at, _POINTER)
        element = kind.element
        built: list[Any] = []
        for index in range(count):
            try:
                target = self.follow(start + _POINTER * index)
                if isinstance(element, String):
                    built.append(self._text(target))
                else:
                    built.append(self.table(element, target))
            except FormatError as error:
                raise error.inside(f"[{index}]") from None
        return tuple(built)

    def _scalar_vector(self, element: Scalar, at: int) -> tuple[Any, ...]:
        key = (element.code, at)
        known = self._numbers.get(key)
        if known is not None:
            return known
        start, count = self.extent(at, element.nbytes)
        code = "B" if element.code == "?" else element.code
        items: tuple[Any, ...] = struct.unpack_from(f"<{count}{code}", self.buffer, start)
        built = tuple(map(bool, items)) if element.code == "?" else items
        self._numbers[key] = built
        return built
