"""Payloads of the AOTInductor backends (CUDA, Metal): keys of blobs in named data.

Since release 1.4 the payload is the keys; before, it was empty and the keys began with the name
of the method. Source: backends/aoti of releases 1.1 to 1.5.1
"""

from __future__ import annotations

import struct
from types import MappingProxyType

from schema.errors import FormatError
from schema.payloads.model import Constant, Part, Payload, PayloadSource, total_bytes
from schema.payloads.named import missing_constants, named_constant
from schema.payloads.parts import cover

_MAX_TEXT = 1 << 20
_ROLES = {"so_blob": "library", "weights_blob": "weight"}
_WHERE = "AOTInductor payload"
_ELF_MACHINES = {3: "x86", 40: "Arm", 62: "x86-64", 183: "AArch64", 243: "RISC-V"}
_MACH_O = {0x01000007: "x86-64", 0x0100000C: "AArch64"}


def decode_payload(source: PayloadSource) -> Payload:
    """Decode the keys, one per line; without any they follow from the method's name.

    Raises: FormatError if the payload is not such a string
    """
    data = source.data
    lines = _lines(data) if len(data) else _old_keys(source)
    constants = tuple(named_constant(key, source.named_data, role=_role(key)) for _, key in lines)
    claims = [Part(key, "named_reference", at, len(key.encode())) for at, key in lines if len(data)]
    return Payload(
        source.backend_id,
        "AOTInductor keys" if len(data) else "AOTInductor keys by method",
        len(data),
        parts=cover(data, claims),
        constants=constants,
        summary=MappingProxyType(_facts(constants)),
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
    """Return offset and content of every non-empty line."""
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


def _old_keys(source: PayloadSource) -> list[tuple[int, str]]:
    name = next((value for key, value in source.compile_specs if key == "method_name"), b"")
    method = bytes(name).decode("utf-8", "backslashreplace")
    return [(0, f"{method}_{tail}" if method else tail) for tail in _ROLES]


def _role(key: str) -> str:
    return next((role for tail, role in _ROLES.items() if key.endswith(tail)), "file")


def _facts(constants: tuple[Constant, ...]) -> dict[str, object]:
    facts: dict[str, object] = {"blobs": len(constants), "bytes at hand": total_bytes(constants)}
    for constant in constants:
        if constant.role == "library" and constant.data is not None:
            facts["library"] = _library(bytes(constant.data[:64]))
    return facts


def _library(head: bytes) -> str:
    """Return the kind of a shared library and its processor."""
    if head[:4] == b"\x7fELF" and len(head) >= 20:
        number = int.from_bytes(head[18:20], "big" if head[5] == 2 else "little")
        return f"ELF for {_ELF_MACHINES.get(number, f'machine {number}')}"
    if head[:4] == b"\xcf\xfa\xed\xfe" and len(head) >= 8:
        (number,) = struct.unpack_from("<I", head, 4)
        return f"Mach-O for {_MACH_O.get(number, f'processor {number:#x}')}"
    return "Windows library" if head[:2] == b"MZ" else "of unknown kind"
