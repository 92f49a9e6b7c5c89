"""Types and literals of a MIL program.

Source: coremltools mlmodel/format/MIL.proto (field numbers of ValueType, TensorType, Value)
"""

from __future__ import annotations

from dataclasses import dataclass

from schema.errors import FormatError
from schema.graph import Dim, TensorMeta
from schema.payloads.coreml.elements import element_bytes, elements, expect_count, shaped
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
_SHOWN = 64  # literals longer than this are constants of the payload, not spelled out

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
    """A type in terms of GraphValue.kind; a state is shown as its tensor.

    Attributes:
        kind: of a graph value
        tensor: its dtype and sizes
        datatype: code of the dtype
        is_state: a state wraps the tensor
    """

    kind: str
    tensor: TensorMeta | None = None
    datatype: int = 0
    is_state: bool = False


@dataclass(frozen=True, slots=True)
class MilValue:
    """A value in the program: spelled out, or a reference to the weight file.

    Attributes:
        type: its type
        literal: the value, nested as its shape is; a description when it is long
        file: path of the weight file, empty for immediate values
        offset: where its description is in that file
        data: the elements of a long value, as a weight file has them
    """

    type: MilType
    literal: object = None
    file: str = ""
    offset: int = 0
    data: memoryview | None = None


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
            wrapped = _wrapped(nested(value), budget, depth)
            return MilType("tensor", wrapped.tensor, wrapped.datatype, is_state=True)
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
    literal, data = (None, None) if immediate is None else _literal(immediate, kind, budget)
    return MilValue(kind, literal, file, offset, data)


def _reference(message: memoryview, budget: FieldBudget) -> tuple[str, int]:
    file, offset = "", 0
    for field, value in fields(message, budget):
        if field == 1:
            file = text(value)
        elif field == 2:
            offset = number(value)
    return file, offset


def _literal(
    message: memoryview, kind: MilType, budget: FieldBudget
) -> tuple[object, memoryview | None]:
    for field, value in fields(message, budget):
        if field == 1:
            return _tensor_literal(nested(value), kind, budget)
        if field == 3:
            return _list_literal(nested(value), budget), None
        return {2: "(tuple)", 4: "(dictionary)"}.get(field), None
    return None, None


def _list_literal(message: memoryview, budget: FieldBudget) -> object:
    """Return a list of scalars and strings, such as the classes of a classifier."""
    items: list[object] = []
    for field, value in fields(message, budget):
        if field != 1:
            continue
        item = _scalar_of(nested(value), budget)
        if item is None:
            return "(list)"
        items.append(item)
    return tuple(items)


def _scalar_of(message: memoryview, budget: FieldBudget) -> object:
    """Return a value that is a scalar or a string, None for any other."""
    kind = MilType("other")
    for field, value in fields(message, budget):
        if field == 2:
            kind = read_type(nested(value), budget)
        elif field == 3:
            for inner, tensor in fields(nested(value), budget):
                found = _tensor_literal(nested(tensor), kind, budget)[0] if inner == 1 else None
                return found if isinstance(found, (str, int, float)) else None
    return None


def _tensor_literal(
    message: memoryview, kind: MilType, budget: FieldBudget
) -> tuple[object, memoryview | None]:
    items: list[object] = []
    for field, value in fields(message, budget):
        items = _repeated(field, nested(value), kind, budget)
        break
    sizes = kind.tensor.sizes if kind.tensor is not None else ()
    if not sizes and len(items) == 1:
        return items[0], None
    expect_count(len(items), sizes)
    if len(items) <= _SHOWN:
        return shaped(items, sizes), None
    described = f"({len(items)} elements inline)"
    code = DATATYPES.get(kind.datatype, ("", -1, ""))
    return described, element_bytes(items, code[0], code[2])


def _repeated(field: int, message: memoryview, kind: MilType, budget: FieldBudget) -> list[object]:
    items: list[object] = []
    for inner, value in fields(message, budget):
        if inner != 1:
            continue
        if field == 4:
            items.append(text(value))
        elif field == 7:
            name, _, code = DATATYPES.get(kind.datatype, ("", -1, ""))
            items += elements(nested(value), name, code, _count(kind))
        else:
            items += _numbers(field, value)
    return items


def _count(kind: MilType) -> int | None:
    """Return the number of elements of a type, None where a size is open."""
    count = 1
    for size in kind.tensor.sizes if kind.tensor is not None else ():
        if not isinstance(size, int):
            return None
        count *= size
    return count


def _numbers(field: int, value: Value) -> list[object]:
    code = {1: "f", 6: "d"}.get(field, "v")
    found = packed(value, code)
    return [bool(item) for item in found] if field == 3 else list(found)
