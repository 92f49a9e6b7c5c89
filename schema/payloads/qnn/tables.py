"""Tables of QCIR, the graph that early releases compiled on the device.

Source: backends/qualcomm/aot/ir/qcir.fbs of releases 0.6 and 0.7
"""

from __future__ import annotations

from dataclasses import dataclass

from schema.flatbuf.declare import f32, i8, i32, named, table_of, u8, u32, u64

WRITE, READ, READWRITE, NATIVE, STATIC = range(5)
# name, scalar type, -1 where torch has no equal type; fixed-point types are quantized integers
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
    """Quantization of a tensor; a pair of scale and offset is one 64-bit integer of ``data``."""

    define: i8 = 0
    type: i8 = 0
    bitwidth: u32 = 0
    axis: i32 = 0
    scales: tuple[f32, ...] = ()
    offsets: tuple[i32, ...] = ()
    data: tuple[u64, ...] = ()
    num_blocks_per_axis: u32 = 0
    block_scale_storage_type: i8 = 0
    block_scale: tuple[u8, ...] = ()


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor; offset and size are those of its data after the flatbuffer."""

    name: str = ""
    shape: tuple[u32, ...] = ()
    dynamic_dims: tuple[u8, ...] = ()
    type: i8 = WRITE
    dtype: i8 = 0
    qparam: QuantizeParam | None = None
    size: u32 = 0
    offset: u64 = 0


@dataclass(frozen=True, slots=True)
class Operator:
    """An operation; inputs, outputs and parameters are tensors by their index."""

    name: str = ""
    package_name: str = ""
    type_name: str = ""
    inputs: tuple[u32, ...] = ()
    outputs: tuple[u32, ...] = ()
    params: tuple[u32, ...] = ()


@named("Graph")
@dataclass(frozen=True, slots=True)
class QnnGraphTable:
    """One graph of a context."""

    name: str = ""
    nodes: tuple[Operator, ...] = ()
    tensors: tuple[Tensor, ...] = ()


@dataclass(frozen=True, slots=True)
class Context:
    """The root table."""

    graphs: tuple[QnnGraphTable, ...] = ()


CONTEXT = table_of(Context)
