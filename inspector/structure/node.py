"""A line of the structure tree, and its construction from fields, tables, lists and values.

A node stores the position of its bytes; its children are created when it is opened. Long lists are
split into
pages, so that no step creates more than a page of nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeVar, cast

from schema.errors import FormatError
from schema.flatbuf.header import HeaderField
from schema.flatbuf.reader import Reader
from schema.flatbuf.spec import Spec
from schema.flatbuf.walk import FieldPlace, children, element_count, elements, root_place
from schema.objects.plural import plural

PAGE = 500  # children per node: a tree of a million tables stays scrollable
T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class StructureNode:
    """One line of the tree.

    Attributes:
        name: field, element or member
        type: as written in the format's documents
        text: value, empty for containers
        data: the bytes that contain it, or None
        offset: first byte in data, or None
        nbytes: bytes of the datum itself
        base: added to offset for the position in the file; -1 if compressed in it
        meaning: one sentence on its purpose, shown on hover
        opens: creates the children, None for leaves
        failed: the text is the reason why it cannot be read
    """

    name: str
    type: str = ""
    text: str = ""
    data: memoryview | None = None
    offset: int | None = None
    nbytes: int | None = None
    base: int = 0
    meaning: str = ""
    opens: Callable[[], Sequence[StructureNode]] | None = None
    failed: bool = False

    def children(self) -> tuple[StructureNode, ...]:
        """Return the children; a node with the error if they cannot be read."""
        if self.opens is None:
            return ()
        try:
            return tuple(self.opens())
        except (FormatError, KeyError, ValueError, RecursionError) as error:
            return (StructureNode("unreadable", text=str(error), failed=True),)

    @property
    def position(self) -> int | None:
        """Return the position in the file, or None."""
        return None if self.offset is None or self.base < 0 else self.base + self.offset


def header_node(fields: Sequence[HeaderField], data: memoryview, base: int = 0) -> StructureNode:
    """Return a node for the fixed fields at the head of a file."""
    rows = [
        StructureNode(
            field.name,
            f"{field.size} bytes",
            field.value if isinstance(field.value, str) else f"{field.value:,}",
            data,
            field.offset,
            field.size,
            base,
            field.meaning,
        )
        for field in fields
    ]
    start = min((field.offset for field in fields), default=0)
    end = max((field.offset + field.size for field in fields), default=0)
    return StructureNode(
        "header", "", f"{len(rows)} fields", data, start, end - start, base, opens=lambda: rows
    )


def table_node(
    data: memoryview, reader: Reader, table: Spec[Any], root: int, base: int = 0
) -> StructureNode:
    """Return the root table of a flatbuffer, to be opened field by field."""
    return _place_node(reader, root_place(reader, table, root), data, base)


def _place_node(reader: Reader, place: FieldPlace, data: memoryview, base: int) -> StructureNode:
    node = StructureNode(place.name, place.type, place.text, data, place.offset, place.nbytes, base)
    if place.kind == "absent":
        return replace(node, offset=None, nbytes=None, meaning="not in the file: default value")
    if not place.expandable:
        return node
    return replace(node, opens=lambda: _place_children(reader, place, data, base))


def _place_children(
    reader: Reader, place: FieldPlace, data: memoryview, base: int
) -> list[StructureNode]:
    def page(start: int, stop: int) -> list[StructureNode]:
        found = elements(reader, place, start, stop)
        return [_place_node(reader, one, data, base) for one in found]

    count = element_count(reader, place)
    if count:
        return paged(count, page)
    return [_place_node(reader, child, data, base) for child in children(reader, place)]


def paged(
    count: int, make: Callable[[int, int], list[StructureNode]], first: int = 0
) -> list[StructureNode]:
    """Return all items of a list, or nodes for its pages if it is long.

    Args:
        count: length of the list
        make: returns the nodes of a range
        first: number of the first element
    """
    if count <= PAGE:
        return make(first, first + count)
    size = PAGE
    while count > size * PAGE:
        size *= PAGE
    found: list[StructureNode] = []
    for start in range(first, first + count, size):
        stop = min(start + size, first + count)
        title = f"[{start:,} … {stop - 1:,}]"
        opens = _page_opener(start, stop, make)
        found.append(StructureNode(title, "page", f"{stop - start:,} entries", opens=opens))
    return found


def _page_opener(
    start: int, stop: int, make: Callable[[int, int], list[StructureNode]]
) -> Callable[[], list[StructureNode]]:
    return lambda: paged(stop - start, make, start)


def listed(items: Sequence[T], node: Callable[[int, T], StructureNode]) -> list[StructureNode]:
    """Return a node for each item, in pages if there are many."""

    def make(start: int, stop: int) -> list[StructureNode]:
        return [node(start + at, item) for at, item in enumerate(islice(items, start, stop))]

    return paged(len(items), make)


def value_node(name: str, value: object, depth: int = 0) -> StructureNode:
    """Return a node for plain data: scalars, strings, lists and mappings, at any depth."""
    if isinstance(value, dict):
        mapping = cast("dict[object, object]", value)
        keys = list(mapping)
        text = f"{len(keys):,} keys"

        def entry(_: int, key: object) -> StructureNode:
            return value_node(str(key), mapping[key], depth + 1)

        return StructureNode(name, "object", text, opens=lambda: listed(keys, entry))
    if isinstance(value, (list, tuple)):
        items = cast("Sequence[object]", value)

        def element(at: int, item: object) -> StructureNode:
            return value_node(f"[{at}]", item, depth + 1)

        kind = "array" if isinstance(value, list) else "tuple"
        text = plural(len(items), "entry", "entries")
        return StructureNode(name, kind, text, opens=lambda: listed(items, element))
    shown = value if isinstance(value, str) else repr(value)
    return StructureNode(name, type(value).__name__, _short(shown))


def _short(text: str, most: int = 2000) -> str:
    return text if len(text) <= most else f"{text[:most]}… ({len(text):,} characters)"
