"""Field tables of a VGF container's sections.

Source: arm/ai-ml-sdk-vgf-library schema/vgf.fbs
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from schema.flatbuf.spec import I64, U8, U32, Blob, Text, Union, UnknownMember, Vec, spec
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


@dataclass(frozen=True, slots=True)
class SpirV:
    """A SPIR-V module."""

    words: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Glsl:
    """A shader in GLSL."""

    code: str = ""


@dataclass(frozen=True, slots=True)
class Hlsl:
    """A shader in HLSL."""

    code: str = ""


Code: TypeAlias = SpirV | Glsl | Hlsl


@dataclass(frozen=True, slots=True)
class Module:
    """Code with its entry point."""

    type: int = 0
    name: str = ""
    entry_point: str = ""
    code: Code | UnknownMember | None = None


@dataclass(frozen=True, slots=True)
class ModuleTable:
    """The modules."""

    modules: tuple[Module, ...] = ()


@dataclass(frozen=True, slots=True)
class Description:
    """Shape and strides of a resource; a negative size is unknown."""

    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SamplerConfig:
    """How an image is sampled."""

    min_filter: int = 0
    mag_filter: int = 0
    address_mode_u: int = 0
    address_mode_v: int = 0
    border_color: int = 0


@dataclass(frozen=True, slots=True)
class Resource:
    """An entry of the model resource table."""

    vk_descriptor_type: int = 0
    vk_format: int = 0
    category: int = 0
    description: Description | None = None
    extra_config: SamplerConfig | UnknownMember | None = None
    alias_group_id: int = UNSET


@dataclass(frozen=True, slots=True)
class ResourceTable:
    """The resources."""

    mrt_entry: tuple[Resource, ...] = ()


@dataclass(frozen=True, slots=True)
class BindingSlot:
    """A binding and the resource bound to it."""

    binding: int = 0
    mrt_index: int = 0


@dataclass(frozen=True, slots=True)
class DescriptorSet:
    """The bindings of one descriptor set."""

    bindings: tuple[BindingSlot, ...] = ()
    set_index: int = UNSET


@dataclass(frozen=True, slots=True)
class PushConstantRange:
    """Push constants of a segment."""

    stage_flags: int = 0
    offset: int = 0
    size: int = 0


@dataclass(frozen=True, slots=True)
class Segment:
    """One dispatch: a module with its bindings and constants."""

    type: int = 0
    name: str = ""
    module_index: int = 0
    set_infos: tuple[DescriptorSet, ...] = ()
    inputs: tuple[BindingSlot, ...] = ()
    outputs: tuple[BindingSlot, ...] = ()
    constants: tuple[int, ...] = ()
    dispatch_shape: tuple[int, ...] = ()
    push_constant_ranges: tuple[PushConstantRange, ...] = ()


@dataclass(frozen=True, slots=True)
class Sequence:
    """The segments in order, and the container's interface."""

    segments: tuple[Segment, ...] = ()
    inputs: tuple[BindingSlot, ...] = ()
    outputs: tuple[BindingSlot, ...] = ()
    input_names: tuple[str, ...] = ()
    output_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OldConstant:
    """A constant before version 0.4."""

    mrt_index: int = 0
    sparsity_dimension: int = 0
    raw: memoryview = EMPTY_BYTES


@dataclass(frozen=True, slots=True)
class OldConstants:
    """The constant section before version 0.4."""

    data: tuple[OldConstant, ...] = ()


_SLOT = spec("BindingSlot", BindingSlot, ("binding", U32), ("mrt_index", U32))
_SLOTS = (("inputs", Vec(_SLOT)), ("outputs", Vec(_SLOT)))
_CODE = Union(
    "ModuleCode",
    (
        None,
        spec("SPIRV", SpirV, ("words", Vec(U32))),
        spec("GLSL", Glsl, ("code", Text())),
        spec("HLSL", Hlsl, ("code", Text())),
    ),
)
_MODULE = spec(
    "Module",
    Module,
    ("type", U8),
    ("name", Text()),
    ("entry_point", Text()),
    ("code", _CODE),
)
MODULES = spec("ModuleTable", ModuleTable, ("modules", Vec(_MODULE)))
_DESCRIPTION = spec("Description", Description, ("shape", Vec(I64)), ("strides", Vec(I64)))
_SAMPLER = spec(
    "SamplerConfig",
    SamplerConfig,
    ("min_filter", U32),
    ("mag_filter", U32),
    ("address_mode_u", U32),
    ("address_mode_v", U32),
    ("border_color", U32),
)
_RESOURCE = spec(
    "ModelResourceTableEntry",
    Resource,
    ("vk_descriptor_type", U32),
    ("vk_format", U32),
    ("category", U8),
    ("description", _DESCRIPTION),
    ("extra_config", Union("ExtraConfig", (None, _SAMPLER))),
    ("alias_group_id", U32, UNSET),
)
RESOURCES = spec("ModelResourceTable", ResourceTable, ("mrt_entry", Vec(_RESOURCE)))
_SET = spec("DescriptorSetInfo", DescriptorSet, ("bindings", Vec(_SLOT)), ("set_index", U32, UNSET))
_PUSH = spec(
    "PushConstantRange", PushConstantRange, ("stage_flags", U32), ("offset", U32), ("size", U32)
)
_SEGMENT = spec(
    "SegmentInfo",
    Segment,
    ("type", U8),
    ("name", Text()),
    ("module_index", U32),
    ("set_infos", Vec(_SET)),
    *_SLOTS,
    ("constants", Vec(U32)),
    ("dispatch_shape", Vec(U32)),
    ("push_constant_ranges", Vec(_PUSH)),
)
SEQUENCE = spec(
    "ModelSequenceTable",
    Sequence,
    ("segments", Vec(_SEGMENT)),
    *_SLOTS,
    ("input_names", Vec(Text())),
    ("output_names", Vec(Text())),
)
OLD_CONSTANTS = spec(
    "ConstantSection",
    OldConstants,
    (
        "data",
        Vec(
            spec(
                "ConstantData",
                OldConstant,
                ("mrt_index", U32),
                ("sparsity_dimension", I64),
                ("raw", Blob(align=8)),
            )
        ),
    ),
)
