"""An XNNPACK payload as dataclasses: one field for every field of its flatbuffer.

Source: backends/xnnpack/serialization/{schema,runtime_schema}.fbs
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from schema.errors import Issue
from schema.flatbuf.spec import UnknownMember
from schema.payloads.model import EMPTY_BYTES
from schema.payloads.xnnpack.nodes import NodeForm

NO_VALUE = 0xFFFFFFFF  # an operand that is left out; also "not external"
NAMED_OFFSET = 0xFFFFFFFFFFFFFFFF  # the constant is in named data
INSERTED_HANDLE = 65535  # the compiler added the node, no operator of the program made it
EXTERNAL_INPUT, EXTERNAL_OUTPUT = 1, 2  # bits of TensorValue.flags


@dataclass(frozen=True, slots=True)
class OutputMinMax:
    """Bounds applied to the output: a fused activation, or those of Clamp."""

    output_min: float = 0.0
    output_max: float = 0.0


@dataclass(frozen=True, slots=True)
class XNode:
    """A node with its join key."""

    xnode_union: NodeForm | UnknownMember | None
    debug_handle: int = 0
    output_min_max: OutputMinMax | None = None


@dataclass(frozen=True, slots=True)
class PerChannelQuant:
    """One scale a channel, inline or in constant ``scale_buffer_idx``."""

    scale: tuple[float, ...] = ()
    channel_dim: int = 0
    scale_buffer_idx: int = 0
    num_scales: int = 0


@dataclass(frozen=True, slots=True)
class PerTensorQuant:
    """One scale and zero point."""

    scale: float = 0.0
    zero_point: int = 0


@dataclass(frozen=True, slots=True)
class PerTokenDynamicQuant:
    """Parameters computed at run time, a row each."""

    num_nonbatch_dims: int = 0


@dataclass(frozen=True, slots=True)
class PerChannelGroupQuant:
    """One scale a group of input channels; stored as bf16 since 0.4."""

    scale: tuple[float, ...] = ()
    channel_dim: int = 0
    group_size: int = 0
    scale_bf16: tuple[int, ...] = ()
    scale_buffer_idx: int = 0
    num_scales: int = 0


QuantParams: TypeAlias = (
    PerChannelQuant | PerTensorQuant | PerTokenDynamicQuant | PerChannelGroupQuant
)


@dataclass(frozen=True, slots=True)
class TensorValue:
    """A tensor; dims are in memory order.

    Attributes:
        datatype: number in ``tables.DATATYPES``
        num_dims: rank, repeated
        dims: sizes in memory order
        constant_buffer_idx: index of its constant, 0 for none
        external_id: position in the delegate call's arguments, NO_VALUE for inner values
        flags: 1 external input, 2 external output
        id_out: id by which nodes refer to it
        dq_datatype: XN00 only: type it is dynamically quantised to
    """

    datatype: int = 0
    num_dims: int = 0
    dims: tuple[int, ...] = ()
    constant_buffer_idx: int = 0
    external_id: int = 0
    flags: int = 0
    id_out: int = 0
    dq_datatype: int = 0


@dataclass(frozen=True, slots=True)
class QuantizedTensorValue:
    """A tensor with quantisation parameters."""

    tensor_value: TensorValue | None = None
    quant_params: QuantParams | UnknownMember | None = None


@dataclass(frozen=True, slots=True)
class XValue:
    """A value of either sort."""

    xvalue_union: TensorValue | QuantizedTensorValue | UnknownMember | None

    @property
    def tensor(self) -> TensorValue | None:
        """Return the tensor inside, None for a value of a newer schema."""
        inner = self.xvalue_union
        if isinstance(inner, QuantizedTensorValue):
            return inner.tensor_value
        return inner if isinstance(inner, TensorValue) else None

    @property
    def quantisation(self) -> QuantParams | None:
        """Return its parameters, None for plain tensors."""
        inner = self.xvalue_union
        params = inner.quant_params if isinstance(inner, QuantizedTensorValue) else None
        return None if isinstance(params, UnknownMember) else params


@dataclass(frozen=True, slots=True)
class Buffer:
    """A constant inside the flatbuffer (before 0.2)."""

    storage: memoryview = EMPTY_BYTES


@dataclass(frozen=True, slots=True)
class ConstantDataOffset:
    """Where a constant is: in the constant area, or in named data where there is a key.

    The runtime tests whether the key is present, not whether it is empty, so absent stays None.
    """

    offset: int = 0
    size: int = 0
    named_key: str | None = None


@dataclass(frozen=True, slots=True)
class GraphTable:
    """The root table; None stands for a vector that is absent."""

    version: str | None = None
    xnodes: tuple[XNode, ...] = ()
    xvalues: tuple[XValue, ...] = ()
    num_externs: int = 0
    input_ids: tuple[int, ...] = ()
    output_ids: tuple[int, ...] = ()
    constant_buffer: tuple[Buffer, ...] | None = None
    mem_buffer_sizes: tuple[int, ...] | None = None
    constant_data: tuple[ConstantDataOffset, ...] | None = None


@dataclass(frozen=True, slots=True)
class XNNGraph:
    """An XNNPACK payload.

    Attributes:
        table: the root table
        constants: the constant area behind the flatbuffer, empty where weights are named
        identifier: ``XN01``, or ``XN00`` before 0.2
        has_header: whether the payload begins with the XH00 header
        issues: odd but readable things
    """

    table: GraphTable
    constants: memoryview = EMPTY_BYTES
    identifier: str = "XN01"
    has_header: bool = True
    issues: tuple[Issue, ...] = field(default=(), compare=False)
