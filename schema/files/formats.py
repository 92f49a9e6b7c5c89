"""All file formats in one table; a file is recognised by its content, never by its name."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from schema import bundled, etdump, etrecord, flat_tensor, program
from schema.errors import FormatError
from schema.etrecord.exported import decode_exported, is_exported_file

HEAD_BYTES = 4096
_SEARCHED_BYTES = 1 << 20  # a buffer may begin with alignment zeros, yet opening stays fast
# Archives, executables, images and arrays, which may end in zeros as well.
_FOREIGN = (b"PK", b"\x1f\x8b", b"\x7fELF", b"\x89PNG", b"%PDF", b"\x93NUM", b"\x80\x02")
_HEADERS = (b"eh00", b"FH01")  # extended headers of programs and data files


@dataclass(frozen=True, slots=True)
class Format:
    """A file format.

    Attributes:
        kind: short name used in reports
        title: name shown to people
        suffix: usual suffix, for file dialogs and exports only
        sniff: whether these first bytes are of this format
        decode: reads the file
    """

    kind: str
    title: str
    suffix: str
    sniff: Callable[[bytes], bool]
    decode: Callable[..., Any]


FORMATS = (
    Format("pte", "program", ".pte", program.sniff, program.decode),
    Format("ptd", "external data", ".ptd", flat_tensor.sniff, flat_tensor.decode),
    Format("bpte", "bundled program", ".bpte", bundled.sniff, bundled.decode),
    Format("etdump", "ETDump", ".etdp", etdump.sniff, etdump.decode),
    Format("etrecord", "ETRecord", ".etrecord", etrecord.sniff, etrecord.decode),
)
# not among those that a folder is searched for: it is what a program was compiled from
EXPORTED = Format("pt2", "exported program", ".pt2", lambda _head: False, decode_exported)
DEBUG_BUFFER = "debug_buffer"
_LINE = 40  # characters of a text that are shown to know it by
_ZIP, _ZIP_END = b"PK\x03\x04", b"PK\x05\x06"
_ZIP_TAIL = 22 + 0xFFFF  # bytes that the end of an archive takes at most, with its comment
_OBJECT = re.compile(rb"\s*\{\s*[\"\w]")
_JSON_HINT = (
    "; if it is a program as flatc prints it, `etscope json` writes the .pte; values of nodes are"
    ' {"node": number}, a list of objects with a node and numbers, or node data of Model Explorer'
)


def recognise(data: memoryview) -> Format | None:
    """Return the format of these bytes, None if no signature matches."""
    head = bytes(data[:HEAD_BYTES])
    for entry in FORMATS:
        if entry.sniff(head):
            return entry
    if head[:4] == _ZIP and etrecord.is_record(data):
        return FORMATS[-1]
    if head[:4] == _ZIP and is_exported_file(data):
        return EXPORTED
    return None


def unrecognised(data: memoryview, file: str) -> FormatError:
    """Return the error for bytes of no known format."""
    head = bytes(data[:12])
    if not head:
        return FormatError("an ExecuTorch file", "an empty file", file=file, offset=0)
    return FormatError(
        "a program, external data, bundled program, ETRecord or ETDump"
        " (a debug buffer has no signature and needs its ETDump next to it)",
        f"{_beginning(data, file)}{_JSON_HINT if _OBJECT.match(head) else ''}",
        file=file,
        offset=0,
    )


def _beginning(data: memoryview, file: str) -> str:
    """Return what a file of no known format begins with: a line of text, else its bytes in hex."""
    head = bytes(data[:HEAD_BYTES])
    if head[:4] == _ZIP:
        whole = _ZIP_END in bytes(data[-_ZIP_TAIL:])
        return "another zip archive" if whole else "a zip archive that is cut short, as of a .pt2"
    line = head.lstrip().splitlines()[0][:_LINE] if head.strip() else b""
    if not line or not line.isascii() or not line.decode("ascii").isprintable():
        return f"bytes that begin with {head[:12].hex(' ')}"
    source = "; `etscope compile FILE.py:FUNCTION` makes a program of a module"
    return f"text that begins with '{line.decode()}'{source if file.endswith('.py') else ''}"


def looks_like_debug_buffer(data: memoryview) -> bool:
    """Return whether bytes without a signature could be a debug buffer on its own.

    The runtime writes the whole buffer, zeros to the end, and tensors differ from text: they have
    zero
    bytes, or bytes that are not ASCII. Tensors are aligned, so zeros may come first.
    """
    if len(data) < 64 or any(bytes(data[-4:])):
        return False
    # Where a flatbuffer has its identifier: a damaged program or data file is reported as such.
    if bytes(data[4:8]).isalnum() or bytes(data[8:12]) in _HEADERS:
        return False
    if bytes(data[:4]).startswith(_FOREIGN):
        return False
    used = bytes(data[:_SEARCHED_BYTES]).strip(b"\0")[:HEAD_BYTES]
    return bool(used) and (b"\0" in used or not used.isascii())
