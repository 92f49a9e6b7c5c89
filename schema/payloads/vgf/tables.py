"""Field tables of a VGF container's sections.

Source: arm/ai-ml-sdk-vgf-library schema/vgf.fbs
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypeAlias

from schema.flatbuf.declare import UnionName, i64, named, table_of, u8, u32
from schema.flatbuf.spec import Blob, UnknownMember
from schema.payloads.model import EMPTY_BYTES

UNSET = 0xFFFFFFFF
MODULE_TYPES = ("compute", "graph")
# Vulkan formats that the converter writes
FORMATS: dict[int, tuple[str, int]] = {
    13: ("uint8", 0),
    14: ("int8", 1),
    74: ("uint16", 27),
    75: ("int16", 2),
    76: ("float16", 5),
    98: ("uint32", 28),
    99: ("int32", 3),
    100: ("float32", 6),
    110: ("uint64", 29),
    111: ("int64", 4),
    112: ("float64", 7),
    1000460000: ("bool", 11),
}


@named("SPIRV")
@dataclass(frozen=True, slots=True)
class SpirV:
    """A SPIR-V module."""

    words: tuple[u32, ...] = ()


@named("GLSL")
@dataclass(frozen=True, slots=True)
class Glsl:
    """A shader in GLSL."""

    code: str = ""


@named("HLSL")
@dataclass(frozen=True, slots=True)
class Hlsl:
    """A shader in HLSL."""

    code: str = ""


Code: TypeAlias = SpirV | Glsl | Hlsl


@dataclass(frozen=True, slots=True)
class Module:
    """Code with its entry point."""

    type: u8 = 0
    name: str = ""
    entry_point: str = ""
    code: Annotated[Code | UnknownMember | None, UnionName("ModuleCode")] = None


@dataclass(frozen=True, slots=True)
class ModuleTable:
    """The modules."""

    modules: tuple[Module, ...] = ()


@dataclass(frozen=True, slots=True)
class Description:
    """Shape and strides of a resource; a negative size is unknown."""

    shape: tuple[i64, ...] = ()
    strides: tuple[i64, ...] = ()


@dataclass(frozen=True, slots=True)
class SamplerConfig:
    """How an image is sampled."""

    min_filter: u32 = 0
    mag_filter: u32 = 0
    address_mode_u: u32 = 0
    address_mode_v: u32 = 0
    border_color: u32 = 0


@named("ModelResourceTableEntry")
@dataclass(frozen=True, slots=True)
class Resource:
    """An entry of the model resource table."""

    vk_descriptor_type: u32 = 0
    vk_format: u32 = 0
    category: u8 = 0
    description: Description | None = None
    extra_config: Annotated[SamplerConfig | UnknownMember | None, UnionName("ExtraConfig")] = None
    alias_group_id: u32 = UNSET


@named("ModelResourceTable")
@dataclass(frozen=True, slots=True)
class ResourceTable:
    """The resources."""

    mrt_entry: tuple[Resource, ...] = ()


@dataclass(frozen=True, slots=True)
class BindingSlot:
    """A binding and the resource bound to it."""

    binding: u32 = 0
    mrt_index: u32 = 0


@named("DescriptorSetInfo")
@dataclass(frozen=True, slots=True)
class DescriptorSet:
    """The bindings of one descriptor set."""

    bindings: tuple[BindingSlot, ...] = ()
    set_index: u32 = UNSET


@dataclass(frozen=True, slots=True)
class PushConstantRange:
    """Push constants of a segment."""

    stage_flags: u32 = 0
    offset: u32 = 0
    size: u32 = 0


@named("SegmentInfo")
@dataclass(frozen=True, slots=True)
class Segment:
    """One dispatch: a module with its bindings and constants."""

    type: u8 = 0
    name: str = ""
    module_index: u32 = 0
    set_infos: tuple[DescriptorSet, ...] = ()
    inputs: tuple[BindingSlot, ...] = ()
    outputs: tuple[BindingSlot, ...] = ()
    constants: tuple[u32, ...] = ()
    dispatch_shape: tuple[u32, ...] = ()
    push_constant_ranges: tuple[PushConstantRange, ...] = ()


@named("ModelSequenceTable")
@dataclass(frozen=True, slots=True)
class Sequence:
    """The segments in order, and the container's interface."""

    segments: tuple[Segment, ...] = ()
    inputs: tuple[BindingSlot, ...] = ()
    outputs: tuple[BindingSlot, ...] = ()
    input_names: tuple[str, ...] = ()
    output_names: tuple[str, ...] = ()


@named("ConstantData")
@dataclass(frozen=True, slots=True)
class OldConstant:
    """A constant before version 0.4."""

    mrt_index: u32 = 0
    sparsity_dimension: i64 = 0
    raw: Annotated[memoryview, Blob(8)] = EMPTY_BYTES


@named("ConstantSection")
@dataclass(frozen=True, slots=True)
class OldConstants:
    """The constant section before version 0.4."""

    data: tuple[OldConstant, ...] = ()


MODULES, RESOURCES = table_of(ModuleTable), table_of(ResourceTable)
SEQUENCE, OLD_CONSTANTS = table_of(Sequence), table_of(OldConstants)
