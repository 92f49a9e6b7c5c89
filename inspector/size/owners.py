"""Every byte of a file has an owner: tables, constants, payload nodes, named blobs, gaps.

The parts of a file never overlap and sum to its size. Bytes no field refers to are gaps: zeros
are ``alignment``, anything else is ``slack``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from inspector.files.payloads import delegate_payload
from inspector.memory.plan import value_name
from schema.dtypes.scalar_type import known_nbytes
from schema.flatbuf.extents import BLOB, VTABLE, Extents, extent_columns
from schema.flatbuf.reader import Reader
from schema.objects.identity_cache import identity_cache
from schema.program import ProgramFile
from schema.program import model as m
from schema.program.model import PROGRAM

_HEAD = "root offset and identifier"
_OWNERS = {"root offset": _HEAD, "vtable": "vtables"}
_TABLE_KINDS = ("table", "vtable", "constant")
_LENGTH = 4  # in front of a vector
_HEADER_END = 8  # root offset and file identifier, 4 bytes each


@dataclass(frozen=True, slots=True)
class FilePart:
    """A run of bytes with one owner.

    Attributes:
        name: identifies it in its file
        kind: header, table, vtable, constant, mutable data, payload …, named data, test case,
            member, alignment or slack
        offset: first byte in the file
        nbytes: length
        shelf: path for the treemap, outermost first; a last word that is empty stands for what
            follows the last dot of the name, so that the many parts of one vector share a path
        duplicate_of: name of an earlier part with the same bytes, empty if unique
    """

    name: str
    kind: str
    offset: int
    nbytes: int
    shelf: tuple[str, ...] = ()
    duplicate_of: str = ""

    @property
    def group(self) -> tuple[str, ...]:
        """Return the path for the treemap, outermost first."""
        if not self.shelf or self.shelf[-1]:
            return self.shelf
        return (*self.shelf[:-1], self.name.rpartition(".")[2])


@dataclass(frozen=True, slots=True)
class FileSize:
    """The parts of one file, in file order; they sum to total_bytes."""

    total_bytes: int
    parts: tuple[FilePart, ...]


def cover(parts: Iterable[FilePart], data: memoryview, start: int = 0) -> tuple[FilePart, ...]:
    """Return the parts in file order with gaps filled by parts and overlaps removed.

    Args:
        parts: in any order; offsets count from the beginning of the file
        data: the bytes from ``start`` on
        start: file offset of the first byte of data
    """
    done: list[FilePart] = []
    at = start
    end = start + len(data)
    for part in sorted(parts, key=lambda part: (part.offset, -part.nbytes)):
        low, high = max(part.offset, at), min(part.offset + part.nbytes, end)
        if high <= low:
            continue
        if low > at:
            done.append(_gap(data[at - start : low - start], at))
        whole = (low, high - low) == (part.offset, part.nbytes)
        done.append(part if whole else replace(part, offset=low, nbytes=high - low))
        at = high
    if at < end:
        done.append(_gap(data[at - start :], at))
    return tuple(done)


def _gap(data: memoryview, offset: int) -> FilePart:
    kind = "slack" if _has_content(data) else "alignment"
    return FilePart(f"{kind} at {offset:#x}", kind, offset, len(data), ("gaps",))


def _has_content(data: memoryview) -> bool:
    chunk = 1 << 20
    zeros = bytes(min(chunk, len(data)))
    return any(
        bytes(data[at : at + chunk]) != zeros[: min(chunk, len(data) - at)]
        for at in range(0, len(data), chunk)
    )


@identity_cache
def program_size(
    program: ProgramFile, data: memoryview, external: tuple[object, ...] = ()
) -> FileSize:
    """Return the parts of a ``.pte`` whose bytes are ``data``."""
    return FileSize(len(data), cover(program_parts(program, data, external), data))


def program_parts(
    program: ProgramFile, data: memoryview, external: tuple[object, ...] = ()
) -> list[FilePart]:
    """Return the owned runs of a program; gaps are left to `cover`."""
    header = program.header
    limit = header.program_size if header else len(data)
    parts = [FilePart(_HEAD, "header", 0, _HEADER_END, ("program",))]
    if header is not None:
        parts.append(FilePart("extended header", "header", 8, header.length, ("program",)))
    parts += _table_parts(data, limit)
    for index, place in enumerate(program.table.segments or ()):
        if place.size and header is not None:
            parts += _segment_parts(
                program, index, header.segment_base_offset + place.offset, external
            )
    parts += _inline_delegate_parts(program, data, external)
    return _named_once(parts)


def _named_once(parts: list[FilePart]) -> list[FilePart]:
    """Return the parts with the keys of blobs at the constants whose bytes they are, too."""
    constants = {(each.offset, each.nbytes): each for each in parts if each.kind == "constant"}
    keys: dict[int, list[str]] = {}
    for each in parts:
        home = constants.get((each.offset, each.nbytes))
        if home is not None and each.kind == "named data":
            keys.setdefault(home.offset, []).append(each.name)
    if not keys:
        return parts
    return [
        replace(each, name=" = ".join((each.name, *keys[each.offset])))
        if each.kind == "constant" and each.offset in keys and each.nbytes
        else each
        for each in parts
        if each.kind != "named data" or (each.offset, each.nbytes) not in constants
    ]


# Down to here a table is a separate part, including everything below it.
_LEVEL = re.compile(
    r"^Program(?:\.execution_plan\[\d+\](?:\.(?:values|operators|delegates|inputs|outputs"
    r"|chains\[\d+\]\.(?:instructions|stacktrace)|chains)(?:\[\d+\])?|\.\w+)?"
    r"|\.\w+(?:\[\d+\])?)?"
)


def _table_parts(data: memoryview, limit: int) -> list[FilePart]:
    """Return a part for each run of adjacent bytes of one owner, as a table with its strings."""
    found = extent_columns(Reader(data, limit), PROGRAM, levels=_LEVEL)
    owners = [_OWNERS.get(path) or path.removeprefix("Program.") for path in found.paths]
    kinds = np.select([found.kind == VTABLE, _constants(found)], [1, 2], 0)
    nbytes = np.where(_inline_payloads(found), _LENGTH, found.nbytes)
    joint = (np.diff(found.path) == 0) & (np.diff(kinds) == 0)
    joint &= found.offset[:-1] + nbytes[:-1] == found.offset[1:]
    starts = np.flatnonzero(np.concatenate([[True], ~joint]))
    totals = np.add.reduceat(nbytes, starts)
    shelves: dict[str, tuple[str, ...]] = {}
    parts: list[FilePart] = []
    for start, size in zip(starts.tolist(), totals.tolist(), strict=True):
        name = owners[found.path[start]]
        if name != _HEAD:
            kind = _TABLE_KINDS[kinds[start]]
            at = int(found.offset[start])
            parts.append(FilePart(name, kind, at, size, _shelf(name, shelves)))
    return parts


def _constants(found: Extents) -> NDArray[np.bool_]:
    return _blobs_below(found, "Program.constant_buffer[")


def _inline_payloads(found: Extents) -> NDArray[np.bool_]:
    """Return which blobs belong to a payload; only the length in front of one is the table's."""
    return _blobs_below(found, "Program.backend_delegate_data[")


def _blobs_below(found: Extents, start: str) -> NDArray[np.bool_]:
    below = np.array([path.startswith(start) for path in found.paths], np.bool_)
    return (found.kind == BLOB) & below[found.path]


def _shelf(name: str, known: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the path for the treemap, shared by the many parts of one vector."""
    above, dot, last = name.rpartition(".")
    if not dot:
        return ("program", last.replace("execution_plan", "plan"))
    found = known.get(above)
    if found is None:
        parts = above.replace("execution_plan", "plan").split(".")
        found = known[above] = ("program", *parts, "")
    return found


def _segment_parts(
    program: ProgramFile, index: int, start: int, external: tuple[object, ...]
) -> list[FilePart]:
    table = program.table
    if table.constant_segment is not None and table.constant_segment.segment_index == index:
        parts = _constant_parts(program, table.constant_segment, start, "constant")
        if parts:
            return parts
    for entry in table.mutable_data_segments or ():
        if entry.segment_index == index:
            return _constant_parts(program, entry, start, "mutable data")
    for plan in program.plans:
        for number, delegate in enumerate(plan.delegates):
            ref = delegate.processed
            if ref is not None and ref.location == 1 and ref.index == index:
                return _payload_parts(program, plan, number, start, external)
    return _named_parts(program, index, start)


def _constant_parts(
    program: ProgramFile, starts: m.SubsegmentOffsets, base: int, kind: str
) -> list[FilePart]:
    owners = _constant_owners(program, kind)
    parts: list[FilePart] = []
    for buffer, (names, nbytes) in sorted(owners.items()):
        if buffer < len(starts.offsets):
            offset = base + starts.offsets[buffer]
            parts.append(FilePart(" = ".join(names), kind, offset, nbytes, (f"{kind}s", names[0])))
    return parts


def _constant_owners(program: ProgramFile, kind: str) -> dict[int, tuple[list[str], int]]:
    owners: dict[int, tuple[list[str], int]] = {}
    several = len(program.plans) > 1
    for plan in program.plans:
        for index, entry in enumerate(plan.values):
            tensor = entry.val
            if not isinstance(tensor, m.Tensor) or tensor.data_buffer_idx == 0:
                continue
            if (tensor.allocation_info is not None) != (kind == "mutable data"):
                continue
            name = value_name(plan, index)
            label = f"{plan.name} {name}" if several else name
            names, nbytes = owners.get(tensor.data_buffer_idx, ([], 0))
            nbytes = max(nbytes, known_nbytes(tensor.scalar_type, tensor.sizes) or 0)
            owners[tensor.data_buffer_idx] = ([*names, label], nbytes)
    return owners


def _payload_parts(
    program: ProgramFile,
    plan: m.ExecutionPlan,
    number: int,
    start: int,
    external: tuple[object, ...],
) -> list[FilePart]:
    payload = delegate_payload(program, plan, number, external)
    label = f"{plan.name} delegate {number} ({payload.backend_id})"
    return [
        FilePart(
            f"{label}: {part.name}",
            f"payload {part.kind}",
            start + part.offset,
            part.nbytes,
            ("delegates", label, part.name),
        )
        for part in payload.parts
    ]


def _named_parts(program: ProgramFile, index: int, start: int) -> list[FilePart]:
    keys = [entry.key for entry in program.table.named_data or () if entry.segment_index == index]
    nbytes = len(program.segments[index])
    if not keys:
        return [FilePart(f"segment {index}", "unreferenced segment", start, nbytes, ("segments",))]
    return [FilePart(" = ".join(keys), "named data", start, nbytes, ("named data", keys[0]))]


def _inline_delegate_parts(
    program: ProgramFile, data: memoryview, external: tuple[object, ...]
) -> list[FilePart]:
    """Return payload parts for blobs inside the flatbuffer; they replace the run of the table."""
    parts: list[FilePart] = []
    for plan in program.plans:
        for number, delegate in enumerate(plan.delegates):
            ref = delegate.processed
            inline = program.table.backend_delegate_data or ()
            if ref is not None and ref.location == 0 and ref.index < len(inline):
                start = position(data, inline[ref.index].data)
                if start is not None:
                    parts += _payload_parts(program, plan, number, start, external)
    return parts


def position(data: memoryview, view: memoryview) -> int | None:
    """Return the offset of a view in data, None if it is not part of it."""
    if not len(view) or not len(data):
        return None
    base = np.frombuffer(data, dtype=np.uint8).ctypes.data
    start = np.frombuffer(view, dtype=np.uint8).ctypes.data - base
    return start if 0 <= start <= len(data) - len(view) else None


def mark_duplicates(parts: Sequence[FilePart], data: memoryview) -> tuple[FilePart, ...]:
    """Return the parts with each content met before named; reads every byte once.

    Only parts of 16 bytes and more count, and gaps and tables do not.
    """
    seen: dict[tuple[int, bytes], str] = {}
    marked: list[FilePart] = []
    for part in parts:
        kind = part.kind.removeprefix("payload ")
        if part.nbytes < 16 or kind in ("alignment", "slack", "table", "vtable", "header"):
            marked.append(part)
            continue
        digest = hashlib.sha256(data[part.offset : part.offset + part.nbytes]).digest()
        first = seen.setdefault((part.nbytes, digest), part.name)
        marked.append(part if first == part.name else replace(part, duplicate_of=first))
    return tuple(marked)
