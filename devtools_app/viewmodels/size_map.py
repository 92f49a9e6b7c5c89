"""The size view: every byte of every file as parts within parts, and as a table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from devtools_app.viewmodels.canvas_data import LegendEntry, Swatch, TreemapData
from inspector.files.session import LoadedFile, Session
from inspector.size.files import PlacedParts, SizedFile, session_sizes
from inspector.size.owners import FilePart, mark_duplicates
from inspector.size.users import Users, part_title, stored_users
from inspector.units import format_bytes
from schema.backends import short_backend
from schema.objects.plural import plural

# Hues of the treemap by what a part is for; text and table say the same in words.
_HUES = (
    ("payload", 0, "delegate"),
    ("constant", 2, "constant"),
    ("mutable data", 3, "mutable data"),
    ("named data", 4, "named data"),
    ("test case", 1, "test case"),
    ("member", 5, "record member"),
)
_SMALL = -1  # colour reference of everything else
_NO_COLOUR = -9  # of a box without parts so far
_DELEGATE = re.compile(r"(?P<method>.+) delegate (?P<number>\d+) \((?P<backend>[^()]*)\)")
_MANY = 60_000  # parts drawn; the rest of a group is drawn as one


@dataclass(frozen=True, slots=True, eq=False)
class SizeMap:
    """Parts of some files with drawing data.

    Attributes:
        files: of the parts
        parts: all parts with the file each is in, in file order
        data: content of the treemap
        leaf: number of the first part of each box of the treemap, -1 for what holds boxes only
        box: box of the treemap that each part is in
        legend: meaning of the colours
        headline: totals in words
        problems: files without parts, and why
    """

    files: tuple[LoadedFile, ...]
    parts: Sequence[tuple[LoadedFile, FilePart]]
    data: TreemapData
    leaf: NDArray[np.int64]
    box: NDArray[np.int64]
    legend: tuple[LegendEntry, ...]
    headline: str
    problems: tuple[str, ...]


def size_map(session: Session, path: str = "", size_unit: str = "auto") -> SizeMap:
    """Return the parts of one file by its path, or of all files."""
    sized = tuple(one for one in session_sizes(session) if path in ("", one.file.path))
    known = tuple(one for one in sized if one.size is not None)
    return map_of(known, PlacedParts(known), _problems(sized), size_unit, stored_users(session))


def _short(name: str) -> str:
    """Return ``XNNPACK 0`` for ``forward delegate 0 (XnnpackBackend)``, other names as they are."""
    match = _DELEGATE.fullmatch(name)
    if match is None:
        return name
    method = "" if match["method"] == "forward" else f"{match['method']} "
    return f"{method}{short_backend(match['backend'])} {match['number']}"


def _problems(sized: Sequence[SizedFile]) -> tuple[str, ...]:
    return tuple(f"{Path(one.file.path).name}: {one.problem}" for one in sized if one.problem)


def map_of(
    known: Sequence[SizedFile],
    parts: Sequence[tuple[LoadedFile, FilePart]],
    problems: tuple[str, ...],
    size_unit: str,
    users: Users,
) -> SizeMap:
    """Return the treemap of known parts, called by their users where the file has only a hash."""
    several = len(known) > 1
    tree = _Boxes("all files" if several else "file", _holders(part.group for _, part in parts))
    if not several and known:
        tree.names[0] = Path(known[0].file.path).name
    for file, part in parts:
        head = (Path(file.path).name,) if several else ()
        title = part_title(part, users)
        group = tuple(title if name == part.name else _short(name) for name in part.group)
        tree.add((*head, *group), title, part)
    total = sum(part.nbytes for _, part in parts)
    gaps = sum(part.nbytes for _, part in parts if part.kind in ("alignment", "slack"))
    text = [
        f"{total:,} bytes in {plural(len(parts), 'part')}",
        f"gaps {format_bytes(gaps, size_unit)}",
    ]
    if several:
        text.insert(0, f"{len(known)} files")
    return SizeMap(
        tuple(one.file for one in known),
        parts,
        tree.data(),
        tree.leaf(),
        np.array(tree.box, np.int64),
        _legend(parts),
        " · ".join(text),
        problems,
    )


def hue(kind: str) -> int:
    """Return the colour reference of a kind of part."""
    return next((colour for start, colour, _ in _HUES if kind.startswith(start)), _SMALL)


def _legend(parts: Sequence[tuple[LoadedFile, FilePart]]) -> tuple[LegendEntry, ...]:
    kinds = {part.kind for _, part in parts}
    entries = [
        LegendEntry(label, Swatch.FILL, colour)
        for start, colour, label in _HUES
        if any(kind.startswith(start) for kind in kinds)
    ]
    if any(hue(kind) == _SMALL for kind in kinds):
        entries.append(LegendEntry("tables, headers, gaps", Swatch.FILL, _SMALL))
    return tuple(entries)


def _holders(groups: Iterable[tuple[str, ...]]) -> set[tuple[str, ...]]:
    """Return the groups that hold other groups."""
    above = {group[:-1] for group in groups}
    return {group[:end] for group in above for end in range(len(group) + 1)}


class _Boxes:
    """Collects boxes within boxes."""

    def __init__(self, root: str, holders: set[tuple[str, ...]]) -> None:
        self._holders = holders
        self.names = [root]
        self._bytes = [0]
        self._parent = [-1]
        self._colour = [_NO_COLOUR]
        self._hues: dict[str, int] = {}  # by kind
        self._kinds = [""]
        self._known: dict[tuple[int, str], int] = {}
        self.box: list[int] = []  # of each part

    def add(self, group: tuple[str, ...], title: str, part: FilePart) -> None:
        """Add a part below its group; one that is titled like its group is the group's leaf."""
        at = 0
        path = [at]
        last = group[-1] if group else ""
        own = title == last or (part.group not in self._holders and title.endswith(f".{last}"))
        for name in group[:-1] if own else group:
            at = self._group(at, name)
            path.append(at)
        if len(self.names) >= _MANY:
            at = self._group(at, "smaller parts")
        elif own and title != last:  # the group is the part: one box, with the shorter name
            at = self._group(at, last, part.kind)
        else:
            at = self._box(at, title, part.kind)
        path.append(at)
        self.box.append(at)
        colour = self._hues.get(part.kind)
        if colour is None:
            colour = self._hues[part.kind] = hue(part.kind)
        for box in path:
            self._bytes[box] += part.nbytes
            known = self._colour[box]
            self._colour[box] = colour if known in (_NO_COLOUR, colour) else _SMALL

    def _group(self, parent: int, name: str, kind: str = "") -> int:
        found = self._known.get((parent, name))
        if found is None:
            found = self._known[parent, name] = self._box(parent, name, kind)
        return found

    def _box(self, parent: int, name: str, kind: str) -> int:
        self.names.append(name)
        self._bytes.append(0)
        self._parent.append(parent)
        self._kinds.append(kind)
        self._colour.append(_NO_COLOUR)
        return len(self.names) - 1

    def leaf(self) -> NDArray[np.int64]:
        """Return the first part of each box, -1 for what holds boxes only."""
        found = np.full(len(self.names), -1, np.int64)
        found[self.box[::-1]] = np.arange(len(self.box) - 1, -1, -1)  # of equal ones the last stays
        return found

    def data(self) -> TreemapData:
        """Return the columns."""
        colours = [_SMALL if found == _NO_COLOUR else found for found in self._colour]
        return TreemapData(
            tuple(self.names),
            np.array(self._bytes, np.int64),
            np.array(self._parent, np.int64),
            np.array(colours, np.int64),
            tuple(self._kinds),
        )


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Duplicates found by hashing all parts.

    Attributes:
        parts: the parts; duplicates name the first of equal ones
        wasted: bytes stored more than once
        count: parts that repeat an earlier one
    """

    parts: tuple[tuple[LoadedFile, FilePart], ...]
    wasted: int
    count: int


def find_duplicates(sizes: SizeMap) -> Duplicates:
    """Return the parts with equal contents named; reads every byte of the files once."""
    found: list[tuple[LoadedFile, FilePart]] = []
    for file in sizes.files:
        own = [part for other, part in sizes.parts if other is file]
        found += [(file, part) for part in mark_duplicates(own, file.data)]
    again = [part for _, part in found if part.duplicate_of]
    return Duplicates(tuple(found), sum(part.nbytes for part in again), len(again))
