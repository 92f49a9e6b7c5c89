"""Payloads whose body is a vendor's secret: headers only (QNN, MediaTek, NXP, Samsung).

Source: backends/qualcomm (QnnCustomProtocol), backends/mediatek/preprocess.py,
backends/nxp/nxp_backend.py, backends/samsung
"""

from __future__ import annotations

import struct
from types import MappingProxyType

from schema.errors import FormatError, Issue, Severity
from schema.payloads.model import Part, Payload, Source
from schema.payloads.options import qnn_facts, samsung_facts
from schema.payloads.parts import cover, whole
from schema.payloads.reading import span, unpack

_QNN = struct.Struct("<IqQ")
_QNN_MAGIC, _QNN_HEADER = 0x5678ABCD, 256
_MEDIATEK = struct.Struct("<BIII")
_NEUTRON_ALIGNMENT = 16
_NEUTRON_FORMATS = ("formatless", "channels last")


def decode_qnn(source: Source) -> Payload:
    """Decode the header of a QNN payload; without it the payload is the context binary.

    Raises: FormatError if the header announces more than there is
    """
    data = source.data
    facts: dict[str, object] = dict(qnn_facts(source.compile_specs))
    if len(data) < 4 or int.from_bytes(data[:4], "little") != _QNN_MAGIC:
        return Payload(
            source.backend_id,
            "QNN context binary without header",
            len(data),
            parts=whole(len(data), "context binary", "binary"),
            summary=MappingProxyType(facts),
            files=MappingProxyType({"context.bin": data}),
        )
    _, signature, size = unpack(_QNN, data, 0, "header")
    binary = span(data, _QNN_HEADER, size, "header.binary_size")
    facts = {"signature": f"{signature:#x}", "context binary bytes": size, **facts}
    claims = [
        Part("header", "header", 0, _QNN_HEADER),
        Part("context binary", "binary", _QNN_HEADER, size),
    ]
    return Payload(
        source.backend_id,
        "QNN custom protocol",
        len(data),
        parts=cover(data, claims),
        summary=MappingProxyType(facts),
        files=MappingProxyType({"context.bin": binary}),
    )


def decode_mediatek(source: Source) -> Payload:
    """Decode the header of a Neuropilot payload.

    Raises: FormatError if there is no such header
    """
    data = source.data
    version, inputs, outputs, size = unpack(_MEDIATEK, data, 0, "header")
    if version != 1:
        raise FormatError("header version 1", str(version), field="header", offset=0)
    issues: list[Issue] = []
    present = max(0, len(data) - _MEDIATEK.size)
    if size != present:  # with a shared blob the model is in named data
        text = f"the header announces {size} bytes of model, {present} follow"
        issues.append(Issue(Severity.INFO, "MediaTek payload", text))
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
        summary=MappingProxyType(facts),
        files=MappingProxyType({"model.dla": data[_MEDIATEK.size :]}),
        issues=tuple(issues),
    )


def decode_neutron(source: Source) -> Payload:
    """Decode the header of a Neutron payload.

    Counts of inputs, outputs and arguments, a format byte and a map byte for each input and
    output, the version; microcode, weights and kernels follow without sizes.

    Raises: FormatError if the payload is shorter than its header
    """
    data = source.data
    inputs, outputs, arguments = span(data, 0, 3, "header")
    both = inputs + outputs
    nbytes = 3 + 2 * both + 1
    header = bytes(span(data, 0, nbytes, "header"))
    formats, maps = header[3 : 3 + both], header[3 + both : 3 + 2 * both]
    if any(code >= len(_NEUTRON_FORMATS) for code in formats):
        raise FormatError("tensor formats 0 or 1", str(max(formats)), field="header", offset=3)
    start = -(-nbytes // _NEUTRON_ALIGNMENT) * _NEUTRON_ALIGNMENT
    claims = [
        Part("header", "header", 0, nbytes),
        Part("microcode, weights and kernels", "binary", start, max(0, len(data) - start)),
    ]
    names = ", ".join(_NEUTRON_FORMATS[code] for code in formats)
    facts: dict[str, object] = {
        "payload version": header[-1],
        "inputs": inputs,
        "outputs": outputs,
        "arguments": arguments,
        "tensor formats": names,
        "input map": tuple(maps[:inputs]),
        "output map": tuple(maps[inputs:]),
    }
    return Payload(
        source.backend_id,
        f"Neutron payload {header[-1]}",
        len(data),
        parts=cover(data, claims),
        summary=MappingProxyType(facts),
        files=MappingProxyType({"neutron.bin": data[start:]}),
    )


def decode_samsung(source: Source) -> Payload:
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
