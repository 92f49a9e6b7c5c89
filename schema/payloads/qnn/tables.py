"""Tables of QCIR, the graph that early releases left to the device to compile.

Source: backends/qualcomm/aot/ir/qcir.fbs of releases 0.6 and 0.7
"""

from __future__ import annotations

from dataclasses import dataclass

from schema.flatbuf.spec import F32, I8, I32, U8, U32, U64, Text, Vec, spec

WRITE, READ, READWRITE, NATIVE, STATIC = range(5)
# name, scalar type, -1 where torch has no equal type; fixed-point numbers are quantised integers
DATATYPES: tuple[tuple[str, int], ...] = (
    ("int8", 1),
    ("int16", 2),
    ("int32", 3),
    ("int64", 4),
    ("uint8", 0),
    ("uint16", 27),
    ("uint32", 28),
    ("uint64", 29),
    ("float16", 5),
    ("float32", 6),
    ("float64", 7),
    ("sfixed4", -1),
    ("sfixed8", 1),
    ("sfixed16", 2),
    ("sfixed32", 3),
    ("ufixed4", -1),
    ("ufixed8", 0),
    ("ufixed16", 27),
    ("ufixed32", 28),
    ("bool", 11),
    ("string", -1),
    ("undefined", -1),
)
SCHEMES = (
    "per_tensor",
    "per_channel",
    "per_tensor",
    "per_channel",
    "per_group",
)


@dataclass(frozen=True, slots=True)
class QuantizeParam:
    """How a tensor is quantised; a pair of scale and offset is one 64-bit number of ``data``."""

    define: int = 0
    type: int = 0
    bitwidth: int = 0
    axis: int = 0
    scales: tuple[float, ...] = ()
    offsets: tuple[int, ...] = ()
    data: tuple[int, ...] = ()
    num_blocks_per_axis: int = 0
    block_scale_storage_type: int = 0
    block_scale: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor; offset and size are those of its data behind the flatbuffer."""

    name: str = ""
    shape: tuple[int, ...] = ()
    dynamic_dims: tuple[int, ...] = ()
    type: int = WRITE
    dtype: int = 0
    qparam: QuantizeParam | None = None
    size: int = 0
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Operator:
    """An operation; inputs, outputs and parameters are tensors by their index."""

    name: str = ""
    package_name: str = ""
    type_name: str = ""
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()
    params: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class GraphTable:
    """One graph of a context."""

    name: str = ""
    nodes: tuple[Operator, ...] = ()
    tensors: tuple[Tensor, ...] = ()


@dataclass(frozen=True, slots=True)
class Context:
    """The root table."""

    graphs: tuple[GraphTable, ...] = ()


_QUANTIZE = spec(
    "QuantizeParam",
    QuantizeParam,
    ("define", I8),
    ("type", I8),
    ("bitwidth", U32),
    ("axis", I32),
    ("scales", Vec(F32)),
    ("offsets", Vec(I32)),
    ("data", Vec(U64)),
    ("num_blocks_per_axis", U32),
    ("block_scale_storage_type", I8),
    ("block_scale", Vec(U8)),
)
_TENSOR = spec(
    "Tensor",
    Tensor,
    ("name", Text()),
    ("shape", Vec(U32)),
    ("dynamic_dims", Vec(U8)),
    ("type", I8),
    ("dtype", I8),
    ("qparam", _QUANTIZE),
    ("size", U32),
    ("offset", U64),
)
_OPERATOR = spec(
    "Operator",
    Operator,
    ("name", Text()),
    ("package_name", Text()),
    ("type_name", Text()),
    ("inputs", Vec(U32)),
    ("outputs", Vec(U32)),
    ("params", Vec(U32)),
)
_GRAPH = spec(
    "Graph", GraphTable, ("name", Text()), ("nodes", Vec(_OPERATOR)), ("tensors", Vec(_TENSOR))
)
CONTEXT = spec("Context", Context, ("graphs", Vec(_GRAPH)))
