"""Field tables of flat_tensor.fbs, identifier FT01: the layout of today and that of 0.6."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from schema.flat_tensor.model import TensorLayout
from schema.flatbuf.declare import ALWAYS, i8, i32, named, table_of, u8, u32, u64


@dataclass(frozen=True, slots=True)
class DataSegment:
    """Place of a segment, counted from the segment base."""

    offset: u64
    size: u64


@dataclass(frozen=True, slots=True)
class NamedData:
    """A key, the segment of its bytes, and its layout when it is a tensor."""

    key: str
    segment_index: u32
    tensor_layout: TensorLayout | None


@named("FlatTensor")
@dataclass(frozen=True, slots=True)
class Root:
    """FlatTensor of today."""

    version: u32
    segments: tuple[DataSegment, ...]
    named_data: tuple[NamedData, ...]


@named("TensorMetadata")
@dataclass(frozen=True, slots=True)
class OldTensor:
    """TensorMetadata of 0.6: a tensor inside a segment."""

    fully_qualified_name: str
    scalar_type: i8
    sizes: tuple[i32, ...]
    dim_order: tuple[u8, ...]
    segment_index: u32
    offset: u64


@named("NamedData")
@dataclass(frozen=True, slots=True)
class OldNamedData:
    """NamedData of 0.6."""

    key: str
    segment_index: u32


@named("FlatTensor")
@dataclass(frozen=True, slots=True)
class OldRoot:
    """FlatTensor of 0.6."""

    version: u32
    tensor_alignment: Annotated[u32, ALWAYS]
    tensors: tuple[OldTensor, ...]
    segments: tuple[DataSegment, ...]
    named_data: tuple[OldNamedData, ...]


FLAT_TENSOR, OLD_FLAT_TENSOR = table_of(Root), table_of(OldRoot)
