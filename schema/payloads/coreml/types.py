"""Types and literals of a MIL program.

Source: coremltools mlmodel/format/MIL.proto (field numbers of ValueType, TensorType, Value)
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from schema.errors import FormatError
from schema.graph import Dim, TensorMeta
from schema.payloads.coreml.wire import (
    FieldBudget,
    Value,
    fields,
    nested,
    number,
    packed,
    signed,
    text,
)

_MAX_DEPTH = 32
_SHOWN = 64  # literals longer than this are described, not spelled out

# code -> name, scalar type (-1 where torch has no equal type), bytes format of the elements
DATATYPES: dict[int, tuple[str, int, str]] = {
    0: ("unused", -1, ""),
    1: ("bool", 11, "?"),
    2: ("string", -1, ""),
    10: ("float16", 5, "e"),
    11: ("float32", 6, "f"),
    12: ("float64", 7, "d"),
    13: ("bfloat16", 15, ""),
    21: ("int8", 1, "b"),
    22: ("int16", 2, "h"),
    23: ("int32", 3, "i"),
    24: ("int64", 4, "q"),
    25: ("int4", -1, ""),
    31: ("uint8", 0, "B"),
    32: ("uint16", 27, "H"),
    33: ("uint32", 28, "I"),
    34: ("uint64", 29, "Q"),
    35: ("uint4", -1, ""),
    36: ("uint2", -1, ""),
    37: ("uint1", -1, ""),
    38: ("uint6", -1, ""),
    39: ("uint3", -1, ""),
    40: ("float8_e4m3fn", 24, ""),
    41: ("float8_e5m2", 23, ""),
}


@dataclass(frozen=True, slots=True)
class MilType:
    """A type in terms of GraphValue.kind; a state is shown as its tensor."""

    kind: str
    tensor: TensorMeta | None = None
    datatype: int = 0


@dataclass(frozen=True, slots=True)
class MilValue:
    """A value in the program: spelled out, or a reference to the weight file.

    Attributes:
        type: its type
        literal: the value, or a description when it is long
        file: path of the weight file, empty for immediate values
        offset: where its description is in that file
    """

    type: MilType
    literal: object = None
    file: str = ""
    offset: int = 0


def read_type(message: memoryview, budget: FieldBudget, depth: int = 0) -> MilType:
    """Return a ValueType.

    Raises: FormatError if the message is damaged or nested too deep
    """
    if depth > _MAX_DEPTH:
        raise FormatError(f"types nested at most {_MAX_DEPTH} deep", "deeper nesting")
    for field, value in fields(message, budget):
        if field == 1:
            return _tensor_type(nested(value), budget)
        if field == 5:
            return MilType("tensor", _wrapped(nested(value), budget, depth).tensor)
        if field == 2:
            return MilType("list")
    return MilType("other")


def _wrapped(message: memoryview, budget: FieldBudget, depth: int) -> MilType:
    for field, value in fields(message, budget):
        if field == 1:
            return read_type(nested(value), budget, depth + 1)
    return MilType("other")


def _tensor_type(message: memoryview, budget: FieldBudget) -> MilType:
    datatype = rank = 0
    dims: list[Dim] = []
    for field, value in fields(message, budget):
        if field == 1:
            datatype = number(value)
        elif field == 2:
            rank = signed(number(value))
        elif field == 3:
            dims.append(_dimension(nested(value), budget))
    name, scalar_type, _ = DATATYPES.get(datatype, (f"datatype {datatype}", -1, ""))
    meta = TensorMeta(scalar_type, tuple(dims), type_name=name)
    plain = rank == 0 and not dims
    return MilType("str" if datatype == 2 and plain else "tensor", meta, datatype)


def _dimension(message: memoryview, budget: FieldBudget) -> Dim:
    for field, value in fields(message, budget):
        if field == 1:
            for inner, size in fields(nested(value), budget):
                if inner == 1:
                    return number(size)
            return 0
    return "?"


def read_value(message: memoryview, budget: FieldBudget) -> MilValue:
    """Return a Value.

    Raises: FormatError if the message is damaged
    """
    kind = MilType("other")
    immediate: memoryview | None = None
    file, offset = "", 0
    for field, value in fields(message, budget):
        if field == 2:
            kind = read_type(nested(value), budget)
        elif field == 3:
            immediate = nested(value)
        elif field == 5:
            file, offset = _reference(nested(value), budget)
    literal = None if immediate is None else _literal(immediate, kind, budget)
    return MilValue(kind, literal, file, offset)


def _reference(message: memoryview, budget: FieldBudget) -> tuple[str, int]:
    file, offset = "", 0
    for field, value in fields(message, budget):
        if field == 1:
            file = text(value)
        elif field == 2:
            offset = number(value)
    return file, offset


def _literal(message: memoryview, kind: MilType, budget: FieldBudget) -> object:
    for field, value in fields(message, budget):
        if field == 1:
            return _tensor_literal(nested(value), kind, budget)
        return {2: "(tuple)", 3: "(list)", 4: "(dictionary)"}.get(field)
    return None


def _tensor_literal(message: memoryview, kind: MilType, budget: FieldBudget) -> object:
    for field, value in fields(message, budget):
        raw = nested(value)
        if len(raw) > 16 * _SHOWN:
            return f"({len(raw)} bytes inline)"
        items = _repeated(field, raw, kind, budget)
        scalar = kind.tensor is not None and not kind.tensor.sizes
        if scalar and len(items) == 1:
            return items[0]
        return tuple(items) if len(items) <= _SHOWN else f"({len(items)} elements inline)"
    return ()


def _repeated(field: int, message: memoryview, kind: MilType, budget: FieldBudget) -> list[object]:
    items: list[object] = []
    for inner, value in fields(message, budget):
        if inner != 1:
            continue
        if field == 4:
            items.append(text(value))
        elif field == 7:
            items += _from_bytes(nested(value), kind)
        else:
            items += _numbers(field, value)
    return items


def _numbers(field: int, value: Value) -> list[object]:
    code = {1: "f", 6: "d"}.get(field, "v")
    found = packed(value, code)
    return [bool(item) for item in found] if field == 3 else list(found)


def _from_bytes(raw: memoryview, kind: MilType) -> list[object]:
    code = DATATYPES.get(kind.datatype, ("", -1, ""))[2]
    if not code:
        return [f"({len(raw)} packed bytes)"]
    width = struct.calcsize(f"<{code}")
    count = len(raw) // width
    return list(struct.unpack(f"<{count}{code}", raw[: count * width]))
