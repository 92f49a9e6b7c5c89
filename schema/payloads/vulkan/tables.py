"""Field tables of the Vulkan payload.

Source: backends/vulkan/serialization/schema.fbs
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypeAlias

from schema.flatbuf.declare import (
    NOT_STORED,
    UnionName,
    f64,
    i8,
    i32,
    i64,
    substituted,
    table_of,
    u8,
    u32,
    u64,
)
from schema.flatbuf.spec import UnknownMember

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
CLAMPED = frozenset(("conv_with_clamp.default", "et_vk.conv_with_clamp.default"))
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

    node_id: u32 = 0
    name: str = ""
    args: tuple[i32, ...] = ()


@dataclass(frozen=True, slots=True)
class Null:
    """The value None."""


@dataclass(frozen=True, slots=True)
class Int:
    """An integer."""

    int_val: i64 = 0


@dataclass(frozen=True, slots=True)
class Double:
    """A floating point value."""

    double_val: f64 = 0.0


@dataclass(frozen=True, slots=True)
class Bool:
    """A bool."""

    bool_val: bool = False


@dataclass(frozen=True, slots=True)
class VkTensor:
    """A tensor; constant_id and mem_obj_id are negative if absent."""

    datatype: i8 = 0
    dims: tuple[u32, ...] = ()
    constant_id: i32 = 0
    mem_obj_id: i32 = 0
    storage_type: u8 = DEFAULT
    memory_layout: u8 = DEFAULT
    staging_datatype: i8 = UNSET


@dataclass(frozen=True, slots=True)
class IntList:
    """Literal integers."""

    items: tuple[i64, ...] = ()


@dataclass(frozen=True, slots=True)
class DoubleList:
    """Literal floating point values."""

    items: tuple[f64, ...] = ()


@dataclass(frozen=True, slots=True)
class BoolList:
    """Literal bools."""

    items: tuple[bool, ...] = ()


@dataclass(frozen=True, slots=True)
class ValueList:
    """Ids of other values."""

    items: tuple[i32, ...] = ()


@dataclass(frozen=True, slots=True)
class String:
    """A string."""

    string_val: str = ""


@dataclass(frozen=True, slots=True)
class SymInt:
    """An integer that is set at run time; value is its compile-time value."""

    value: i32 = 0


Literal: TypeAlias = Null | Int | Double | Bool | IntList | DoubleList | BoolList | String
# In the order of the union's tags.
GraphType: TypeAlias = (
    Null
    | Int
    | Double
    | Bool
    | VkTensor
    | IntList
    | DoubleList
    | BoolList
    | ValueList
    | String
    | SymInt
)


@dataclass(frozen=True, slots=True)
class VkValue:
    """A value of any kind."""

    value: Annotated[GraphType | UnknownMember | None, UnionName("GraphTypes")] = None


@dataclass(frozen=True, slots=True)
class VkBytes:
    """A constant or shader: in the byte area, or in named data if it has a key."""

    offset: u64 = 0
    length: u64 = 0
    named_key: str | None = None


@dataclass(frozen=True, slots=True)
class VkGraph:
    """The root table."""

    version: str | None = None
    chain: tuple[OperatorCall, ...] = ()
    values: tuple[VkValue, ...] = ()
    input_ids: tuple[u32, ...] = ()
    output_ids: tuple[u32, ...] = ()
    constants: tuple[VkBytes, ...] = ()
    shaders: tuple[VkBytes, ...] = ()
    storage_type_override: u8 = DEFAULT
    memory_layout_override: u8 = DEFAULT


@dataclass(frozen=True, slots=True)
class _CallV02(OperatorCall):
    """OperatorCall of release 0.2, which had no node_id."""

    node_id: Annotated[int, NOT_STORED] = 0


GRAPH = table_of(VkGraph)
# Only its shorter tables distinguish a payload of release 0.2.
GRAPH_V02 = substituted(
    GRAPH, {table_of(OperatorCall): table_of(_CallV02, "OperatorCall", OperatorCall)}
)
