"""A query on a table: filter, order, groups, columns, and maximum number of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from inspector.tables.filter import parse_filter
from inspector.tables.grouping import group_rows
from inspector.tables.row_order import Order, RowOrder, SortKey
from inspector.tables.table import Column, Table, title_id
from inspector.tables.tree import TOP, Arrangement, Tree, TreeOrder

DESCENDING = ":desc"


class QueryError(ValueError):
    """A query that does not fit the table, as one sentence for the user."""


@dataclass(frozen=True, slots=True)
class Query:
    """The requested rows and columns of a table, and their order.

    Attributes:
        filter: as typed into the filter box of the window
        sort: ids of columns, each with ``:desc`` behind it for the largest first
        group_by: id of a text column, may be empty
        columns: ids of the requested columns, empty for all
        top: largest number of rows, at the top level of a tree; None for all
    """

    filter: str = ""
    sort: tuple[str, ...] = ()
    group_by: str = ""
    columns: tuple[str, ...] = ()
    top: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Selected:
    """The result of a query.

    Attributes:
        table: the requested columns, all rows
        rows: the requested rows, in order
        depths: level of each in its tree, from 0; None for a table without levels
    """

    table: Table
    rows: Order
    depths: Order | None = None


def column_names(names: str | Sequence[str]) -> tuple[str, ...]:
    """Return ids of columns, given one by one or in a string with commas between them."""
    listed = names.split(",") if isinstance(names, str) else names
    return tuple(name.strip() for name in listed if name.strip())


def select(source: Table | Tree, query: Query) -> Selected:
    """Apply a query to a table or tree.

    Raises: QueryError for unknown columns, and groups of a tree; FilterError
    """
    if isinstance(source, Tree):
        if query.group_by:
            raise QueryError("--group-by does not apply: the rows of this table form a tree")
        return _of_tree(source, query)
    source = _with_more(source, query)
    order = RowOrder(source)
    requested = parse_filter(query.filter, source)
    rows = order.rows(_sort_keys(source, query.sort), requested)
    if query.group_by:
        by = column_index(source, query.group_by)
        if not source.columns[by].is_text:
            texts = ", ".join(column.id for column in source.columns if column.is_text)
            raise QueryError(f"column {query.group_by!r} is not text; available: {texts}")
        tree = group_rows(order, by, rows)
        return _of_tree(tree, replace(query, filter="", sort=()))
    rows = rows if query.top is None else rows[: query.top]
    return Selected(_with_columns(source, query.columns), rows)


def _with_more(table: Table, query: Query) -> Table:
    """Return a table with all its columns if a query names one that is made on demand."""
    asked = " ".join((query.filter, *query.sort, *query.columns)).casefold()
    asked = f"{asked} {title_id(asked)}"
    titles = table.more.titles if table.more is not None else ()
    named = any(one.casefold() in asked or title_id(one) in asked for one in titles)
    return table.complete() if named else table


def column_index(table: Table, name: str) -> int:
    """Return the column with an id or title, or the only one whose id begins with a name.

    Raises: QueryError for an unknown or ambiguous name
    """
    requested = name.strip().casefold()
    exact = [
        n for n, one in enumerate(table.columns) if requested in (one.id, one.title.casefold())
    ]
    found = exact[:1] or [n for n, one in enumerate(table.columns) if one.id.startswith(requested)]
    if requested and len(found) == 1:
        return found[0]
    more = map(title_id, table.more.titles if table.more is not None else ())
    known = ", ".join([*(column.id for column in table.columns), *more])
    problem = "unknown" if not requested or not found else "ambiguous"
    raise QueryError(f"{problem} column {name!r}; available: {known}")


def _sort_keys(table: Table, names: Sequence[str]) -> list[SortKey]:
    return [
        SortKey(column_index(table, name.removesuffix(DESCENDING)), name.endswith(DESCENDING))
        for name in names
    ]


def _with_columns(table: Table, names: Sequence[str]) -> Table:
    if not names:
        return table
    columns: list[Column] = [table.columns[column_index(table, name)] for name in names]
    return replace(table, columns=tuple(columns))


def _of_tree(tree: Tree, query: Query) -> Selected:
    arranged = TreeOrder(tree).arrange(
        _sort_keys(tree.rows, query.sort), parse_filter(query.filter, tree.rows)
    )
    rows, depths = _flattened(arranged, query.top)
    return Selected(
        _with_columns(tree.rows, query.columns),
        np.array(rows, np.int64),
        np.array(depths, np.int64),
    )


def _flattened(arranged: Arrangement, top: int | None) -> tuple[list[int], list[int]]:
    """Return the nodes of a tree in reading order, and the level of each."""
    roots = [arranged.child(TOP, row) for row in range(arranged.count(TOP))]
    pending = [(node, 0) for node in reversed(roots[:top])]
    rows: list[int] = []
    depths: list[int] = []
    while pending:
        node, depth = pending.pop()
        rows.append(node)
        depths.append(depth)
        below = [arranged.child(node, row) for row in range(arranged.count(node))]
        pending += [(child, depth + 1) for child in reversed(below)]
    return rows, depths
