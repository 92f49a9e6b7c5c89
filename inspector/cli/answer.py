"""The result of a verb: JSON data, tables as text, and an exit code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from inspector.tables.query import Query, Selected, select
from inspector.tables.table import Table
from inspector.tables.tree import Tree
from schema.errors import Issue

# 130 is 128 + SIGINT, as shells report it
FINE, JUDGED, USAGE, UNREADABLE, FAILED, INTERRUPTED = 0, 1, 2, 3, 4, 130


class CommandError(Exception):
    """A reason to stop, as one sentence for the user.

    Attributes:
        code: exit code
    """

    def __init__(self, sentence: str, code: int = USAGE) -> None:
        self.code = code
        super().__init__(sentence)


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """Rows of a table of ``inspector.tables``.

    Attributes:
        title: line above the table, may be empty
        selected: the rows
        total: whether a last line sums columns with a total
    """

    title: str
    selected: Selected
    total: bool = False


def shown(
    table: Table | Tree, title: str = "", *, top: int | None = None, total: bool = False
) -> Shown:
    """Return a table for the result of a verb.

    Args:
        table: all rows
        title: line above it
        top: largest number of rows; the title then has the total number
        total: whether a last line sums columns
    """
    length = table.rows.length if isinstance(table, Tree) else table.length
    if top is not None and top < length:
        title = f"{title} ({top:,} of {length:,} rows; --top shows more)".lstrip()
    return Shown(title, select(table, Query(top=top)), total and length > 0)


@dataclass(frozen=True, slots=True)
class Lazy:
    """A list of JSON values created one at a time on writing.

    Attributes:
        items: the sources
        make: returns the JSON value of an item
    """

    items: Iterable[Any]
    make: Callable[[Any], Any]

    def __iter__(self) -> Iterator[Any]:
        return map(self.make, self.items)


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a verb.

    Attributes:
        data: the ``data`` member of the JSON envelope
        lines: text above the tables
        tables: for text, TSV and CSV; TSV and CSV contain the first
        issues: in addition to those of the session
        code: exit code
        document: pieces of a file, for verbs that write a special file format
    """

    data: Mapping[str, Any]
    lines: Sequence[str] = ()
    tables: Sequence[Shown] = ()
    issues: Sequence[Issue] = ()
    code: int = FINE
    document: Iterable[str] | None = field(default=None)
