"""Field tables of the Vulkan payload.

Source: backends/vulkan/serialization/schema.fbs
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from schema.flatbuf.spec import (
    BOOL,
    F64,
    I8,
    I32,
    I64,
    U8,
    U32,
    U64,
    Spec,
    Text,
    Union,
    UnknownMember,
    Vec,
    spec,
)

DEFAULT, UNSET = 255, 127
DATATYPES = {
    0: ("bool", 11),
    1: ("uint8", 0),
    2: ("int8", 1),
    3: ("int32", 3),
    4: ("float16", 5),
    5: ("float32", 6),
    6: ("float64", 7),
    7: ("int64", 4),
    UNSET: ("unset", -1),
}
STORAGE = {0: "buffer", 1: "texture_3d", 2: "texture_2d", DEFAULT: "default"}
LAYOUT = {
    0: "width_packed",
    1: "height_packed",
    2: "channels_packed",
    3: "packed_int8_4w4c",
    4: "packed_int8_4h4w",
    5: "packed_int8_4w",
    6: "packed_int8_4c",
    8: "packed_int8_4c1w",
    9: "packed_int8_conv2d",
    DEFAULT: "default",
}


@dataclass(frozen=True, slots=True)
class OperatorCall:
    """One operator; args are value ids, the output (or list of outputs) last."""

    node_id: int = 0
    name: str = ""
    args: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Null:
    """None."""


@dataclass(frozen=True, slots=True)
class Int:
    """An integer."""

    int_val: int = 0


@dataclass(frozen=True, slots=True)
class Double:
    """A number."""

    double_val: float = 0.0


@dataclass(frozen=True, slots=True)
class Bool:
    """A truth value."""

    bool_val: bool = False


@dataclass(frozen=True, slots=True)
class VkTensor:
    """A tensor; constant_id and mem_obj_id are negative for none."""

    datatype: int = 0
    dims: tuple[int, ...] = ()
    constant_id: int = 0
    mem_obj_id: int = 0
    storage_type: int = DEFAULT
    memory_layout: int = DEFAULT
    staging_datatype: int = UNSET


@dataclass(frozen=True, slots=True)
class IntList:
    """Literal integers."""

    items: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class DoubleList:
    """Literal numbers."""

    items: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class BoolList:
    """Literal truth values."""

    items: tuple[bool, ...] = ()


@dataclass(frozen=True, slots=True)
class ValueList:
    """Ids of other values."""

    items: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class String:
    """A text."""

    string_val: str = ""


@dataclass(frozen=True, slots=True)
class SymInt:
    """An integer that is set at run time; value is its number at compile time."""

    value: int = 0


Literal: TypeAlias = Null | Int | Double | Bool | IntList | DoubleList | BoolList | String
GraphType: TypeAlias = Literal | VkTensor | ValueList | SymInt


@dataclass(frozen=True, slots=True)
class VkValue:
    """A value of any kind."""

    value: GraphType | UnknownMember | None = None


@dataclass(frozen=True, slots=True)
class VkBytes:
    """A constant or shader: in the byte area, or in named data where there is a key."""

    offset: int = 0
    length: int = 0
    named_key: str | None = None


@dataclass(frozen=True, slots=True)
class VkGraph:
    """The root table."""

    version: str | None = None
    chain: tuple[OperatorCall, ...] = ()
    values: tuple[VkValue, ...] = ()
    input_ids: tuple[int, ...] = ()
    output_ids: tuple[int, ...] = ()
    constants: tuple[VkBytes, ...] = ()
    shaders: tuple[VkBytes, ...] = ()
    storage_type_override: int = DEFAULT
    memory_layout_override: int = DEFAULT


_CALL = spec("OperatorCall", OperatorCall, ("node_id", U32), ("name", Text()), ("args", Vec(I32)))
# Release 0.2 had no node_id; nothing in the payload says so but the shorter tables.
_CALL_V02 = spec("OperatorCall", OperatorCall, ("name", Text()), ("args", Vec(I32)))
_TENSOR = spec(
    "VkTensor",
    VkTensor,
    ("datatype", I8),
    ("dims", Vec(U32)),
    ("constant_id", I32),
    ("mem_obj_id", I32),
    ("storage_type", U8, DEFAULT),
    ("memory_layout", U8, DEFAULT),
    ("staging_datatype", I8, UNSET),
)
_TYPES = Union(
    "GraphTypes",
    (
        None,
        spec("Null", Null),
        spec("Int", Int, ("int_val", I64)),
        spec("Double", Double, ("double_val", F64)),
        spec("Bool", Bool, ("bool_val", BOOL)),
        _TENSOR,
        spec("IntList", IntList, ("items", Vec(I64))),
        spec("DoubleList", DoubleList, ("items", Vec(F64))),
        spec("BoolList", BoolList, ("items", Vec(BOOL))),
        spec("ValueList", ValueList, ("items", Vec(I32))),
        spec("String", String, ("string_val", Text())),
        spec("SymInt", SymInt, ("value", I32)),
    ),
)
_BYTES = spec("VkBytes", VkBytes, ("offset", U64), ("length", U64), ("named_key", Text(), None))


def _graph(call: Spec[OperatorCall]) -> Spec[VkGraph]:
    return spec(
        "VkGraph",
        VkGraph,
        ("version", Text(), None),
        ("chain", Vec(call)),
        ("values", Vec(spec("VkValue", VkValue, ("value", _TYPES)))),
        ("input_ids", Vec(U32)),
        ("output_ids", Vec(U32)),
        ("constants", Vec(_BYTES)),
        ("shaders", Vec(_BYTES)),
        ("storage_type_override", U8, DEFAULT),
        ("memory_layout_override", U8, DEFAULT),
    )


GRAPH = _graph(_CALL)
GRAPH_V02 = _graph(_CALL_V02)
