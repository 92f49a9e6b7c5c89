"""Traces as JSON in the form of flatc, which several embedded runners print.

Source: etdump_schema_flatcc.fbs and scalar_type.fbs; a field that is not there has its default.
"""

from __future__ import annotations

import re
from typing import Any, cast

from schema.errors import FormatError, Issue, Severity
from schema.etdump.build import run
from schema.etdump.events import AllocationEvent, AnyEvent, DebugEvent, ProfileEvent
from schema.etdump.model import ETDump, RunData
from schema.etdump.values import DebugTensor, DebugValue, ValueType
from schema.flatbuf.json_text import read_json

Row = dict[str, Any]
_HEAD = re.compile(
    rb'(?:\xef\xbb\xbf)?\s*\{\s*(?:"?version"?\s*:\s*[0-9]+\s*,\s*)?"?run_data"?\s*:'
)
VALUE_TYPES = {
    "Null": ValueType.NULL,
    "Int": ValueType.INT,
    "Bool": ValueType.BOOL,
    "Float": ValueType.FLOAT,
    "Double": ValueType.DOUBLE,
    "Tensor": ValueType.TENSOR,
    "TensorList": ValueType.TENSOR_LIST,
    "String": ValueType.STRING,
}
# Names of scalar_type.fbs; codes without a name stay integers.
SCALAR_TYPES = {
    "BYTE": 0,
    "CHAR": 1,
    "SHORT": 2,
    "INT": 3,
    "LONG": 4,
    "HALF": 5,
    "FLOAT": 6,
    "DOUBLE": 7,
    "BOOL": 11,
    "QINT8": 12,
    "QUINT8": 13,
    "QINT32": 14,
    "BFLOAT16": 15,
    "QUINT4X2": 16,
    "QUINT2X4": 17,
    "BITS16": 22,
    "FLOAT8E5M2": 23,
    "FLOAT8E4M3FN": 24,
    "FLOAT8E5M2FNUZ": 25,
    "FLOAT8E4M3FNUZ": 26,
    "UINT16": 27,
    "UINT32": 28,
    "UINT64": 29,
}
_I32 = (-(2**31), 2**31 - 1)
_I64 = (-(2**63), 2**63 - 1)
_U64 = (0, 2**64 - 1)


def is_json(head: bytes) -> bool:
    """Return whether these first bytes are those of an ETDump as JSON."""
    return _HEAD.match(head) is not None


def decode_json(data: memoryview, file: str) -> ETDump:
    """Return the trace that a JSON document describes.

    Raises: FormatError naming the field that does not follow the schema
    """
    return trace_of(read_json(data), file)


def trace_of(tree: object, file: str = "") -> ETDump:
    """Return the trace that a tree of JSON describes.

    Raises: FormatError naming the field that does not follow the schema
    """
    root = _table(tree, "ETDump")
    rows = _list(root.get("run_data"), "run_data")
    runs: list[RunData] = []
    for index, row in enumerate(rows):
        try:
            runs.append(_run(_table(row, "RunData")))
        except FormatError as error:
            raise error.inside(f"run_data[{index}]") from None
    words = "read from JSON, as flatc prints an ETDump; places are those in its binary form"
    version = _number(root, "version", (0, 2**32 - 1), 0)
    return ETDump(version, True, tuple(runs), file, (Issue(Severity.INFO, file, words),))


def _run(row: Row) -> RunData:
    events: list[AnyEvent] = []
    for index, event in enumerate(_list(row.get("events"), "events")):
        try:
            events.append(_event(_table(event, "Event")))
        except FormatError as error:
            raise error.inside(f"events[{index}]") from None
    allocators = [_table(one, "Allocator") for one in _list(row.get("allocators"), "allocators")]
    return run(
        _text(row, "name") or "",
        events,
        bundled_input_index=_number(row, "bundled_input_index", _I32, -1),
        allocators=[_text(one, "name") or "" for one in allocators],
    )


def _event(row: Row) -> AnyEvent:
    if (inside := row.get("profile_event")) is not None:
        return _profile(_table(inside, "profile_event"))
    if (inside := row.get("allocation_event")) is not None:
        taken = _table(inside, "allocation_event")
        allocator = _number(taken, "allocator_id", _I32, 0)
        return AllocationEvent(allocator, _number(taken, "allocation_size", _U64, 0))
    if (inside := row.get("debug_event")) is not None:
        return _debug(_table(inside, "debug_event"))
    return None


def _profile(row: Row) -> ProfileEvent:
    raw = row.get("delegate_debug_metadata")
    metadata = None if raw is None else bytes(_numbers(row, "delegate_debug_metadata", (0, 255)))
    return ProfileEvent(
        name=_text(row, "name"),
        chain_index=_number(row, "chain_index", _I32, 0),
        instruction_id=_number(row, "instruction_id", _I32, -1),
        start_time=_number(row, "start_time", _U64, 0),
        end_time=_number(row, "end_time", _U64, 0),
        delegate_id_int=_number(row, "delegate_debug_id_int", _I32, -1),
        delegate_id_str=_text(row, "delegate_debug_id_str"),
        metadata=metadata,
    )


def _debug(row: Row) -> DebugEvent:
    chain = _number(row, "chain_index", (_I64[0], _U64[1]), 0)
    entry = row.get("debug_entry")
    return DebugEvent(
        value=None if entry is None else _value(_table(entry, "debug_entry")),
        chain_index=chain - 2**64 if chain > _I64[1] else chain,
        instruction_id=_number(row, "instruction_id", _I32, -1),
        name=_text(row, "name"),
        delegate_id_int=_number(row, "delegate_debug_id_int", _I32, -1),
        delegate_id_str=_text(row, "delegate_debug_id_str"),
    )


def _value(row: Row) -> DebugValue:
    def inner(name: str) -> Row | None:
        found = row.get(name)
        return None if found is None else _table(found, name)

    tensor, several, whole = inner("tensor"), inner("tensor_list"), inner("int_value")
    single, double = inner("float_value"), inner("double_value")
    flag, output = inner("bool_value"), inner("output")
    members = None if several is None else _list(several.get("tensors"), "tensors")
    return DebugValue(
        type=_enum(row, "val", VALUE_TYPES),
        tensor=None if tensor is None else _tensor(tensor),
        tensors=None if members is None else tuple(_tensor(_table(t, "tensors")) for t in members),
        int_value=None if whole is None else _number(whole, "int_val", _I64, 0),
        float_value=None if single is None else _real(single, "float_val"),
        double_value=None if double is None else _real(double, "double_val"),
        bool_value=None if flag is None else _flag(flag, "bool_val"),
        output=None if output is None else _flag(output, "bool_val"),
    )


def _tensor(row: Row) -> DebugTensor:
    return DebugTensor(
        scalar_type=_enum(row, "scalar_type", SCALAR_TYPES),
        sizes=_numbers(row, "sizes", _I64),
        strides=_numbers(row, "strides", _I64),
        offset=_number(row, "offset", _I64, 0),
    )


def _table(value: object, field: str) -> Row:
    if not isinstance(value, dict):
        raise _wrong("an object", value, field)
    return cast("Row", value)


def _list(value: object, field: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise _wrong("a list", value, field)
    return cast("list[Any]", value)


def _text(row: Row, field: str) -> str | None:
    value = row.get(field)
    if value is not None and not isinstance(value, str):
        raise _wrong("a string", value, field)
    return value


def _number(row: Row, field: str, bounds: tuple[int, int], default: int) -> int:
    value = row.get(field, default)
    if not isinstance(value, int) or not bounds[0] <= value <= bounds[1]:
        raise _wrong(f"an integer from {bounds[0]} to {bounds[1]}", value, field)
    return int(value)


def _numbers(row: Row, field: str, bounds: tuple[int, int]) -> tuple[int, ...]:
    items = _list(row.get(field), field)
    for item in items:
        if not isinstance(item, int) or not bounds[0] <= item <= bounds[1]:
            raise _wrong(f"integers from {bounds[0]} to {bounds[1]}", item, field)
    return tuple(items)


def _real(row: Row, field: str) -> float:
    value = row.get(field, 0.0)
    if not isinstance(value, (int, float)) or abs(value) > 1.8e308 != float("inf"):
        raise _wrong("a number", value, field)
    return float(value)


def _flag(row: Row, field: str) -> bool:
    value = row.get(field, False)
    if not isinstance(value, (bool, int)):
        raise _wrong("true or false", value, field)
    return bool(value)


def _enum(row: Row, field: str, names: dict[str, Any]) -> int:
    """Return a value of an enumeration, which flatc prints by name if it has one."""
    value = row.get(field, 0)
    if isinstance(value, str) and value in names:
        return int(names[value])
    if isinstance(value, int) and -128 <= value <= 127:
        return int(value)
    raise _wrong(f"one of {', '.join(names)}, or an integer from -128 to 127", value, field)


def _wrong(expected: str, found: object, field: str) -> FormatError:
    return FormatError(expected, f"{found!r}"[:60], field=field)
