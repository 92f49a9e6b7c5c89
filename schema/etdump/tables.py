"""Field tables of etdump_schema_flatcc.fbs, identifier ED00, for the structure view and fuzzing.

A trace is read by columns, not by these tables; they name every field and its slot.
Source: etdump_schema_flatcc.fbs since 0.4; slots up to 0.3 are a prefix of these.
"""

from __future__ import annotations

from schema.flatbuf import spec as fb
from schema.flatbuf.spec import Blob, Text, Vec, spec

Row = dict[str, object]


def _row(**fields: object) -> Row:
    return fields


TEXT = Text()
INT = spec("Int", _row, ("int_val", fb.I64))
BOOL = spec("Bool", _row, ("bool_val", fb.BOOL))
FLOAT = spec("Float", _row, ("float_val", fb.F32))
DOUBLE = spec("Double", _row, ("double_val", fb.F64))
TENSOR = spec(
    "Tensor",
    _row,
    ("scalar_type", fb.I8),
    ("sizes", Vec(fb.I64)),
    ("strides", Vec(fb.I64)),
    ("offset", fb.I64),
)
TENSOR_LIST = spec("TensorList", _row, ("tensors", Vec(TENSOR)))
VALUE = spec(
    "Value",
    _row,
    ("val", fb.I8),
    ("tensor", TENSOR),
    ("tensor_list", TENSOR_LIST),
    ("int_value", INT),
    ("float_value", FLOAT),
    ("double_value", DOUBLE),
    ("bool_value", BOOL),
    ("output", BOOL),
)
PROFILE_EVENT = spec(
    "ProfileEvent",
    _row,
    ("name", TEXT),
    ("chain_index", fb.I32),
    ("instruction_id", fb.I32, -1),
    ("delegate_debug_id_int", fb.I32, -1),
    ("delegate_debug_id_str", TEXT),
    ("delegate_debug_metadata", Blob()),
    ("start_time", fb.U64),
    ("end_time", fb.U64),
)
ALLOCATION_EVENT = spec(
    "AllocationEvent", _row, ("allocator_id", fb.I32), ("allocation_size", fb.U64)
)
DEBUG_EVENT = spec(
    "DebugEvent",
    _row,
    ("chain_index", fb.U64),
    ("instruction_id", fb.I32, -1),
    ("debug_entry", VALUE),
    ("delegate_debug_id_int", fb.I32, -1),
    ("delegate_debug_id_str", TEXT),
    ("name", TEXT),
)
EVENT = spec(
    "Event",
    _row,
    ("profile_event", PROFILE_EVENT),
    ("allocation_event", ALLOCATION_EVENT),
    ("debug_event", DEBUG_EVENT),
)
ALLOCATOR = spec("Allocator", _row, ("name", TEXT))
RUN_DATA = spec(
    "RunData",
    _row,
    ("name", TEXT),
    ("bundled_input_index", fb.I32, -1),
    ("allocators", Vec(ALLOCATOR)),
    ("events", Vec(EVENT)),
)
ETDUMP = spec("ETDump", _row, ("version", fb.U32), ("run_data", Vec(RUN_DATA)))
