"""Divides a payload among its owners so that every byte is counted exactly once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from schema.flatbuf.extents import extents
from schema.flatbuf.reader import Reader
from schema.flatbuf.spec import Spec
from schema.payloads.model import Part
from schema.payloads.reading import PayloadReader

ALIGNMENT, UNREFERENCED = "alignment", "unreferenced"
_CHUNK = 1 << 20  # bytes copied at once to test for zeros, whatever the size of a part
_MOST_OFFSETS = 200_000  # above, a flatbuffer is one part: walking it would take seconds
Owner = Callable[["re.Match[str]", str], tuple[str, str]]  # path, extent kind -> name, kind
Owners = Sequence[tuple[str, Owner]]  # path pattern -> owner


def whole(size: int, name: str, kind: str) -> tuple[Part, ...]:
    """Return the single part of a payload that is not divided; none for an empty one."""
    return (Part(name, kind, 0, size),) if size else ()


def cover(data: memoryview, claims: Iterable[Part]) -> tuple[Part, ...]:
    """Return parts that cover all of ``data`` once.

    Claims may overlap and may end outside; the one that begins first wins. Bytes
    without a claim become alignment if all are zero, else unreferenced. Zeros between two
    runs of one owner are assigned to it.
    """
    size = len(data)
    merged: list[Part] = []
    cursor = 0
    for claim in sorted(claims, key=lambda part: part.offset):
        start = max(claim.offset, cursor)
        end = min(claim.offset + claim.nbytes, size)
        if end <= start:
            continue
        if start > cursor:
            _append(merged, _gap(data, cursor, start), claim)
        _append(merged, Part(claim.name, claim.kind, start, end - start))
        cursor = end
    if cursor < size:
        _append(merged, _gap(data, cursor, size))
    return tuple(merged)


def carve(container: Part, inner: Iterable[Part]) -> list[Part]:
    """Return the inner claims and the rest of the container around them."""
    end = container.offset + container.nbytes
    built: list[Part] = []
    cursor = container.offset
    for claim in sorted(inner, key=lambda part: part.offset):
        start, stop = max(claim.offset, cursor), min(claim.offset + claim.nbytes, end)
        if stop <= start:
            continue
        if start > cursor:
            built.append(Part(container.name, container.kind, cursor, start - cursor))
        built.append(Part(claim.name, claim.kind, start, stop - start))
        cursor = stop
    if cursor < end:
        built.append(Part(container.name, container.kind, cursor, end - cursor))
    return built


def _append(merged: list[Part], part: Part, following: Part | None = None) -> None:
    last = merged[-1] if merged else None
    if last is None:
        merged.append(part)
        return
    same = (last.name, last.kind) == (part.name, part.kind)
    inside = (
        part.kind == ALIGNMENT
        and following is not None
        and (last.name, last.kind) == (following.name, following.kind)
    )
    if same or inside:
        merged[-1] = Part(last.name, last.kind, last.offset, last.nbytes + part.nbytes)
    else:
        merged.append(part)


def _gap(data: memoryview, start: int, end: int) -> Part:
    kind = ALIGNMENT if is_zero(data[start:end]) else UNREFERENCED
    return Part(kind, kind, start, end - start)


def is_zero(data: memoryview) -> bool:
    """Return whether all bytes are zero, checked in bounded pieces."""
    for start in range(0, len(data), _CHUNK):
        piece = bytes(data[start : start + _CHUNK])
        if piece.count(0) != len(piece):
            return False
    return True


def flatbuffer_claims(
    reader: PayloadReader, table: Spec[Any], base: int, owners: Owners
) -> list[Part]:
    """Return a claim for every run of a flatbuffer.

    Args:
        reader: the reader that has decoded the payload
        table: root table
        base: where the root offset is stored; the identifier follows it
        owners: path pattern -> owner; the first matching pattern decides, other paths belong to the
            tables of the graph
    """
    if reader.offsets > _MOST_OFFSETS:
        return [Part("flatbuffer", "table", base, reader.limit - base)]
    patterns = [(re.compile(pattern), owner) for pattern, owner in owners]
    claims = [Part("flatbuffer head", "header", base, 8)]
    for extent in extents(Reader(reader.buffer, reader.limit), table, base):
        if extent.kind == "vtable":
            name, kind = "table layouts", "vtable"
        else:
            name, kind = _owner(extent.path, extent.kind, patterns)
        claims.append(Part(name, kind, extent.offset, extent.nbytes))
    return claims


def _owner(path: str, kind: str, patterns: list[tuple[re.Pattern[str], Owner]]) -> tuple[str, str]:
    for pattern, owner in patterns:
        found = pattern.match(path)
        if found:
            return owner(found, kind)
    return "graph tables", "table"
