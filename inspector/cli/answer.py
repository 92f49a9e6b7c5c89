"""What a verb answers: data for machines, tables for people, an exit code for scripts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from inspector.tables.query import Query, Selected, select
from inspector.tables.table import Table
from inspector.tables.tree import Tree
from schema.errors import Issue

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
        title: line above the table, empty for none
        selected: the rows
        total: whether a last line adds the columns up that have a total
    """

    title: str
    selected: Selected
    total: bool = False


def shown(
    table: Table | Tree, title: str = "", *, top: int | None = None, total: bool = False
) -> Shown:
    """Return a table as a verb answers with it.

    Args:
        table: all rows
        title: line above it
        top: at most so many rows; the title then has how many there are
        total: whether a last line adds up
    """
    length = table.rows.length if isinstance(table, Tree) else table.length
    if top is not None and top < length:
        title = f"{title} ({top:,} of {length:,} rows; --top shows more)".lstrip()
    return Shown(title, select(table, Query(top=top)), total and length > 0)


@dataclass(frozen=True, slots=True)
class Lazy:
    """A list of JSON values that are made one at a time, when they are written.

    Attributes:
        items: what they are made of
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
        tables: for text, TSV and CSV; the first is what TSV and CSV hold
        issues: beyond those of the session
        code: exit code
        document: pieces of finished text, for verbs that write a file format of their own
    """

    data: Mapping[str, Any]
    lines: Sequence[str] = ()
    tables: Sequence[Shown] = ()
    issues: Sequence[Issue] = ()
    code: int = FINE
    document: Iterable[str] | None = field(default=None)
