"""An XNNPACK payload as dataclasses: one field for every field of its flatbuffer.

Source: backends/xnnpack/serialization/{schema,runtime_schema}.fbs
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, TypeAlias

from schema.errors import Issue
from schema.flatbuf.declare import UnionName, f32, i16, i32, named, table_of, u16, u32, u64
from schema.flatbuf.spec import Blob, UnknownMember
from schema.payloads.model import EMPTY_BYTES
from schema.payloads.xnnpack.nodes import NODE_UNION, NodeForm

MAGIC = b"XH00"
IDENTIFIERS = (b"XN01", b"XN00")
NO_VALUE = 0xFFFFFFFF  # an omitted operand; also "not external"
NAMED_OFFSET = 0xFFFFFFFFFFFFFFFF  # the constant is in named data
INSERTED_HANDLE = 65535  # the compiler added the node; no operator of the program is its origin
EXTERNAL_INPUT, EXTERNAL_OUTPUT = 1, 2  # bits of TensorValue.flags

# code in the file -> name, scalar type of the raw elements (-1: packed or none)
DATATYPES: dict[int, tuple[str, int]] = {
    0: ("invalid", -1),
    1: ("float32", 6),
    2: ("float16", 5),
    3: ("qint8", 1),
    4: ("quint8", 0),
    5: ("qint32", 3),
    6: ("qcint8", 1),
    7: ("qcint32", 3),
    8: ("qcint4", -1),
    9: ("qdint8", 1),
    10: ("qbint4", -1),
    11: ("qpint8", -1),
    12: ("int32", 3),
    13: ("pfp32", -1),
    14: ("bfloat16", 15),
}

NODE_FLAGS = {
    0x1: "transpose_weights",
    0x2: "transpose_a",
    0x4: "same_padding",
    0x8: "align_corners",
    0x40: "keep_dims",
    0x80: "fp32_static_biases",
    0x1000: "no_broadcast",
}


@dataclass(frozen=True, slots=True)
class OutputMinMax:
    """Bounds applied to the output: a fused activation, or those of Clamp."""

    output_min: f32 = 0.0
    output_max: f32 = 0.0


@dataclass(frozen=True, slots=True)
class XNode:
    """A node with its join key."""

    xnode_union: Annotated[NodeForm | UnknownMember | None, NODE_UNION]
    debug_handle: u32 = 0
    output_min_max: OutputMinMax | None = None


@dataclass(frozen=True, slots=True)
class PerChannelQuant:
    """One scale a channel, inline or in constant ``scale_buffer_idx``."""

    scale: tuple[f32, ...] = ()
    channel_dim: i32 = 0
    scale_buffer_idx: u32 = 0
    num_scales: u32 = 0


@dataclass(frozen=True, slots=True)
class PerTensorQuant:
    """One scale and zero point."""

    scale: f32 = 0.0
    zero_point: i32 = 0


@dataclass(frozen=True, slots=True)
class PerTokenDynamicQuant:
    """Parameters computed at run time, a row each."""

    num_nonbatch_dims: i32 = 0


@dataclass(frozen=True, slots=True)
class PerChannelGroupQuant:
    """One scale a group of input channels; stored as bf16 since 0.4."""

    scale: tuple[f32, ...] = ()
    channel_dim: i32 = 0
    group_size: i32 = 0
    scale_bf16: tuple[u16, ...] = ()
    scale_buffer_idx: u32 = 0
    num_scales: u32 = 0


QuantParams: TypeAlias = (
    PerChannelQuant | PerTensorQuant | PerTokenDynamicQuant | PerChannelGroupQuant
)


@named("XNNTensorValue")
@dataclass(frozen=True, slots=True)
class TensorValue:
    """A tensor; dims are in memory order.

    Attributes:
        datatype: code in ``DATATYPES``
        num_dims: rank, repeated
        dims: sizes in memory order
        constant_buffer_idx: index of its constant, 0 for none
        external_id: position in the delegate call's arguments, NO_VALUE for inner values
        flags: 1 external input, 2 external output
        id_out: id by which nodes refer to it
        dq_datatype: XN00 only: dtype it is dynamically quantized to
    """

    datatype: i16 = 0
    num_dims: u32 = 0
    dims: tuple[u32, ...] = ()
    constant_buffer_idx: u32 = 0
    external_id: u32 = 0
    flags: u32 = 0
    id_out: u32 = 0
    dq_datatype: i16 = 0


@named("XNNQuantizedTensorValue")
@dataclass(frozen=True, slots=True)
class QuantizedTensorValue:
    """A tensor with quantization parameters."""

    tensor_value: TensorValue | None = None
    quant_params: Annotated[QuantParams | UnknownMember | None, UnionName("XNNQuantParams")] = None


@dataclass(frozen=True, slots=True)
class XValue:
    """A plain or quantized tensor."""

    xvalue_union: Annotated[
        TensorValue | QuantizedTensorValue | UnknownMember | None, UnionName("XValueUnion")
    ]

    @property
    def tensor(self) -> TensorValue | None:
        """Return the tensor inside, None if it is of a newer schema."""
        inner = self.xvalue_union
        if isinstance(inner, QuantizedTensorValue):
            return inner.tensor_value
        return inner if isinstance(inner, TensorValue) else None

    @property
    def quantization(self) -> QuantParams | None:
        """Return its parameters, None if it is not quantized."""
        inner = self.xvalue_union
        params = inner.quant_params if isinstance(inner, QuantizedTensorValue) else None
        return None if isinstance(params, UnknownMember) else params


@dataclass(frozen=True, slots=True)
class Buffer:
    """A constant inside the flatbuffer (before 0.2)."""

    storage: Annotated[memoryview, Blob(16)] = EMPTY_BYTES


@dataclass(frozen=True, slots=True)
class ConstantDataOffset:
    """Location of a constant: the constant area, or named data if it has a key.

    The runtime tests whether the key is present, not whether it is empty, so absent stays None.
    """

    offset: u64 = 0
    size: u64 = 0
    named_key: str | None = None


@named("XNNGraph")
@dataclass(frozen=True, slots=True)
class XnnGraphTable:
    """The root table; None for an absent vector."""

    version: str | None = None
    xnodes: tuple[XNode, ...] = ()
    xvalues: tuple[XValue, ...] = ()
    num_externs: u32 = 0
    input_ids: tuple[u32, ...] = ()
    output_ids: tuple[u32, ...] = ()
    constant_buffer: tuple[Buffer, ...] | None = None
    mem_buffer_sizes: tuple[u32, ...] | None = None
    constant_data: tuple[ConstantDataOffset, ...] | None = None


GRAPH = table_of(XnnGraphTable)


@dataclass(frozen=True, slots=True)
class XNNGraph:
    """An XNNPACK payload.

    Attributes:
        table: the root table
        constants: the constant area after the flatbuffer, empty if weights are named
        identifier: ``XN01``, or ``XN00`` before 0.2
        has_header: whether the payload begins with the XH00 header
        issues: inconsistencies that did not prevent reading
    """

    table: XnnGraphTable
    constants: memoryview = EMPTY_BYTES
    identifier: str = "XN01"
    has_header: bool = True
    issues: tuple[Issue, ...] = field(default=(), compare=False)
