"""Payloads of the AOTInductor backends (CUDA, Metal): keys of blobs in named data.

Source: backends/aoti, backends/cuda/cuda_backend.py, backends/apple/metal
"""

from __future__ import annotations

from types import MappingProxyType

from schema.errors import FormatError
from schema.payloads.model import Part, Payload, Source, total_bytes
from schema.payloads.named import missing_constants, named_constant
from schema.payloads.parts import cover

_MAX_TEXT = 1 << 20
_ROLES = {"so_blob": "library", "weights_blob": "weight"}
_WHERE = "AOTInductor payload"


def decode_payload(source: Source) -> Payload:
    """Decode the text of keys, one a line.

    Raises: FormatError if the payload is not such a text
    """
    data = source.data
    lines = _lines(data)
    constants = tuple(named_constant(key, source.named_data, role=_role(key)) for _, key in lines)
    claims = [Part(key, "named_reference", at, len(key.encode())) for at, key in lines]
    return Payload(
        source.backend_id,
        "AOTInductor keys",
        len(data),
        parts=cover(data, claims),
        constants=constants,
        summary=MappingProxyType({"blobs": len(lines), "bytes at hand": total_bytes(constants)}),
        files=MappingProxyType(
            {
                constant.name.replace("/", "_"): constant.data
                for constant in constants
                if constant.data is not None
            }
        ),
        issues=tuple(missing_constants(constants, _WHERE)),
    )


def _lines(data: memoryview) -> list[tuple[int, str]]:
    """Return offset and text of every line that is not empty."""
    raw = bytes(data[: _MAX_TEXT + 1])
    if len(raw) > _MAX_TEXT or not raw.isascii() or b"_blob" not in raw:
        raise FormatError("lines of keys that end in _blob", repr(raw[:16])[1:], offset=0)
    found: list[tuple[int, str]] = []
    at = 0
    for line in raw.split(b"\n"):
        if line:
            found.append((at, line.decode("ascii")))
        at += len(line) + 1
    return found


def _role(key: str) -> str:
    return next((role for tail, role in _ROLES.items() if key.endswith(tail)), "file")
