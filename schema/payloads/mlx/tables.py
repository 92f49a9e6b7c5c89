"""Tables of the MLX payload around its operations.

Source: backends/mlx/serialization/schema.fbs
"""

from __future__ import annotations

from dataclasses import dataclass

from schema.flatbuf.spec import I8, I32, U8, U32, Text, UnknownMember, Vec, spec
from schema.payloads.mlx.operations import UNION, Operation

TENSOR_SLOT = 0
SLOT_KINDS = ("tensor", "int", "float", "bool")


@dataclass(frozen=True, slots=True)
class Instruction:
    """A wrapper of an operation."""

    op: Operation | UnknownMember | None = None


@dataclass(frozen=True, slots=True)
class Chain:
    """Operations in order."""

    instructions: tuple[Instruction, ...] = ()


@dataclass(frozen=True, slots=True)
class SlotVariant:
    """A tensor or value slot."""

    idx: int = 0
    slot_type: int = TENSOR_SLOT


@dataclass(frozen=True, slots=True)
class NamedSlot:
    """The slot of a constant or mutable buffer, by its key."""

    name: str = ""
    slot: SlotVariant | None = None


@dataclass(frozen=True, slots=True)
class ShapeDim:
    """A size; -1 with bounds when it is dynamic."""

    value: int = -1
    min_value: int = 0
    max_value: int = -1


@dataclass(frozen=True, slots=True)
class MlxTensor:
    """Metadata of a tensor slot."""

    shape: tuple[ShapeDim, ...] = ()
    scalar_type: int = 0
    dim_order: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class MLXGraph:
    """The root table.

    Tensor slots are numbered through: constants, inputs, outputs, mutable buffers, temporaries.
    """

    version: str = ""
    num_constant_tensors: int = 0
    num_input_tensors: int = 0
    num_output_tensors: int = 0
    num_mutable_buffer_tensors: int = 0
    num_temp_tensors: int = 0
    num_values: int = 0
    instruction_chains: tuple[Chain, ...] = ()
    main_chain_idx: int = 0
    init_chain_idx: int = -1
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
_SLOT = spec("SlotVariant", SlotVariant, ("idx", U32), ("slot_type", I8))
_SLOTS = Vec(_SLOT)
_INSTRUCTION = spec("Instruction", Instruction, ("op", UNION))
_CHAIN = spec("InstructionChain", Chain, ("instructions", Vec(_INSTRUCTION)))
_DIM = spec("ShapeDim", ShapeDim, ("value", I32, -1), ("min_value", I32), ("max_value", I32, -1))
_TENSOR = spec(
    "TensorMeta", MlxTensor, ("shape", Vec(_DIM)), ("scalar_type", I8), ("dim_order", Vec(U8))
)
_NAMED = spec("NamedSlot", NamedSlot, ("name", Text()), ("slot", _SLOT))
GRAPH = spec(
    "MLXGraph",
    MLXGraph,
    ("version", Text()),
    *((f"num_{name}", U32) for name in COUNTS),
    ("instruction_chains", Vec(_CHAIN)),
    ("main_chain_idx", U32),
    ("init_chain_idx", I32, -1),
    ("input_map", _SLOTS),
    ("output_map", _SLOTS),
    ("mutable_buffer_map", _SLOTS),
    ("named_slots", Vec(_NAMED)),
    ("tensor_meta", Vec(_TENSOR)),
)
