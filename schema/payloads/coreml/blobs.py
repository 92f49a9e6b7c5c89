"""The weight file of a Core ML model package.

A 64-byte header, then for each blob a 64-byte description and its data, 64-byte aligned.
Source: coremltools mlmodel/src/MILBlob/Blob/StorageFormat.hpp
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from schema.errors import FormatError
from schema.payloads.reading import span

HEADER_BYTES = DESCRIPTION_BYTES = 64
_SENTINEL = 0xDEADBEEF  # of Core ML's weight files, at each blob's description
_DESCRIPTION = struct.Struct("<IIQQ")


@dataclass(frozen=True, slots=True)
class WeightBlob:
    """A blob of a weight file.

    Attributes:
        description: position of its description in the file
        offset: position of its data in the file
        data: its bytes
    """

    description: int
    offset: int
    data: memoryview


def read_blob(file: memoryview, offset: int) -> WeightBlob:
    """Return the blob described at a position.

    Raises: FormatError if the description is missing or points outside the file
    """
    raw = span(file, offset, DESCRIPTION_BYTES, "weights")
    sentinel, _, nbytes, start = _DESCRIPTION.unpack_from(raw)
    if sentinel != _SENTINEL:
        raise FormatError(f"the mark {_SENTINEL:#x}", f"{sentinel:#x}", offset=offset)
    return WeightBlob(offset, start, span(file, start, nbytes, "weights"))
