"""Tables of the MLX payload around its operations.

Source: backends/mlx/serialization/schema.fbs
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from schema.flatbuf.declare import i8, i32, named, table_of, u8, u32
from schema.flatbuf.spec import UnknownMember
from schema.payloads.mlx.operations import UNION, MlxOperation

TENSOR_SLOT = 0
SLOT_KINDS = ("tensor", "int", "float", "bool")


@dataclass(frozen=True, slots=True)
class Instruction:
    """A wrapper of an operation."""

    op: Annotated[MlxOperation | UnknownMember | None, UNION] = None


@named("InstructionChain")
@dataclass(frozen=True, slots=True)
class Chain:
    """Operations in order."""

    instructions: tuple[Instruction, ...] = ()


@dataclass(frozen=True, slots=True)
class SlotVariant:
    """A tensor or value slot."""

    idx: u32 = 0
    slot_type: i8 = TENSOR_SLOT


@dataclass(frozen=True, slots=True)
class NamedSlot:
    """The slot of a constant or mutable buffer, by its key."""

    name: str = ""
    slot: SlotVariant | None = None


@dataclass(frozen=True, slots=True)
class ShapeDim:
    """A size; -1 with bounds when it is dynamic."""

    value: i32 = -1
    min_value: i32 = 0
    max_value: i32 = -1


@named("TensorMeta")
@dataclass(frozen=True, slots=True)
class MlxTensor:
    """Metadata of a tensor slot."""

    shape: tuple[ShapeDim, ...] = ()
    scalar_type: i8 = 0
    dim_order: tuple[u8, ...] = ()


@dataclass(frozen=True, slots=True)
class MLXGraph:
    """The root table.

    Tensor slots have consecutive indices: constants, inputs, outputs, mutable buffers, temporaries.
    """

    version: str = ""
    num_constant_tensors: u32 = 0
    num_input_tensors: u32 = 0
    num_output_tensors: u32 = 0
    num_mutable_buffer_tensors: u32 = 0
    num_temp_tensors: u32 = 0
    num_values: u32 = 0
    instruction_chains: tuple[Chain, ...] = ()
    main_chain_idx: u32 = 0
    init_chain_idx: i32 = -1
    input_map: tuple[SlotVariant, ...] = ()
    output_map: tuple[SlotVariant, ...] = ()
    mutable_buffer_map: tuple[SlotVariant, ...] = ()
    named_slots: tuple[NamedSlot, ...] = ()
    tensor_meta: tuple[MlxTensor, ...] = ()


COUNTS = (
    "constant_tensors",
    "input_tensors",
    "output_tensors",
    "mutable_buffer_tensors",
    "temp_tensors",
    "values",
)
GRAPH = table_of(MLXGraph)
