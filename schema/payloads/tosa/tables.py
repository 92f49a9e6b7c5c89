"""Field tables of a TOSA flatbuffer.

Source: backends/arm/tosa/schemas/tosa_1.1.fbs
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from schema.flatbuf.declare import i32, substituted, table_of, u32, u64
from schema.flatbuf.spec import Blob, Union, UnknownMember, spec
from schema.payloads.model import EMPTY_BYTES
from schema.payloads.tosa.ops import RELEASE_1
from schema.payloads.tosa.release_0 import RELEASE_0

_ATTRIBUTE = Union("Attribute", RELEASE_1.attributes)


@dataclass(frozen=True, slots=True)
class Version:
    """Version of the specification."""

    major: i32 = -1
    minor: i32 = -1
    patch: i32 = -1
    draft: bool = True


@dataclass(frozen=True, slots=True)
class OpLocation:
    """The origin of an operator, free text."""

    text: str = ""


@dataclass(frozen=True, slots=True)
class TosaOperator:
    """An operator; operands are named tensors and shapes."""

    op: u32 = 0
    attribute: Annotated[Mapping[str, Any] | UnknownMember | None, _ATTRIBUTE] = None
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    location: OpLocation | None = None


@dataclass(frozen=True, slots=True)
class TosaTensor:
    """A tensor; ``data`` holds the bytes of a constant."""

    name: str = ""
    shape: tuple[i32, ...] = ()
    type: u32 = 0
    data: Annotated[memoryview, Blob(8)] = EMPTY_BYTES
    variable: bool = False
    is_unranked: bool = False
    variable_name: str = ""
    offset: u64 = 0
    size: u64 = 0


@dataclass(frozen=True, slots=True)
class TosaShape:
    """A shape operand; ``data`` holds the 64-bit sizes of a constant one."""

    name: str = ""
    rank: u32 = 0
    data: Annotated[memoryview, Blob(8)] = EMPTY_BYTES


@dataclass(frozen=True, slots=True)
class TosaBasicBlock:
    """A list of operators with its operands."""

    name: str = ""
    operators: tuple[TosaOperator, ...] = ()
    tensors: tuple[TosaTensor, ...] = ()
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    shapes: tuple[TosaShape, ...] = ()


@dataclass(frozen=True, slots=True)
class TosaRegion:
    """A region; the first is the graph, others are branches and loop bodies."""

    name: str = ""
    blocks: tuple[TosaBasicBlock, ...] = ()


@dataclass(frozen=True, slots=True)
class SoftwareVersion:
    """Version of the writer (since 1.1)."""

    major: i32 = -1
    minor: i32 = -1
    micro: i32 = -1
    modifier: str = ""


@dataclass(frozen=True, slots=True)
class TosaGraph:
    """The root table."""

    version: Version | None = None
    regions: tuple[TosaRegion, ...] = ()
    software_version: SoftwareVersion | None = None


GRAPH_1 = table_of(TosaGraph)
GRAPH_0 = substituted(GRAPH_1, {_ATTRIBUTE: Union("Attribute", RELEASE_0.attributes)})
HEAD = spec("TosaGraph", TosaGraph, ("version", table_of(Version)))
