"""Field tables of a TOSA flatbuffer.

Source: backends/arm/tosa/schemas/tosa_1.1.fbs
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from schema.flatbuf.spec import (
    BOOL,
    I32,
    U32,
    U64,
    Blob,
    Spec,
    Text,
    Union,
    UnknownMember,
    Vec,
    spec,
)
from schema.payloads.model import EMPTY_BYTES
from schema.payloads.tosa.ops import RELEASE_1, Release
from schema.payloads.tosa.release_0 import RELEASE_0


@dataclass(frozen=True, slots=True)
class Version:
    """Version of the specification."""

    major: int = -1
    minor: int = -1
    patch: int = -1
    draft: bool = True


@dataclass(frozen=True, slots=True)
class OpLocation:
    """Free text that says where an operator came from."""

    text: str = ""


@dataclass(frozen=True, slots=True)
class TosaOperator:
    """An operator; operands are named tensors and shapes."""

    op: int = 0
    attribute: Mapping[str, Any] | UnknownMember | None = None
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    location: OpLocation | None = None


@dataclass(frozen=True, slots=True)
class TosaTensor:
    """A tensor; ``data`` holds the bytes of a constant."""

    name: str = ""
    shape: tuple[int, ...] = ()
    type: int = 0
    data: memoryview = EMPTY_BYTES
    variable: bool = False
    is_unranked: bool = False
    variable_name: str = ""
    offset: int = 0
    size: int = 0


@dataclass(frozen=True, slots=True)
class TosaShape:
    """A shape operand; ``data`` holds the 64-bit sizes of a constant one."""

    name: str = ""
    rank: int = 0
    data: memoryview = EMPTY_BYTES


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

    major: int = -1
    minor: int = -1
    micro: int = -1
    modifier: str = ""


@dataclass(frozen=True, slots=True)
class TosaGraph:
    """The root table."""

    version: Version | None = None
    regions: tuple[TosaRegion, ...] = ()
    software_version: SoftwareVersion | None = None


_VERSION = spec(
    "Version",
    Version,
    ("major", I32, -1),
    ("minor", I32, -1),
    ("patch", I32, -1),
    ("draft", BOOL, True),
)
_SOFTWARE = spec(
    "SoftwareVersion",
    SoftwareVersion,
    ("major", I32, -1),
    ("minor", I32, -1),
    ("micro", I32, -1),
    ("modifier", Text()),
)
_TENSOR = spec(
    "TosaTensor",
    TosaTensor,
    ("name", Text()),
    ("shape", Vec(I32)),
    ("type", U32),
    ("data", Blob(align=8)),
    ("variable", BOOL),
    ("is_unranked", BOOL),
    ("variable_name", Text()),
    ("offset", U64),
    ("size", U64),
)
_SHAPE = spec("TosaShape", TosaShape, ("name", Text()), ("rank", U32), ("data", Blob(align=8)))
_LOCATION = spec("OpLocation", OpLocation, ("text", Text()))
_OPERANDS = (("inputs", Vec(Text())), ("outputs", Vec(Text())))


def _graph(operator: Spec[TosaOperator]) -> Spec[TosaGraph]:
    block = spec(
        "TosaBasicBlock",
        TosaBasicBlock,
        ("name", Text()),
        ("operators", Vec(operator)),
        ("tensors", Vec(_TENSOR)),
        *_OPERANDS,
        ("shapes", Vec(_SHAPE)),
    )
    region = spec("TosaRegion", TosaRegion, ("name", Text()), ("blocks", Vec(block)))
    return spec(
        "TosaGraph",
        TosaGraph,
        ("version", _VERSION),
        ("regions", Vec(region)),
        ("software_version", _SOFTWARE),
    )


HEAD = spec("TosaGraph", TosaGraph, ("version", _VERSION))


def graph_of(release: Release) -> Spec[TosaGraph]:
    """Return the root table with the attributes of a release."""
    return _graph(
        spec(
            "TosaOperator",
            TosaOperator,
            ("op", U32),
            ("attribute", Union("Attribute", release.attributes)),
            *_OPERANDS,
            ("location", _LOCATION),
        )
    )


GRAPH_1, GRAPH_0 = graph_of(RELEASE_1), graph_of(RELEASE_0)
