"""Payloads in proprietary formats: headers only (MediaTek, Samsung).

Source: backends/mediatek/preprocess.py, backends/samsung
"""

from __future__ import annotations

import struct
from types import MappingProxyType

from schema.errors import FormatError, Issue, Severity
from schema.payloads.model import Constant, Part, Payload, PayloadSource
from schema.payloads.named import missing_constants, named_constant
from schema.payloads.parts import cover, whole
from schema.payloads.reading import unpack
from schema.payloads.settings.options import samsung_facts

_MEDIATEK = struct.Struct("<BIII")
_SHARED_BLOB = "ExtractSharedBlobKey"
_WHERE = "MediaTek payload"


def decode_mediatek(source: PayloadSource) -> Payload:
    """Decode the header of a Neuropilot payload; weights may be shared, as a named blob.

    Raises: FormatError if the header is missing
    """
    data = source.data
    version, inputs, outputs, size = unpack(_MEDIATEK, data, 0, "header")
    if version != 1:
        raise FormatError("header version 1", str(version), field="header", offset=0)
    shared = _shared(source)
    issues = missing_constants(shared, _WHERE)
    present = max(0, len(data) - _MEDIATEK.size)
    if size != present:
        text = f"the header announces {size} bytes of model, {present} follow"
        issues.append(Issue(Severity.WARNING, _WHERE, text))
    claims = [
        Part("header", "header", 0, _MEDIATEK.size),
        Part("model", "binary", _MEDIATEK.size, present),
    ]
    facts = {"header version": version, "inputs": inputs, "outputs": outputs, "model bytes": size}
    return Payload(
        source.backend_id,
        "Neuropilot header 1",
        len(data),
        parts=cover(data, claims),
        constants=shared,
        summary=MappingProxyType(facts),
        files=MappingProxyType({"model.dla": data[_MEDIATEK.size :]}),
        issues=tuple(issues),
    )


def _shared(source: PayloadSource) -> tuple[Constant, ...]:
    keys = [value for key, value in source.compile_specs if key == _SHARED_BLOB]
    names = dict.fromkeys(bytes(key).decode("utf-8", "backslashreplace") for key in keys)
    return tuple(named_constant(name, source.named_data) for name in names)


def decode_samsung(source: PayloadSource) -> Payload:
    """Describe an Exynos payload: the body is opaque, the options are in the compile specs."""
    data = source.data
    return Payload(
        source.backend_id,
        "ENN binary",
        len(data),
        parts=whole(len(data), "ENN binary", "binary"),
        summary=MappingProxyType(samsung_facts(source.compile_specs)),
        files=MappingProxyType({"model.nnc": data}),
    )
