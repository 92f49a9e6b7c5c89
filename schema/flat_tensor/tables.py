"""Field tables of flat_tensor.fbs, identifier FT01: the layout of today and that of 0.6."""

from __future__ import annotations

from dataclasses import dataclass

from schema.flat_tensor.model import TensorLayout
from schema.flatbuf import spec as fb
from schema.flatbuf.spec import Text, Vec, spec

TEXT = Text()


@dataclass(frozen=True, slots=True)
class DataSegment:
    """Place of a segment, counted from the segment base."""

    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class NamedData:
    """A key, the segment of its bytes, and its layout when it is a tensor."""

    key: str
    segment_index: int
    tensor_layout: TensorLayout | None


@dataclass(frozen=True, slots=True)
class Root:
    """FlatTensor of today."""

    version: int
    segments: tuple[DataSegment, ...]
    named_data: tuple[NamedData, ...]


@dataclass(frozen=True, slots=True)
class OldTensor:
    """TensorMetadata of 0.6: a tensor inside a segment."""

    fully_qualified_name: str
    scalar_type: int
    sizes: tuple[int, ...]
    dim_order: tuple[int, ...]
    segment_index: int
    offset: int


@dataclass(frozen=True, slots=True)
class OldNamedData:
    """NamedData of 0.6."""

    key: str
    segment_index: int


@dataclass(frozen=True, slots=True)
class OldRoot:
    """FlatTensor of 0.6."""

    version: int
    tensor_alignment: int
    tensors: tuple[OldTensor, ...]
    segments: tuple[DataSegment, ...]
    named_data: tuple[OldNamedData, ...]


DATA_SEGMENT = spec("DataSegment", DataSegment, ("offset", fb.U64), ("size", fb.U64))
TENSOR_LAYOUT = spec(
    "TensorLayout",
    TensorLayout,
    ("scalar_type", fb.I8),
    ("sizes", Vec(fb.I32)),
    ("dim_order", Vec(fb.U8)),
)
NAMED_DATA = spec(
    "NamedData",
    NamedData,
    ("key", TEXT),
    ("segment_index", fb.U32),
    ("tensor_layout", TENSOR_LAYOUT),
)
FLAT_TENSOR = spec(
    "FlatTensor",
    Root,
    ("version", fb.U32),
    ("segments", Vec(DATA_SEGMENT)),
    ("named_data", Vec(NAMED_DATA)),
)
OLD_TENSOR = spec(
    "TensorMetadata",
    OldTensor,
    ("fully_qualified_name", TEXT),
    ("scalar_type", fb.I8),
    ("sizes", Vec(fb.I32)),
    ("dim_order", Vec(fb.U8)),
    ("segment_index", fb.U32),
    ("offset", fb.U64),
)
OLD_NAMED_DATA = spec("NamedData", OldNamedData, ("key", TEXT), ("segment_index", fb.U32))
OLD_FLAT_TENSOR = spec(
    "FlatTensor",
    OldRoot,
    ("version", fb.U32),
    ("tensor_alignment", fb.U32),
    ("tensors", Vec(OLD_TENSOR)),
    ("segments", Vec(DATA_SEGMENT)),
    ("named_data", Vec(OLD_NAMED_DATA)),
    always=("tensor_alignment",),
)
