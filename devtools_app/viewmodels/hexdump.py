"""Bytes as rows of hexadecimal and text; only what is on screen is ever formatted."""

from __future__ import annotations

from dataclasses import dataclass

WIDTH = 16  # bytes per row, so that offsets end in 0
_PRINTABLE = bytes(range(0x20, 0x7F))
_AS_TEXT = bytes(byte if byte in _PRINTABLE else 0x2E for byte in range(256))


@dataclass(frozen=True, slots=True)
class HexRow:
    """The bytes of one line, sixteen unless space is limited.

    Attributes:
        offset: of the first byte
        cells: two hexadecimal digits each
        text: one character each, a dot if not printable
    """

    offset: int
    cells: tuple[str, ...]
    text: str


def row_count(size: int, width: int = WIDTH) -> int:
    """Return how many rows show that many bytes."""
    return (size + width - 1) // width


def hex_rows(data: memoryview, first: int, count: int, width: int = WIDTH) -> tuple[HexRow, ...]:
    """Return some rows, counted from 0; rows past the end are skipped."""
    last = min(first + count, row_count(len(data), width))
    return tuple(_row(data, number * width, width) for number in range(max(0, first), last))


def _row(data: memoryview, offset: int, width: int) -> HexRow:
    part = bytes(data[offset : offset + width])
    cells = tuple(f"{byte:02x}" for byte in part)
    return HexRow(offset, cells, part.translate(_AS_TEXT).decode("ascii"))


def selected_hex(data: memoryview, start: int, end: int, limit: int = 1 << 20) -> str:
    """Return bytes as hexadecimal pairs for the clipboard, no more than ``limit`` of them."""
    return bytes(data[start : min(end, start + limit)]).hex(" ")
