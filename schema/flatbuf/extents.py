"""Every run of bytes of a flatbuffer and the path of the field that owns it.

A file may have hundreds of thousands of tables, nearly all of them alike: what a table looks like
is worked out once for its place in the schema and its vtable, and runs are kept as columns.
"""

from __future__ import annotations

import re
import struct
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from schema.errors import FormatError
from schema.flatbuf.reader import Reader
from schema.flatbuf.spec import Blob, Field, FieldType, Scalar, Spec, String, Union, Vec

_I32 = struct.Struct("<i")
_POINTER = 4
_MAX_EXTENTS = 4_000_000  # a hostile file may share tables, so that paths grow exponentially
_MOST_LAYOUTS = 4096  # remembered; files have a few dozen
TABLE, VTABLE, VECTOR, TEXT, BLOB = range(5)
KINDS = ("table", "vtable", "vector", "text", "blob")


class Extent(NamedTuple):
    """A run of bytes and the path of the field that owns it.

    Attributes:
        offset: first byte
        nbytes: length, terminating zero of a string included
        path: dotted field path from the root
        kind: table, vtable, vector, text or blob
    """

    offset: int
    nbytes: int
    path: str
    kind: str


@dataclass(frozen=True, slots=True, eq=False)
class Extents:
    """All runs of a flatbuffer as columns, in file order.

    Shapes: offset, nbytes int64[runs]; path, kind int32[runs]

    Attributes:
        offset: first byte
        nbytes: length, terminating zero of a string included
        path: index in paths
        kind: TABLE, VTABLE, VECTOR, TEXT or BLOB
        paths: dotted field paths from the root
    """

    offset: NDArray[np.int64]
    nbytes: NDArray[np.int64]
    path: NDArray[np.int32]
    kind: NDArray[np.int32]
    paths: list[str]


def extents(reader: Reader, table: Spec[Any], base: int = 0) -> Iterator[Extent]:
    """Return every run of bytes reachable from the root, each position once, in file order.

    Raises: FormatError where the bytes cannot be followed
    """
    found = extent_columns(reader, table, base)
    rows = zip(found.offset.tolist(), found.nbytes.tolist(), found.path, found.kind, strict=True)
    return (Extent(at, nbytes, found.paths[path], KINDS[kind]) for at, nbytes, path, kind in rows)


def extent_columns(
    reader: Reader, table: Spec[Any], base: int = 0, levels: re.Pattern[str] | None = None
) -> Extents:
    """Return every run of bytes reachable from the root, each position once, in file order.

    Args:
        reader: of the flatbuffer
        table: root table
        base: where the root offset is stored
        levels: matches the beginning of each path that is kept; None keeps whole paths

    Raises: FormatError where the bytes cannot be followed
    """
    walk = _Walk(reader, levels)
    walk.add(base, _POINTER, walk.path("root offset"), TABLE)
    walk.run(_Step(table, table.name), reader.follow(base))
    return walk.columns()


@dataclass(slots=True, eq=False)
class _Step:
    """A field of the schema on one way down from the root; elements of a vector are one.

    Attributes:
        type: of the field
        example: path of one such field
        ending: what its path has after that of the field around it; empty for an element
        inside: whether it has the path of the field around it
        layouts: of its tables, by vtable
        steps: below it, by name and member of a union
    """

    type: FieldType
    example: str
    ending: str = ""
    inside: bool = False
    layouts: dict[int, _Layout] = field(default_factory=dict[int, "_Layout"])
    steps: dict[tuple[str, int], _Step] = field(default_factory=dict[tuple[str, int], "_Step"])


class _Link(NamedTuple):
    """A field of a table that refers to other bytes; ``tag`` is where a union has its member."""

    field: Field
    offset: int
    tag: int
    step: _Step | None


class _Layout(NamedTuple):
    """The size of a table and of its vtable, and what it refers to."""

    nbytes: int
    vtable_bytes: int
    links: tuple[_Link, ...]


class _Walk:
    """Follows all references, the last field of a table first."""

    def __init__(self, reader: Reader, levels: re.Pattern[str] | None) -> None:
        self._reader = reader
        self._levels = levels
        self._inside: dict[FieldType, _Step] = {}  # steps whose paths are cut, by type
        self._known = 0
        self._seen: set[int] = set()
        self._offsets, self._nbytes = array("q"), array("q")
        self._owners, self._kinds = array("i"), array("i")
        self._paths = [KINDS[VTABLE]]
        self._vtables = 0  # they belong to many tables: the path of them all

    def path(self, text: str) -> int:
        """Return the number of a new path."""
        self._paths.append(text)
        return len(self._paths) - 1

    def add(self, at: int, nbytes: int, path: int, kind: int) -> None:
        """Add a run."""
        self._seen.add(at)
        self._offsets.append(at)
        self._nbytes.append(nbytes)
        self._owners.append(path)
        self._kinds.append(kind)

    def columns(self) -> Extents:
        """Return the runs in file order; a table ends where the next run begins."""
        offset, nbytes = np.array(self._offsets), np.array(self._nbytes)
        order = np.argsort(offset)
        offset, nbytes = offset[order], nbytes[order]
        path, kind = np.array(self._owners)[order], np.array(self._kinds)[order]
        # the vtable of a table may describe a larger one
        tables = np.flatnonzero(kind[:-1] == TABLE)
        nbytes[tables] = np.minimum(nbytes[tables], np.diff(offset)[tables])
        return Extents(offset, nbytes, path, kind, self._paths)

    def run(self, root: _Step, at: int) -> None:
        """Add everything that can be reached from a table."""
        stack = [(root, at, self.path(root.example))]
        seen = self._seen
        while stack:
            step, at, path = stack.pop()
            if at in seen:
                continue
            if len(seen) > _MAX_EXTENTS:
                found = self._paths[path]
                raise FormatError(f"at most {_MAX_EXTENTS} tables and vectors", "more", field=found)
            if isinstance(step.type, Spec):
                self._table(step, at, path, stack)
            else:
                self._vector(step, at, path, stack)

    def _table(self, step: _Step, at: int, path: int, stack: list[tuple[_Step, int, int]]) -> None:
        reader = self._reader
        reader.check(at, _POINTER)
        vtable = at - _I32.unpack_from(reader.buffer, at)[0]
        layout = step.layouts.get(vtable)
        if layout is None:
            layout = self._layout(step, at)
            if self._known < _MOST_LAYOUTS:
                self._known += 1
                step.layouts[vtable] = layout
        reader.check(at, layout.nbytes)
        self.add(at, layout.nbytes, path, TABLE)
        if vtable not in self._seen:
            self.add(vtable, layout.vtable_bytes, self._vtables, VTABLE)
        for link in layout.links:
            below = link.step or self._member(step, link, at)
            if below is not None:
                inside = path if below.inside else self.path(self._paths[path] + below.ending)
                stack.append((below, reader.follow(at + link.offset), inside))

    def _layout(self, step: _Step, at: int) -> _Layout:
        entries, inline = self._reader.slots(at)
        spec = cast("Spec[Any]", step.type)
        end = max(inline, _POINTER)
        links: list[_Link] = []
        for one in spec.fields:
            first, second = (*entries[one.slot : one.slot + 2], 0, 0)[:2]
            is_union = isinstance(one.type, Union)
            if not first or (is_union and not second):
                continue
            offset = second if is_union else first
            if offset < _POINTER:
                found = f"offset {offset}"
                raise FormatError("a field after the start of its table", found, offset=at)
            if isinstance(one.type, Scalar):
                end = max(end, offset + one.type.nbytes)
                continue
            end = max(end, offset + _POINTER, first + 1)
            below = None if is_union else self._below(step, f".{one.name}", one.type)
            links.append(_Link(one, offset, first, below))
        return _Layout(end, _POINTER + 2 * len(entries), tuple(links))

    def _member(self, step: _Step, link: _Link, at: int) -> _Step | None:
        """Return the step of the member that a union has, None for an unknown one."""
        tag = self._reader.buffer[at + link.tag]
        name = f".{link.field.name}"
        known = step.steps.get((name, tag))
        if known is not None:
            return known
        members = cast("Union", link.field.type).members
        member = members[tag] if tag < len(members) else None
        return self._below(step, name, member, tag) if member is not None else None

    def _vector(self, step: _Step, at: int, path: int, stack: list[tuple[_Step, int, int]]) -> None:
        reader, kind = self._reader, step.type
        count = reader.u32(at)
        element = kind.element if isinstance(kind, Vec) else None
        width = 1 if element is None else _POINTER
        if isinstance(element, Scalar):
            width = element.nbytes
        reader.check(at + _POINTER, count * width)
        nbytes = _POINTER + count * width
        if isinstance(kind, String):
            self.add(at, nbytes + 1, path, TEXT)
            return
        self.add(at, nbytes, path, BLOB if isinstance(kind, Blob) else VECTOR)
        if element is None or isinstance(element, Scalar):
            return
        below = self._below(step, "[0]", element)
        head = self._paths[path]
        start = at + _POINTER
        offsets = struct.unpack_from(f"<{count}I", reader.buffer, start)
        for index, offset in enumerate(offsets):
            target = start + _POINTER * index + offset
            if not offset:
                raise FormatError("a different offset", "an offset of 0", offset=target)
            reader.check(target, _POINTER)
            stack.append((below, target, path if below.inside else self.path(f"{head}[{index}]")))

    def _below(self, step: _Step, name: str, kind: FieldType, tag: int = 0) -> _Step:
        """Return the step to a field or an element."""
        known = step.steps.get((name, tag))
        if known is not None:
            return known
        example = step.example + name
        found = self._levels.match(example) if self._levels is not None else None
        if step.inside or (found is not None and found.end() < len(example)):
            made = self._inside.setdefault(kind, _Step(kind, step.example, inside=True))
        else:
            made = _Step(kind, example, "" if name.startswith("[") else name)
        step.steps[name, tag] = made
        return made
