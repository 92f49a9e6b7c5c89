"""NXP Neutron payloads: a header of one-byte fields, then microcode, weights and kernels.

Source: backends/nxp/nxp_backend.py, backends/nxp/runtime/NeutronBackend.cpp of releases 0.7 to
1.5.1
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from types import MappingProxyType

from schema.errors import FormatError, Issue, Severity
from schema.payloads.model import INLINE, Constant, Part, Payload, PayloadSource
from schema.payloads.parts import cover
from schema.payloads.reading import span, unpack

_ALIGNMENT = 16
_FORMATS = ("formatless", "channels last")
_MARK = b"nMCd"
_MICROCODE = struct.Struct("<15I")  # mark, then integers; sizes in bytes
_MICROCODE_BYTES, _WEIGHTS_BYTES, _SCRATCH = 6, 7, 9
_WHERE = "Neutron payload"
# counts before the formats, whether maps exist, whether the version follows; newest first
_LAYOUTS = ((3, True, True), (3, True, False), (2, False, False))


@dataclass(frozen=True, slots=True)
class _Header:
    """The header in one of its layouts; ``version`` is None if it has none."""

    nbytes: int
    inputs: int
    outputs: int
    arguments: int | None
    formats: bytes
    maps: bytes
    version: int | None

    @property
    def start(self) -> int:
        """Return where the microcode begins."""
        return -(-self.nbytes // _ALIGNMENT) * _ALIGNMENT


def decode_payload(source: PayloadSource) -> Payload:
    """Decode a Neutron payload.

    Raises: FormatError if the payload is shorter than its header
    """
    data = source.data
    header, issues = _choose(data)
    blocks = _blocks(data, header, issues)
    claims = [Part("header", "header", 0, header.nbytes), *blocks]
    pieces = {part.name: data[part.offset : part.offset + part.nbytes] for part in blocks}
    weights = pieces.get("weights")
    constants = (Constant("weights", len(weights), INLINE, weights),) if weights else ()
    version = header.version
    return Payload(
        source.backend_id,
        "Neutron payload without version" if version is None else f"Neutron payload {version}",
        len(data),
        parts=cover(data, claims),
        constants=constants,
        summary=MappingProxyType(_facts(data, header, blocks)),
        files=MappingProxyType(
            {
                "neutron.bin": data[header.start :],
                **{f"{name}.bin": piece for name, piece in pieces.items() if len(blocks) > 1},
            }
        ),
        issues=tuple(issues),
    )


def _choose(data: memoryview) -> tuple[_Header, list[Issue]]:
    """Return the header in the newest layout that is followed by microcode."""
    for layout in _LAYOUTS:
        try:
            header = _header(data, *layout)
        except FormatError:
            continue
        if bytes(data[header.start : header.start + len(_MARK)]) == _MARK:
            return header, []
    text = f"no microcode, whose mark is {_MARK.decode()}, follows the header"
    return _header(data, *_LAYOUTS[0]), [Issue(Severity.WARNING, _WHERE, text)]


def _header(data: memoryview, counts: int, has_maps: bool, has_version: bool) -> _Header:
    inputs, outputs, *rest = span(data, 0, counts, "header")
    both = inputs + outputs
    nbytes = counts + both * (1 + has_maps) + has_version
    raw = bytes(span(data, 0, nbytes, "header"))
    formats, maps = raw[counts : counts + both], raw[counts + both : counts + 2 * both]
    if any(code >= len(_FORMATS) for code in formats):
        raise FormatError("tensor formats 0 or 1", str(max(formats)), field="header", offset=counts)
    if rest and rest[0] < inputs:
        raise FormatError(f"at least {inputs} arguments", str(rest[0]), field="header", offset=2)
    return _Header(
        nbytes,
        inputs,
        outputs,
        rest[0] if rest else None,
        formats,
        maps if has_maps else b"",
        raw[-1] if has_version else None,
    )


def _blocks(data: memoryview, header: _Header, issues: list[Issue]) -> list[Part]:
    start = header.start
    rest = max(0, len(data) - start)
    if bytes(data[start : start + 4]) != _MARK:
        return [Part("microcode, weights and kernels", "binary", start, rest)]
    sizes = _microcode(data, start)[_MICROCODE_BYTES : _WEIGHTS_BYTES + 1]
    built: list[Part] = []
    at = start
    for (name, kind), size in zip(
        (("microcode", "binary"), ("weights", "constant")), sizes, strict=True
    ):
        if at + size > len(data):
            text = f"the {name} would need {size} bytes, {max(0, len(data) - at)} follow"
            issues.append(Issue(Severity.ERROR, _WHERE, text))
            break
        built.append(Part(name, kind, at, size))
        at += -(-size // _ALIGNMENT) * _ALIGNMENT
    if at < len(data):
        built.append(Part("kernels", "binary", at, len(data) - at))
    return [part for part in built if part.nbytes]


def _microcode(data: memoryview, start: int) -> tuple[int, ...]:
    return unpack(_MICROCODE, data, start, "microcode")


def _facts(data: memoryview, header: _Header, blocks: list[Part]) -> dict[str, object]:
    facts: dict[str, object] = {}
    if header.version is not None:
        facts["payload version"] = header.version
    facts |= {"inputs": header.inputs, "outputs": header.outputs}
    if header.arguments is not None:
        facts["arguments"] = header.arguments
    facts["tensor formats"] = ", ".join(_FORMATS[code] for code in header.formats)
    if header.maps:
        facts["input map"] = tuple(header.maps[: header.inputs])
        facts["output map"] = tuple(header.maps[header.inputs :])
    if bytes(data[header.start : header.start + 4]) == _MARK:
        numbers = _microcode(data, header.start)
        facts["scratch bytes"] = numbers[_SCRATCH]
        facts |= {f"{part.name} bytes": part.nbytes for part in blocks}
        if header.version == 1:
            facts["profile bytes"] = numbers[10] & 0x7FFFFFFF
            facts["debug bytes"] = numbers[11]
    return facts
