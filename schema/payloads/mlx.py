"""MLX payloads: header, slot counts, the order of operations.

The operands of operations are left out: their tables still change between releases, while the
numbers of the operations are only ever appended to. Source: backends/mlx/serialization/schema.fbs
"""

from __future__ import annotations

import struct
from collections import Counter
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from schema.errors import FormatError, Issue, Severity
from schema.flatbuf.spec import I8, I32, U8, U32, Spec, Text, Union, UnknownMember, Vec, spec
from schema.graph import Dim, Graph, GraphNode, GraphValue, NodeKind, TensorMeta
from schema.payloads.model import Constant, Part, Payload, Source
from schema.payloads.named import missing_constants, named_constant
from schema.payloads.parts import cover, flatbuffer_claims
from schema.payloads.reading import PayloadReader, span, unpack
from schema.scalar_type import scalar_type

MAGIC = b"MLX0"
_HEADER = struct.Struct("<I4sQQ")
_WHERE = "MLX payload"
_OPERATIONS = (
    "Noop IdCopy Addmm ItemInt ExpandDims Tile TakeAlongAxis Take RMSNorm LayerNorm Rope Sdpa Add "
    "AddInt SubtractInt MultiplyInt FloorDivideInt SymSize Multiply Divide Subtract Conv1D Conv2D "
    "Conv3D Gelu ARange Silu Sigmoid Tanh Squeeze Split Rsqrt Maximum Minimum Log Softmax "
    "BroadcastTo Pad Where Reshape Transpose AsStrided Contiguous Gather Slice AsType Concatenate "
    "Full FullLike Argmax SliceUpdate IndexCopy Dequantize Less LessEqual Greater GreaterEqual "
    "Equal NotEqual LogicalNot LogicalAnd LogicalOr Tri Tril Triu Floor Ceil Square Exp Sin Cos "
    "Tan Arcsin Arccos Arctan Sinh Cosh Arcsinh Arccosh Arctanh Log2 Log10 Log1p Erf Expm1 Round "
    "Reciprocal Sqrt Abs Neg Atan2 LogAddExp FloorDivide Power LogSumExp Sum Mean Var Std Prod "
    "Max Min Argmin Median ModInt Remainder ConvTranspose1D ConvTranspose2D ConvTranspose3D Clip "
    "Cumsum Stack Sign Any All Repeat Sort Argsort Partition ArgPartition QuantizedMatmul "
    "ScatterAdd GatherMm GatherQmm Scan MetalKernel BitwiseInvert Roll BitwiseAnd BitwiseOr "
    "BitwiseXor If RandomBits UpdateAndAttend Trunc Flip"
)
_MANY_SLOTS = 64  # whatever fields an operation has, none is read


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation by name."""

    kind: str


def _operation(kind: str) -> Spec[Operation]:
    return Spec(f"{kind}Node", lambda: Operation(kind), (), _MANY_SLOTS)


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
    slot_type: int = 0


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
    """The root table."""

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
    tensor_meta: tuple[MlxTensor | None, ...] = ()


_COUNTS = ("constant_tensors", "input_tensors", "output_tensors", "mutable_buffer_tensors")
_SLOT = spec("SlotVariant", SlotVariant, ("idx", U32), ("slot_type", I8))
_SLOTS = Vec(_SLOT)
_UNION = Union("OpNode", (None, *map(_operation, _OPERATIONS.split())))
_INSTRUCTION = spec("Instruction", Instruction, ("op", _UNION))
_DIM = spec("ShapeDim", ShapeDim, ("value", I32, -1), ("min_value", I32), ("max_value", I32, -1))
_TENSOR = spec(
    "TensorMeta", MlxTensor, ("shape", Vec(_DIM)), ("scalar_type", I8), ("dim_order", Vec(U8))
)
GRAPH = spec(
    "MLXGraph",
    MLXGraph,
    ("version", Text()),
    *((f"num_{name}", U32) for name in (*_COUNTS, "temp_tensors", "values")),
    (
        "instruction_chains",
        Vec(spec("InstructionChain", Chain, ("instructions", Vec(_INSTRUCTION)))),
    ),
    ("main_chain_idx", U32),
    ("init_chain_idx", I32, -1),
    ("input_map", _SLOTS),
    ("output_map", _SLOTS),
    ("mutable_buffer_map", _SLOTS),
    ("named_slots", Vec(spec("NamedSlot", NamedSlot, ("name", Text()), ("slot", _SLOT)))),
    ("tensor_meta", Vec(_TENSOR)),
)


def decode_payload(source: Source) -> Payload:
    """Decode an MLX payload.

    Raises: FormatError if it is none or its tables cannot be read
    """
    data = source.data
    first, magic, offset, size = unpack(_HEADER, data, 0, "header")
    if first or magic != MAGIC:
        raise FormatError("the mark MLX0", repr(magic)[1:], offset=4)
    span(data, offset if size else 0, size, "header.data_segment")
    reader = PayloadReader(data, offset if size else None, where=_WHERE)
    graph = reader.root(GRAPH, _HEADER.size)
    constants = tuple(
        named_constant(slot.name, source.named_data) for slot in graph.named_slots if slot.name
    )
    issues = [*reader.issues, *missing_constants(constants, _WHERE)]
    issues.append(Issue(Severity.INFO, _WHERE, "operations are listed without their operands"))
    owner = (r"MLXGraph\.instruction_chains\[(\d+)\]\.instructions\[(\d+)\]", _owner(graph))
    claims = flatbuffer_claims(reader, GRAPH, _HEADER.size, (owner,))
    claims += [
        Part("header", "header", 0, _HEADER.size),
        Part("data segment", "section", offset, size),
    ]
    return Payload(
        source.backend_id,
        "MLX0",
        len(data),
        _graph(graph),
        cover(data, claims),
        constants,
        summary=MappingProxyType(_summary(graph, constants)),
        issues=tuple(issues),
    )


def _owner(graph: MLXGraph) -> Any:  # noqa: ANN401 - a part owner
    def owner(found: Any, _kind: str) -> tuple[str, str]:  # noqa: ANN401 - a match
        chain, index = int(found[1]), int(found[2])
        return _node_name(chain, index, graph.instruction_chains[chain].instructions[index]), "node"

    return owner


def _kind(instruction: Instruction) -> str:
    op = instruction.op
    return op.kind if isinstance(op, Operation) else f"Unknown({op.tag})" if op else "None"


def _node_name(chain: int, index: int, instruction: Instruction) -> str:
    return f"{_kind(instruction)}_{index}" if not chain else f"{_kind(instruction)}_{chain}.{index}"


def _graph(graph: MLXGraph) -> Graph:
    values = {
        f"tensor_{index}": GraphValue(f"tensor_{index}", _meta(tensor))
        for index, tensor in enumerate(graph.tensor_meta)
        if tensor is not None
    }
    chains = [
        Graph(
            f"chain_{number}",
            tuple(
                GraphNode(_node_name(number, index, item), NodeKind.CALL, _kind(item))
                for index, item in enumerate(chain.instructions)
            ),
            values if number == graph.main_chain_idx else {},
            attributes=MappingProxyType({"edges": "unknown"}),
        )
        for number, chain in enumerate(graph.instruction_chains)
    ]
    if graph.main_chain_idx >= len(chains):
        return Graph("MLX", (), values)
    main = chains.pop(graph.main_chain_idx)
    others = {chain.name: chain for chain in chains}
    return Graph("MLX", main.nodes, main.values, subgraphs=others, attributes=main.attributes)


def _meta(tensor: MlxTensor) -> TensorMeta:
    sizes: tuple[Dim, ...] = tuple(
        dim.value if dim.value >= 0 else f"{dim.min_value}..{dim.max_value}" for dim in tensor.shape
    )
    name = scalar_type(tensor.scalar_type).name
    return TensorMeta(tensor.scalar_type, sizes, tensor.dim_order, name)


def _summary(graph: MLXGraph, constants: tuple[Constant, ...]) -> dict[str, object]:
    kinds = Counter(
        _kind(item) for chain in graph.instruction_chains for item in chain.instructions
    )
    facts: dict[str, object] = {"schema version": graph.version}
    for name in (*_COUNTS, "temp_tensors", "values"):
        facts[name.replace("_", " ")] = getattr(graph, f"num_{name}")
    facts["chains"] = len(graph.instruction_chains)
    facts["instructions"] = sum(kinds.values())
    facts["named constants and buffers"] = len(constants)
    return facts
