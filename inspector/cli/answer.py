"""What a verb answers: data for machines, tables for people, an exit code for scripts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from inspector.tables.query import Selected
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


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a text table.

    Attributes:
        title: heading
        unit: shown behind the heading; the cells are plain numbers
        kind: text, time (ms), ticks, bytes, share, count or number
        spare: a terminal too narrow for all columns loses those with the highest number first;
            0 is always there
    """

    title: str
    kind: str = "text"
    spare: int = 0


@dataclass(frozen=True, slots=True)
class Table:
    """Rows for people, and for TSV and CSV unrounded.

    Attributes:
        title: line above the table, empty for none
        columns: headings and kinds
        rows: cells in base units (ms, bytes, fractions); None is missing
        total: last row, set apart; None for none
    """

    title: str
    columns: tuple[Column, ...]
    rows: Sequence[Sequence[Any]]
    total: Sequence[Any] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """Rows of a table of ``inspector.tables``.

    Attributes:
        title: line above the table
        selected: the rows
    """

    title: str
    selected: Selected


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
    tables: Sequence[Table | Shown] = ()
    issues: Sequence[Issue] = ()
    code: int = FINE
    document: Iterable[str] | None = field(default=None)
