"""Elements of literals: bytes to numbers, numbers to bytes, and their shape."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from schema.errors import FormatError
from schema.graph import Dim

BITS = {
    "int4": (4, True),
    "uint6": (6, False),
    "uint4": (4, False),
    "uint3": (3, False),
    "uint2": (2, False),
    "uint1": (1, False),
}
"""Dtypes below a byte: bits, and whether they have a sign. The first element has the low bits."""

_MOST_INLINE = 1 << 22  # larger ones are in weight files
_MOST_PACKED = 1 << 14  # each costs time in proportion to the bytes


def elements(raw: memoryview, dtype: str, code: str, count: int | None) -> list[object]:
    """Return the elements of raw bytes; a description of a dtype that Python lacks.

    Args:
        raw: little endian
        dtype: by name
        code: of `struct`, empty for dtypes that it lacks
        count: of elements, None if unknown; what follows them fills the last byte
    """
    if dtype in BITS:
        return _packed(raw, *BITS[dtype], count)
    if dtype == "bfloat16":
        words = struct.unpack(f"<{len(raw) // 2}H", raw[: len(raw) // 2 * 2])
        return [struct.unpack("<f", struct.pack("<I", word << 16))[0] for word in words]
    if not code:
        return [f"({len(raw)} packed bytes)"]
    width = struct.calcsize(f"<{code}")
    whole = len(raw) // width
    return list(struct.unpack(f"<{whole}{code}", raw[: whole * width]))


def _packed(raw: memoryview, bits: int, signed: bool, count: int | None) -> list[object]:
    held = 8 * len(raw) // bits
    wanted = held if count is None else min(count, held)
    stream, mask, half = int.from_bytes(raw, "little"), (1 << bits) - 1, 1 << (bits - 1)
    if wanted > _MOST_PACKED:
        raise FormatError(f"at most {_MOST_PACKED} packed elements inline", str(wanted))
    found = [stream >> (bits * place) & mask for place in range(wanted)]
    return [one - 2 * half if signed and one >= half else one for one in found]


def element_bytes(items: Sequence[object], dtype: str, code: str) -> memoryview | None:
    """Return elements as a weight file has them, None for strings.

    Raises: FormatError if a number is not of the dtype
    """
    try:
        if dtype in BITS:
            bits = BITS[dtype][0]
            mask, stream = (1 << bits) - 1, 0
            for place, item in enumerate(items):
                stream |= (int(str(item)) & mask) << (bits * place)
            return memoryview(stream.to_bytes((bits * len(items) + 7) // 8, "little"))
        if not code:
            return None
        return memoryview(struct.pack(f"<{len(items)}{code}", *items))
    except (struct.error, OverflowError, ValueError) as error:
        raise FormatError(f"elements of {dtype}", str(error), field="literal") from error


def shaped(items: Sequence[object], sizes: Sequence[Dim]) -> object:
    """Return elements nested as a tensor of these sizes; flat where a size is open."""
    made: Sequence[object] = tuple(items)
    if all(isinstance(size, int) for size in sizes):
        for size in reversed(sizes[1:]):
            step = max(1, int(size))
            made = tuple(tuple(made[at : at + step]) for at in range(0, len(made), step))
    return made


def expect_count(found: int, sizes: Sequence[Dim]) -> None:
    """Check the number of elements of a literal.

    Raises: FormatError if it is not that of its sizes, or above what is read
    """
    if found > _MOST_INLINE:
        raise FormatError(f"at most {_MOST_INLINE} elements inline", str(found), field="literal")
    known = [size for size in sizes if isinstance(size, int)]
    count = math.prod(known)
    if len(known) == len(sizes) and count != found:
        shape = ", ".join(map(str, known))
        raise FormatError(f"{count} elements of shape [{shape}]", str(found), field="literal")
