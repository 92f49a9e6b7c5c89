"""Decodes a VGF container: header, modules, segments, resources, constants.

Source: arm/ai-ml-sdk-vgf-library src/header.hpp, src/constant.hpp
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeVar

from schema.errors import FormatError, Issue
from schema.flatbuf.spec import Spec
from schema.payloads.model import INLINE, Constant, Part, Payload, PayloadSource
from schema.payloads.parts import Owners, carve, cover, flatbuffer_claims
from schema.payloads.reading import PayloadReader, span, unpack
from schema.payloads.vgf import tables as t
from schema.payloads.vgf.graph import to_graph

T = TypeVar("T")
_MAGICS = (b"VGF1", bytes.fromhex("c3d2e1f0"))
_HEADER = struct.Struct("<4sHH4BI8Q")
_HEADER_BYTES = 128
_CONSTANTS = b"CONST00\0"
_COUNT = struct.Struct("<8sQ")
_ENTRY = struct.Struct("<IiQQ")
_MAX_CONSTANTS = 100_000
_SECTIONS = ("modules", "sequence", "resources", "constants")
# section -> element whose index names the part, kind and prefix of that name
_OWNED = {
    "modules": (r"ModuleTable\.modules\[(\d+)\]", "node", "module"),
    "sequence": (r"ModelSequenceTable\.segments\[(\d+)\]", "node", "segment"),
    "resources": (r"ModelResourceTable\.mrt_entry\[(\d+)\]", "value", "resource"),
    "constants": (r"ConstantSection\.data\[(\d+)\]", "constant", "constant"),
}
_WHERE = "VGF payload"


@dataclass(slots=True)
class _Container:
    data: memoryview
    version: str
    vulkan: int
    sections: Mapping[str, tuple[int, int]]
    claims: list[Part] = field(default_factory=list[Part])
    issues: list[Issue] = field(default_factory=list[Issue])

    def read(self, name: str, table: Spec[T]) -> T | None:
        """Return the root table of a section and claim its bytes."""
        offset, size = self.sections[name]
        if not size:
            return None
        reader = PayloadReader(self.data, offset + size, where=_WHERE)
        found = reader.root(table, offset)
        self.issues += reader.issues
        pattern, kind, prefix = _OWNED[name]
        owners: Owners = ((pattern, lambda match, _: (f"{prefix}_{match[1]}", kind)),)
        claims = flatbuffer_claims(reader, table, offset, owners)
        # These flatbuffers have no identifier: the head is the root offset alone.
        if claims[0].kind == "header":
            claims[0] = Part(f"{name} head", "header", offset, 4)
        self.claims += claims
        return found


def decode_payload(source: PayloadSource) -> Payload:
    """Decode a VGF container.

    Raises: FormatError for any other payload, or unreadable sections
    """
    data = source.data
    container = _open(data)
    modules = container.read("modules", t.MODULES) or t.ModuleTable()
    sequence = container.read("sequence", t.SEQUENCE) or t.Sequence()
    resources = container.read("resources", t.RESOURCES) or t.ResourceTable()
    constants = _constants(container)
    built = to_graph(sequence, modules, resources, constants, container.issues)
    return Payload(
        source.backend_id,
        f"VGF1 {container.version}",
        len(data),
        built,
        cover(data, container.claims),
        constants,
        summary=_summary(container, modules, sequence, resources),
        files=MappingProxyType({"model.vgf": data, **_module_files(modules)}),
        external_ids=MappingProxyType(dict(enumerate((*built.inputs, *built.outputs)))),
        issues=tuple(container.issues),
    )


def _open(data: memoryview) -> _Container:
    found = unpack(_HEADER, data, 0, "header")
    magic, vulkan, _, major, minor, patch, _, _, *places = found
    if magic not in _MAGICS:
        raise FormatError("the mark VGF1", repr(magic)[1:], offset=0)
    pairs = zip(places[::2], places[1::2], strict=True)
    sections: dict[str, tuple[int, int]] = dict(zip(_SECTIONS, pairs, strict=True))
    for name, (offset, size) in sections.items():
        span(data, offset, size, name)
    head = Part("header", "header", 0, _HEADER_BYTES)
    return _Container(data, f"{major}.{minor}.{patch}", vulkan, sections, [head])


def _constants(container: _Container) -> tuple[Constant, ...]:
    offset, size = container.sections["constants"]
    if size and bytes(container.data[offset : offset + 8]) != _CONSTANTS:
        old = container.read("constants", t.OLD_CONSTANTS) or t.OldConstants()
        return tuple(
            Constant(f"constant_{index}", len(entry.raw), INLINE, entry.raw)
            for index, entry in enumerate(old.data)
        )
    return _new_constants(container, offset, size) if size else ()


def _new_constants(container: _Container, offset: int, size: int) -> tuple[Constant, ...]:
    section = container.data[offset : offset + size]
    _, count = unpack(_COUNT, section, 0, "constants")
    if count > _MAX_CONSTANTS:
        raise FormatError(f"at most {_MAX_CONSTANTS} constants", str(count), field="constants")
    start = _COUNT.size + count * _ENTRY.size
    found: list[Constant] = []
    inner = [Part("constant table", "table", offset, start)]
    for index in range(count):
        at = _COUNT.size + index * _ENTRY.size
        _, _, nbytes, place = unpack(_ENTRY, section, at, f"constants[{index}]")
        raw = span(section, start + place, nbytes, f"constants[{index}]")
        found.append(Constant(f"constant_{index}", nbytes, INLINE, raw))
        inner.append(Part(f"constant_{index}", "constant", offset + start + place, nbytes))
    container.claims += carve(Part("constants", "section", offset, size), inner)
    return tuple(found)


def _module_files(modules: t.ModuleTable) -> dict[str, memoryview]:
    files: dict[str, memoryview] = {}
    for index, module in enumerate(modules.modules):
        code = module.code
        if isinstance(code, t.SpirV):
            raw = struct.pack(f"<{len(code.words)}I", *code.words)
            files[f"module_{index}.spv"] = memoryview(raw)
        elif isinstance(code, t.Glsl):
            files[f"module_{index}.glsl"] = memoryview(code.code.encode())
        elif isinstance(code, t.Hlsl):
            files[f"module_{index}.hlsl"] = memoryview(code.code.encode())
    return files


def _summary(
    container: _Container, modules: t.ModuleTable, sequence: t.Sequence, resources: t.ResourceTable
) -> Mapping[str, object]:
    facts: dict[str, object] = {
        "version": container.version,
        "Vulkan header version": container.vulkan,
        "modules": len(modules.modules),
        "segments": len(sequence.segments),
        "resources": len(resources.mrt_entry),
        "inputs": ", ".join(sequence.input_names),
        "outputs": ", ".join(sequence.output_names),
    }
    for name, (_, size) in container.sections.items():
        facts[f"{name} bytes"] = size
    return MappingProxyType(facts)
