"""Field tables of the MPS payload.

Source: backends/apple/mps/serialization/schema.fbs of releases 1.4.1 and 0.3
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from schema.flatbuf.spec import (
    BOOL,
    F32,
    I16,
    I32,
    I64,
    U64,
    Blob,
    Spec,
    Text,
    Union,
    UnknownMember,
    Vec,
    spec,
)
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
class Operation:
    """A node: its kind and fields by name."""

    kind: str
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class MinMax:
    """Bounds of a clamp, or of an activation merged into its producer."""

    min_value: float = 0.0
    max_value: float = 0.0


@dataclass(frozen=True, slots=True)
class Node:
    """An operation with optional bounds."""

    mpsnode_union: Operation | UnknownMember | None = None
    min_max: MinMax | None = None


@dataclass(frozen=True, slots=True)
class Buffer:
    """A constant inside the flatbuffer (before the data segment)."""

    storage: memoryview = EMPTY_BYTES


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor; constants have a size and a place in the segment or a buffer."""

    datatype: int = 0
    num_dims: int = 0
    dims: tuple[int, ...] = ()
    constant_buffer_size: int = 0
    constant_buffer: Buffer | None = None
    segment_offset: int = 0


@dataclass(frozen=True, slots=True)
class DataSegment:
    """The constant segment behind the flatbuffer."""

    offset: int = 0
    size: int = 0


@dataclass(frozen=True, slots=True)
class MPSGraph:
    """The root table."""

    version: str | None = None
    mps_nodes: tuple[Node, ...] = ()
    mps_values: tuple[Tensor, ...] = ()
    input_ids: tuple[int, ...] = ()
    output_ids: tuple[int, ...] = ()
    constant_ids: tuple[int, ...] = ()
    graph_type: int = 0
    constant_segment: DataSegment | None = None


def _make(kind: str, **fields: Any) -> Operation:  # noqa: ANN401 - any field value
    return Operation(kind, fields)


def _ids(names: str) -> list[tuple[str, Any]]:
    return [(name, I32) for name in names.split()]


_INTS = Vec(I32)
_ONE = _ids("input1_id output_id")
_TWO = _ids("input1_id input2_id output_id")
_THREE = _ids("input1_id input2_id input3_id output_id")
_DIV = [*_TWO, ("rounding_mode", Text())]
_ALPHA = [*_TWO, ("alpha", F32)]
_SOFTMAX = [*_ONE, ("dim", I32), ("half_to_float", BOOL)]
_FULL = [*_ONE, ("shape", _INTS), ("fill_value", F32), ("dtype", I16)]
_VIEW = [*_ONE, ("num_dims", I32), ("shape", _INTS)]
_CONV = [
    *_THREE,
    *_ids("stride_x stride_y dilation_x dilation_y groups"),
    *_ids("padding_left padding_right padding_top padding_bottom"),
]
_POOL = [
    *_ids("input1_id kernel_height kernel_width stride_height stride_width"),
    *_ids("padding_left padding_right padding_top padding_bottom"),
    *_ids("dilation_height dilation_width"),
    ("ceil_mode", BOOL),
    ("count_include_pad", BOOL),
    *_ids("divisor_override output1_id output2_id"),
]
_NORM_OUTPUTS = _ids("output2_id output1_id output3_id")
_BINARY = "Min Max Pow Atan2 BitwiseAnd BitwiseOr BitwiseXor Minimum"
_UNARY = (
    "Exp Exp2 Reciprocal Sqrt Neg Log Log10 Log2 Erf Floor Ceil Rsqrt Sigmoid Sin Sign Cos Tan "
    "Abs Asin Acos Atan Sinh Cosh Tanh Asinh Acosh Atanh BitwiseNot Isnan Isinf Round LogicalNot"
)
# kind -> fields; the position is the union tag, the first is NONE
_NODES: tuple[tuple[str, list[tuple[str, Any]]], ...] = (
    ("HardTanh", [*_ONE, ("min_value", F32), ("max_value", F32)]),
    ("ReLU", _TWO),
    ("GELU", [*_ONE, ("approximate", Text())]),
    ("LeakyReLU", [*_ONE, ("negative_slope", F32)]),
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
    ("Addmm", [*_THREE, ("beta", F32), ("alpha", F32)]),
    ("Full", _FULL),
    ("FullLike", _FULL),
    ("Clamp", _ONE),
    ("Where", _THREE),
    ("IndexSelect", [*_ONE, ("dim", I32), ("index_id", I32)]),
    ("Embedding", [*_TWO, ("padding_idx", I32), ("scale_grad_by_freq", BOOL), ("sparse", BOOL)]),
    ("IndexTensor", [("input1_id", I32), ("indices_id", _INTS), ("output_id", I32)]),
    (
        "IndexPut",
        [
            ("input1_id", I32),
            ("indices_id", _INTS),
            ("values_shape", _INTS),
            ("values_id", I32),
            ("output_id", I32),
        ],
    ),
    ("Scatter", [*_ONE, ("dim", I64), ("idx_id", I32), ("src_id", I32)]),
    ("Mean", [*_ONE, ("num_dims", I32), ("dims", _INTS), ("keep_dims", BOOL)]),
    ("Permute", [*_ONE, ("num_dims", I32), ("perm", _INTS)]),
    ("View", _VIEW),
    ("Expand", _VIEW),
    ("Cat", [("input_ids", _INTS), ("output_id", I32), ("dim", I32)]),
    ("Squeeze", [*_ONE, ("dims", _INTS)]),
    ("Unsqueeze", [*_ONE, ("dim", I32)]),
    ("Select", [*_ONE, ("dim", I32), ("index", I32)]),
    ("Slice", [*_ONE, ("dim", I64), ("start", I64), ("end", I64), ("step", I64)]),
    ("PixelShuffle", [*_ONE, ("upscale_factor", I32)]),
    (
        "SplitWithSizes",
        [("input1_id", I32), ("output_ids", _INTS), ("split_sizes", _INTS), ("dim", I32)],
    ),
    ("Cast", [*_ONE, ("dtype", I16)]),
    ("Conv2D", _CONV),
    ("DepthwiseConv2D", _CONV),
    *((kind, _TWO) for kind in ("Eq", "Ne", "Ge", "Gt", "Le", "Lt")),
    (
        "BatchNorm",
        [
            *_ids("input_id mean_id var_id weight_id bias_id"),
            ("momentum", F32),
            ("epsilon", F32),
            *_NORM_OUTPUTS,
        ],
    ),
    (
        "LayerNorm",
        [
            ("input1_id", I32),
            ("normalized_shape", _INTS),
            *_ids("weight_id bias_id"),
            ("eps", F32),
            *_NORM_OUTPUTS,
        ],
    ),
    ("MaxPool2DWithIndices", _POOL),
    ("AvgPool2D", _POOL),
    ("ConstantPadND", [*_ONE, ("pad", _INTS), ("value", F32)]),
    (
        "Arange",
        [("output_id", I32), ("start", F32), ("end", F32), ("step", F32), ("dtype", I16)],
    ),
    (
        "DequantizePerChannelGroup",
        [
            *_ONE,
            *_ids("scales_id zero_points_id quant_min quant_max"),
            ("dtype", I16),
            ("group_size", I32),
            ("output_dtype", I16),
        ],
    ),
)
NODE_KINDS = tuple(kind for kind, _ in _NODES)
FIELD_ORDER = {kind: tuple(name for name, _ in columns) for kind, columns in _NODES}
# ReLU shares the table of two-operand nodes; its second id is never written.
UNUSED = frozenset({("ReLU", "input2_id")})


def _node(kind: str, columns: list[tuple[str, Any]]) -> Spec[Any]:
    return spec(f"MPS{kind}", partial(_make, kind), *columns)


def _tag(operation: Operation) -> int:
    return NODE_KINDS.index(operation.kind) + 1


_UNION = Union("MPSNodeUnion", (None, *(_node(kind, columns) for kind, columns in _NODES)), _tag)
_MIN_MAX = spec("MPSMinMax", MinMax, ("min_value", F32), ("max_value", F32))
_NODE = spec("MPSNode", Node, ("mpsnode_union", _UNION), ("min_max", _MIN_MAX))
_BUFFER = spec("Buffer", Buffer, ("storage", Blob(align=16)))


def _graph(size: Any) -> Spec[MPSGraph]:  # noqa: ANN401 - a scalar type
    tensor = spec(
        "MPSTensor",
        Tensor,
        ("datatype", I16),
        ("num_dims", I32),
        ("dims", Vec(I32)),
        ("constant_buffer_size", size),
        ("constant_buffer", _BUFFER),
        ("segment_offset", U64),
    )
    segment = spec("DataSegment", DataSegment, ("offset", U64), ("size", U64))
    return spec(
        "MPSGraph",
        MPSGraph,
        ("version", Text(), None),
        ("mps_nodes", Vec(_NODE)),
        ("mps_values", Vec(tensor)),
        ("input_ids", _INTS),
        ("output_ids", _INTS),
        ("constant_ids", _INTS),
        ("graph_type", I16),
        ("constant_segment", segment),
    )


GRAPH, OLD_GRAPH = _graph(U64), _graph(I32)
