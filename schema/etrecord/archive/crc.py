"""Checksums of concatenated bytes, from the checksums of their pieces.

The checksum of zip archives (CRC-32) is the remainder of a polynomial over GF(2): that of a
concatenation is the first, shifted by the length of the second, plus the second. So bytes
that a record contains twice, or in a nested archive, are summed once.

Source: RFC 1952 (polynomial, order of bits)
"""

from __future__ import annotations

from functools import cache

_POLYNOMIAL = 0xEDB8_8320  # the lowest bit is the highest power
_ONE = 1 << 31  # the power 0, as bits are reversed
_BYTE = 1 << 23  # x to the 8


def joined(first: int, second: int, length: int) -> int:
    """Return the checksum of two pieces, one after the other.

    Args:
        first: checksum of the first
        second: checksum of the second
        length: bytes of the second
    """
    return _product(_power(length), first) ^ second


@cache
def _power(length: int) -> int:
    """Return the table that shifts a remainder by a number of bytes."""
    found, square = _ONE, _BYTE
    while length:
        if length & 1:
            found = _product(square, found)
        square = _product(square, square)
        length >>= 1
    return found


def _product(left: int, right: int) -> int:
    found = 0
    for place in range(31, -1, -1):
        if left >> place & 1:
            found ^= right
        right = right >> 1 ^ (_POLYNOMIAL if right & 1 else 0)
    return found
