"""The tables of a ``.pte`` program, identifier ET12, field for field.

Source: program.fbs of release 1.5 and all before; names are those of the schema.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Annotated, TypeAlias

from schema.flatbuf.declare import (
    UnionName,
    f64,
    i8,
    i32,
    i64,
    named,
    table_of,
    u8,
    u32,
    u64,
)
from schema.flatbuf.spec import Blob, UnknownMember


@dataclass(frozen=True, slots=True)
class Null:
    """The value None."""


@dataclass(frozen=True, slots=True)
class Int:
    """An integer, also a scalar type, layout or memory format argument."""

    int_val: i64 = 0


@dataclass(frozen=True, slots=True)
class Bool:
    """A bool."""

    bool_val: bool = False


@dataclass(frozen=True, slots=True)
class Double:
    """A floating point value."""

    double_val: f64 = 0.0


@dataclass(frozen=True, slots=True)
class String:
    """A string argument."""

    string_val: str = ""


@dataclass(frozen=True, slots=True)
class AllocationDetails:
    """The place of a tensor in memory: planned buffer, and byte offset in two halves."""

    memory_id: u32
    memory_offset_low: u32
    memory_offset_high: u32

    @property
    def offset(self) -> int:
        """Return the byte offset inside the planned buffer."""
        return self.memory_offset_low | self.memory_offset_high << 32


@dataclass(frozen=True, slots=True)
class ExtraTensorInfo:
    """Name and location of a tensor whose data has an identity outside the plan.

    Attributes:
        location: 0 in a segment of this file, 1 in an external data file
    """

    mutable_data_segments_idx: u64
    fully_qualified_name: str
    location: i8
    device_type: i8
    device_index: i8


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor value; where its bytes are follows from data_buffer_idx and allocation_info."""

    scalar_type: i8
    storage_offset: i32
    sizes: tuple[i32, ...]
    dim_order: tuple[u8, ...]
    requires_grad: bool
    data_buffer_idx: u32
    allocation_info: AllocationDetails | None
    layout: i8
    shape_dynamism: i8
    extra_tensor_info: ExtraTensorInfo | None


@dataclass(frozen=True, slots=True)
class IntList:
    """A list of integers, stored as indices of Int values."""

    items: tuple[i64, ...]


@dataclass(frozen=True, slots=True)
class DoubleList:
    """A list of floating point values."""

    items: tuple[f64, ...]


@dataclass(frozen=True, slots=True)
class BoolList:
    """A list of bools."""

    items: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class TensorList:
    """A list of tensors, stored as value indices."""

    items: tuple[i32, ...]


@dataclass(frozen=True, slots=True)
class OptionalTensorList:
    """A list of tensors or None, stored as value indices; -1 is None."""

    items: tuple[i32, ...]


KernelType: TypeAlias = Annotated[
    Null
    | Int
    | Bool
    | Double
    | Tensor
    | String
    | IntList
    | DoubleList
    | BoolList
    | TensorList
    | OptionalTensorList
    | UnknownMember
    | None,
    UnionName("KernelTypes"),
]


@dataclass(frozen=True, slots=True)
class EValue:
    """One entry of a plan's value table."""

    val: KernelType


@dataclass(frozen=True, slots=True)
class KernelCall:
    """Calls operators[op_index] with value indices, return values last."""

    op_index: i32
    args: tuple[i32, ...]


@dataclass(frozen=True, slots=True)
class DelegateCall:
    """Calls delegates[delegate_index] with value indices, inputs first."""

    delegate_index: i32
    args: tuple[i32, ...]


@dataclass(frozen=True, slots=True)
class MoveCall:
    """Copies one value handle over another."""

    move_from: i32
    move_to: i32


@dataclass(frozen=True, slots=True)
class JumpFalseCall:
    """Jumps to an absolute instruction when the condition value is false."""

    cond_value_index: i32
    destination_instruction: i32


@dataclass(frozen=True, slots=True)
class FreeCall:
    """Drops the data of an unbounded tensor."""

    value_index: i32


InstructionArgs: TypeAlias = Annotated[
    KernelCall | DelegateCall | MoveCall | JumpFalseCall | FreeCall | UnknownMember | None,
    UnionName("InstructionArguments"),
]


@dataclass(frozen=True, slots=True)
class Instruction:
    """One entry of a chain."""

    instr_args: InstructionArgs


@dataclass(frozen=True, slots=True)
class Frame:
    """One line of a recorded stack trace."""

    filename: str
    lineno: i32
    name: str
    context: str


@dataclass(frozen=True, slots=True)
class FrameList:
    """The stack trace of one instruction."""

    items: tuple[Frame, ...]


@dataclass(frozen=True, slots=True)
class Chain:
    """A list of instructions; stacktrace, if present, has one entry per instruction."""

    inputs: tuple[i32, ...]
    outputs: tuple[i32, ...]
    instructions: tuple[Instruction, ...]
    stacktrace: tuple[FrameList, ...] | None


@dataclass(frozen=True, slots=True)
class Operator:
    """Name ``ns::op`` and overload, empty for the default overload."""

    name: str
    overload: str

    @property
    def full_name(self) -> str:
        """Return ``ns::op.overload``, the key of the runtime's kernel registry.

        Calls of an operator share one string, which tables of all instructions hold.
        """
        return sys.intern(f"{self.name}.{self.overload}" if self.overload else self.name)


@dataclass(frozen=True, slots=True)
class BackendDelegateDataReference:
    """Where a delegate's bytes are: location 0 inline, 1 in a segment."""

    location: i8
    index: u32


@dataclass(frozen=True, slots=True)
class CompileSpec:
    """A key and raw bytes for a backend."""

    key: str
    value: memoryview


@dataclass(frozen=True, slots=True)
class BackendDelegate:
    """One partition: backend id, reference to its bytes, compile specs."""

    id: str
    processed: BackendDelegateDataReference | None
    compile_specs: tuple[CompileSpec, ...]


@dataclass(frozen=True, slots=True)
class ContainerMetadata:
    """Encoded pytree structure of inputs and outputs."""

    encoded_inp_str: str
    encoded_out_str: str


@dataclass(frozen=True, slots=True)
class NonConstBufferDevice:
    """The device of one planned buffer."""

    buffer_idx: i32
    device_type: i8
    device_index: i8


@dataclass(frozen=True, slots=True)
class ExecutionPlan:
    """One method: values, instructions, operators, delegates and planned buffer sizes.

    Attributes:
        non_const_buffer_sizes: bytes of each planned buffer; entry 0 is reserved
    """

    name: str
    container_meta_type: ContainerMetadata | None
    values: tuple[EValue, ...]
    inputs: tuple[i32, ...]
    outputs: tuple[i32, ...]
    chains: tuple[Chain, ...]
    operators: tuple[Operator, ...]
    delegates: tuple[BackendDelegate, ...]
    non_const_buffer_sizes: tuple[i64, ...]
    non_const_buffer_device: tuple[NonConstBufferDevice, ...] | None


@dataclass(frozen=True, slots=True)
class Buffer:
    """A legacy constant stored inside the flatbuffer."""

    storage: Annotated[memoryview, Blob(16)]


@dataclass(frozen=True, slots=True)
class BackendDelegateInlineData:
    """Delegate bytes stored inside the flatbuffer."""

    data: Annotated[memoryview, Blob(16)]


@dataclass(frozen=True, slots=True)
class DataSegment:
    """Place of a segment, relative to the segment base."""

    offset: u64
    size: u64


@dataclass(frozen=True, slots=True)
class SubsegmentOffsets:
    """Starts of the entries inside one segment; entry 0 is a placeholder."""

    segment_index: u32
    offsets: tuple[u64, ...]


@dataclass(frozen=True, slots=True)
class NamedData:
    """A key and the segment that holds its bytes."""

    key: str
    segment_index: u32


@named("Program")
@dataclass(frozen=True, slots=True)
class ProgramTable:
    """The root table."""

    version: u32
    execution_plan: tuple[ExecutionPlan, ...]
    constant_buffer: tuple[Buffer, ...] | None
    backend_delegate_data: tuple[BackendDelegateInlineData, ...] | None
    segments: tuple[DataSegment, ...] | None = field(compare=False)  # places, not content
    constant_segment: SubsegmentOffsets | None
    mutable_data_segments: tuple[SubsegmentOffsets, ...] | None
    named_data: tuple[NamedData, ...] | None


PROGRAM = table_of(ProgramTable)


@dataclass(frozen=True, slots=True)
class ExtendedHeader:
    """The optional header after the file identifier.

    Attributes:
        length: 24 in files before release 1.0, 32 since
        program_size: bytes of the flatbuffer region, counted from byte 0
        segment_base_offset: position of the segment area, or 0
        segment_data_size: bytes of the segment area, 0 if not stated
    """

    length: int
    program_size: int
    segment_base_offset: int
    segment_data_size: int = field(default=0)
