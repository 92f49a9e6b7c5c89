"""Field tables of the MPS payload.

Source: backends/apple/mps/serialization/schema.fbs of releases 1.4.1 and 0.3
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from schema.flatbuf.declare import f32, i16, i32, named, substituted, table_of, u64
from schema.flatbuf.spec import Blob, Spec, Union, UnknownMember, columns, spec
from schema.payloads.model import EMPTY_BYTES

DATATYPES: dict[int, tuple[str, int]] = {
    0: ("invalid", -1),
    1: ("float16", 5),
    2: ("float32", 6),
    3: ("float64", 7),
    4: ("bfloat16", 15),
    5: ("int4", -1),
    6: ("int8", 1),
    7: ("int16", 2),
    8: ("int32", 3),
    9: ("int64", 4),
    10: ("uint4", -1),
    11: ("uint8", 0),
    12: ("uint16", 27),
    13: ("uint32", 28),
    14: ("uint64", 29),
    15: ("bool", 11),
    16: ("complex32", 8),
    17: ("complex64", 9),
}
# releases that wrote the bare flatbuffer
OLD_DATATYPES: dict[int, tuple[str, int]] = {
    0: ("invalid", -1),
    1: ("float16", 5),
    2: ("float32", 6),
    3: ("bfloat16", 15),
    4: ("int8", 1),
    5: ("int16", 2),
    6: ("int32", 3),
    7: ("int64", 4),
    8: ("uint8", 0),
    9: ("bool", 11),
    10: ("complex32", 8),
    11: ("complex64", 9),
}
GRAPH_TYPES = ("mps_graph", "metal_kernel")
TYPE_FIELDS = frozenset({"dtype", "output_dtype"})


@dataclass(frozen=True, slots=True)
class MpsOperation:
    """A node: its kind and fields by name."""

    kind: str
    fields: Mapping[str, Any]


def _make(kind: str, **fields: Any) -> MpsOperation:  # noqa: ANN401 - any field value
    return MpsOperation(kind, fields)


_PADS = "padding_left:i32 padding_right:i32 padding_top:i32 padding_bottom:i32"
_ONE = "input1_id:i32 output_id:i32"
_TWO = "input1_id:i32 input2_id:i32 output_id:i32"
_THREE = "input1_id:i32 input2_id:i32 input3_id:i32 output_id:i32"
_DIV = f"{_TWO} rounding_mode:str"
_ALPHA = f"{_TWO} alpha:f32"
_SOFTMAX = f"{_ONE} dim:i32 half_to_float:bool"
_FULL = f"{_ONE} shape:[i32] fill_value:f32 dtype:i16"
_VIEW = f"{_ONE} num_dims:i32 shape:[i32]"
_CONV = f"{_THREE} stride_x:i32 stride_y:i32 dilation_x:i32 dilation_y:i32 groups:i32 {_PADS}"
_POOL = (
    "input1_id:i32 kernel_height:i32 kernel_width:i32 stride_height:i32 stride_width:i32 "
    f"{_PADS} dilation_height:i32 dilation_width:i32 ceil_mode:bool count_include_pad:bool "
    "divisor_override:i32 output1_id:i32 output2_id:i32"
)
_NORM_OUTPUTS = "output2_id:i32 output1_id:i32 output3_id:i32"
_BINARY = "Min Max Pow Atan2 BitwiseAnd BitwiseOr BitwiseXor Minimum"
_UNARY = (
    "Exp Exp2 Reciprocal Sqrt Neg Log Log10 Log2 Erf Floor Ceil Rsqrt Sigmoid Sin Sign Cos Tan "
    "Abs Asin Acos Atan Sinh Cosh Tanh Asinh Acosh Atanh BitwiseNot Isnan Isinf Round LogicalNot"
)
# kind -> fields, see `columns`; the position is the union tag, the first is NONE
_NODES: tuple[tuple[str, str], ...] = (
    ("HardTanh", f"{_ONE} min_value:f32 max_value:f32"),
    ("ReLU", _TWO),
    ("GELU", f"{_ONE} approximate:str"),
    ("LeakyReLU", f"{_ONE} negative_slope:f32"),
    ("Softmax", _SOFTMAX),
    ("LogSoftmax", _SOFTMAX),
    ("Add", _ALPHA),
    ("Sub", _ALPHA),
    ("Mul", _TWO),
    ("Div", _DIV),
    ("Fmod", _DIV),
    ("Remainder", _DIV),
    *((kind, _TWO) for kind in _BINARY.split()),
    *((kind, _ONE) for kind in _UNARY.split()),
    ("MatMul", _TWO),
    ("Addmm", f"{_THREE} beta:f32 alpha:f32"),
    ("Full", _FULL),
    ("FullLike", _FULL),
    ("Clamp", _ONE),
    ("Where", _THREE),
    ("IndexSelect", f"{_ONE} dim:i32 index_id:i32"),
    ("Embedding", f"{_TWO} padding_idx:i32 scale_grad_by_freq:bool sparse:bool"),
    ("IndexTensor", "input1_id:i32 indices_id:[i32] output_id:i32"),
    (
        "IndexPut",
        "input1_id:i32 indices_id:[i32] values_shape:[i32] values_id:i32 output_id:i32",
    ),
    ("Scatter", f"{_ONE} dim:i64 idx_id:i32 src_id:i32"),
    ("Mean", f"{_ONE} num_dims:i32 dims:[i32] keep_dims:bool"),
    ("Permute", f"{_ONE} num_dims:i32 perm:[i32]"),
    ("View", _VIEW),
    ("Expand", _VIEW),
    ("Cat", "input_ids:[i32] output_id:i32 dim:i32"),
    ("Squeeze", f"{_ONE} dims:[i32]"),
    ("Unsqueeze", f"{_ONE} dim:i32"),
    ("Select", f"{_ONE} dim:i32 index:i32"),
    ("Slice", f"{_ONE} dim:i64 start:i64 end:i64 step:i64"),
    ("PixelShuffle", f"{_ONE} upscale_factor:i32"),
    ("SplitWithSizes", "input1_id:i32 output_ids:[i32] split_sizes:[i32] dim:i32"),
    ("Cast", f"{_ONE} dtype:i16"),
    ("Conv2D", _CONV),
    ("DepthwiseConv2D", _CONV),
    *((kind, _TWO) for kind in ("Eq", "Ne", "Ge", "Gt", "Le", "Lt")),
    (
        "BatchNorm",
        "input_id:i32 mean_id:i32 var_id:i32 weight_id:i32 bias_id:i32 momentum:f32 epsilon:f32 "
        + _NORM_OUTPUTS,
    ),
    (
        "LayerNorm",
        "input1_id:i32 normalized_shape:[i32] weight_id:i32 bias_id:i32 eps:f32 " + _NORM_OUTPUTS,
    ),
    ("MaxPool2DWithIndices", _POOL),
    ("AvgPool2D", _POOL),
    ("ConstantPadND", f"{_ONE} pad:[i32] value:f32"),
    ("Arange", "output_id:i32 start:f32 end:f32 step:f32 dtype:i16"),
    (
        "DequantizePerChannelGroup",
        f"{_ONE} scales_id:i32 zero_points_id:i32 quant_min:i32 quant_max:i32 dtype:i16 "
        "group_size:i32 output_dtype:i16",
    ),
)
_COLUMNS = {kind: columns(row) for kind, row in _NODES}
NODE_KINDS = tuple(_COLUMNS)
FIELD_ORDER = {kind: tuple(row[0] for row in rows) for kind, rows in _COLUMNS.items()}
# ReLU shares the table of two-operand nodes; its second id is never written.
UNUSED = frozenset({("ReLU", "input2_id")})


def _node(kind: str) -> Spec[Any]:
    return spec(f"MPS{kind}", partial(_make, kind), *_COLUMNS[kind])


def _tag(operation: MpsOperation) -> int:
    return NODE_KINDS.index(operation.kind) + 1


_UNION = Union("MPSNodeUnion", (None, *map(_node, NODE_KINDS)), _tag)


@named("MPSMinMax")
@dataclass(frozen=True, slots=True)
class MinMax:
    """Bounds of a clamp, or of an activation merged into its producer."""

    min_value: f32 = 0.0
    max_value: f32 = 0.0


@named("MPSNode")
@dataclass(frozen=True, slots=True)
class Node:
    """An operation with optional bounds."""

    mpsnode_union: Annotated[MpsOperation | UnknownMember | None, _UNION] = None
    min_max: MinMax | None = None


@dataclass(frozen=True, slots=True)
class Buffer:
    """A constant inside the flatbuffer (before the data segment)."""

    storage: Annotated[memoryview, Blob(16)] = EMPTY_BYTES


@named("MPSTensor")
@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor; constants have a size and a place in the segment or a buffer."""

    datatype: i16 = 0
    num_dims: i32 = 0
    dims: tuple[i32, ...] = ()
    constant_buffer_size: u64 = 0
    constant_buffer: Buffer | None = None
    segment_offset: u64 = 0


@dataclass(frozen=True, slots=True)
class DataSegment:
    """The constant segment after the flatbuffer."""

    offset: u64 = 0
    size: u64 = 0


@dataclass(frozen=True, slots=True)
class MPSGraph:
    """The root table."""

    version: str | None = None
    mps_nodes: tuple[Node, ...] = ()
    mps_values: tuple[Tensor, ...] = ()
    input_ids: tuple[i32, ...] = ()
    output_ids: tuple[i32, ...] = ()
    constant_ids: tuple[i32, ...] = ()
    graph_type: i16 = 0
    constant_segment: DataSegment | None = None


@dataclass(frozen=True, slots=True)
class _OldTensor(Tensor):
    """Tensor of the releases that wrote the bare flatbuffer."""

    constant_buffer_size: i32 = 0


GRAPH = table_of(MPSGraph)
OLD_GRAPH = substituted(GRAPH, {table_of(Tensor): table_of(_OldTensor, "MPSTensor", Tensor)})
