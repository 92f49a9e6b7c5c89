"""A bounded reader of the protobuf wire format: fields of a message, nothing else."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from schema.errors import FormatError

_MAX_FIELDS = 1_000_000  # bounds the time for a hostile message
# wire types of protobuf; 3 and 4 are obsolete groups
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_U64, _U32 = struct.Struct("<Q"), struct.Struct("<I")
Value = int | memoryview


class FieldBudget:
    """Counts the fields of one file, so that a message of millions of empty fields is rejected."""

    def __init__(self, fields: int = _MAX_FIELDS) -> None:
        self._left = fields

    def spend(self) -> None:
        """Charge one field.

        Raises: FormatError when there were too many
        """
        self._left -= 1
        if self._left < 0:
            raise FormatError(f"at most {_MAX_FIELDS} protobuf fields", "more")


def fields(message: memoryview, budget: FieldBudget) -> Iterator[tuple[int, Value]]:
    """Yield (field number, value) of a message; nested messages and strings stay bytes.

    Raises: FormatError if the bytes are not a message
    """
    at, end = 0, len(message)
    while at < end:
        budget.spend()
        key, at = varint(message, at)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, at = varint(message, at)
            yield number, value
        elif kind == _BYTES:
            length, at = varint(message, at)
            if length > end - at:
                raise _cut(length, end - at)
            yield number, message[at : at + length]
            at += length
        elif kind in (_FIXED64, _FIXED32):
            width = 8 if kind == _FIXED64 else 4
            if width > end - at:
                raise _cut(width, end - at)
            yield number, (_U64 if width == 8 else _U32).unpack_from(message, at)[0]
            at += width
        else:
            raise FormatError("a protobuf field of wire type 0, 1, 2 or 5", str(kind))


def _cut(requested: int, left: int) -> FormatError:
    return FormatError(f"a protobuf field of {requested} bytes", f"{left} bytes before the end")


def varint(data: memoryview, at: int) -> tuple[int, int]:
    """Return a variable-length integer and the position after it.

    Raises: FormatError if it does not end within ten bytes
    """
    value = shift = 0
    for position in range(at, min(at + 10, len(data))):
        byte = data[position]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position + 1
        shift += 7
    raise FormatError("a variable-length integer of at most ten bytes", "no end of it")


def signed(value: int) -> int:
    """Return a varint as a 64-bit two's complement integer."""
    return value - (1 << 64) if value >= 1 << 63 else value


def text(value: Value) -> str:
    """Return a string field."""
    if isinstance(value, int):
        raise FormatError("a string field", "a number")
    return bytes(value).decode("utf-8", "backslashreplace")


def nested(value: Value) -> memoryview:
    """Return a nested message's bytes."""
    if isinstance(value, int):
        raise FormatError("a nested message", "a number")
    return value


def number(value: Value) -> int:
    """Return a numeric field."""
    if not isinstance(value, int):
        raise FormatError("a number", "bytes")
    return value


def packed(value: Value, code: str) -> list[int | float]:
    """Return repeated scalars, packed or single.

    Args:
        value: the field
        code: ``f`` float, ``d`` double, ``v`` varint
    """
    if isinstance(value, int):
        return [_as(value, code)]
    if code == "v":
        return list(_varints(value))
    width = 4 if code == "f" else 8
    count = len(value) // width
    return list(struct.unpack(f"<{count}{code}", value[: count * width]))


def _as(value: int, code: str) -> int | float:
    if code == "v":
        return signed(value)
    layout, raw = ("<f", _U32) if code == "f" else ("<d", _U64)
    return struct.unpack(layout, raw.pack(value & ((1 << 8 * raw.size) - 1)))[0]


def _varints(data: memoryview) -> Iterator[int]:
    at = 0
    while at < len(data):
        value, at = varint(data, at)
        yield signed(value)
