"""Lines of the structure of files: what each field, table or member is, and where its bytes are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from inspector.files.session import Session
from inspector.structure.files import structure
from inspector.structure.node import StructureNode
from inspector.tables.selection import Units
from inspector.tables.table import Column, Table, number_column, text_column
from inspector.tables.tree import TOP, Tree
from inspector.units import Formatter, Quantity, Unit, column_formatter

TITLES = ("name", "type", "value", "offset", "bytes")
MOST_LINES = 300_000  # of the table, and looked at in one search of the window
_ADDRESS, _COUNT = (
    column_formatter(quantity, Unit("", 1.0), 0.0)
    for quantity in (Quantity.ADDRESS, Quantity.COUNT)
)
_CELLS: tuple[tuple[Callable[[StructureNode], Any], Formatter], ...] = (
    (lambda node: node.name, str),
    (lambda node: node.type, str),
    (lambda node: node.text, str),
    (lambda node: node.position, _ADDRESS),
    (lambda node: node.nbytes, _COUNT),
)


def structure_lines(session: Session, _units: Units) -> Tree:
    """Return every field, table and member of the files, below what holds it.

    Of more than ``MOST_LINES`` the first ones in depth-first order.
    """
    nodes: list[StructureNode] = []
    parents: list[int] = []
    waiting = [(TOP, one) for one in reversed(structure(session))]
    while waiting and len(nodes) < MOST_LINES:
        parent, node = waiting.pop()
        waiting += [(len(nodes), one) for one in reversed(node.children())]
        nodes.append(node)
        parents.append(parent)
    noun = f"lines, the first {MOST_LINES:,}" if waiting else "lines"
    rows = Table(_columns(nodes), len(nodes), noun=noun)
    return Tree(rows, np.array(parents, np.int64))


def line_table(lines: Sequence[tuple[int, StructureNode]]) -> Table:
    """Return lines of the tree with their depth, for export."""
    depths = number_column("depth", [depth for depth, _ in lines], Quantity.COUNT)
    return Table((depths, *_columns([node for _, node in lines])), len(lines), noun="lines")


def line_cell(node: StructureNode, column: int) -> str:
    """Return a cell of a line as the table shows it, in one line."""
    get, shown = _CELLS[column]
    value = get(node)
    return "" if value is None else shown(value).replace("\n", " ")


def _columns(nodes: Sequence[StructureNode]) -> tuple[Column, ...]:
    name, kind, text, place, size = ([get(node) for node in nodes] for get, _ in _CELLS)
    return (
        text_column(TITLES[0], name, mono=True),
        text_column(TITLES[1], kind),
        text_column(TITLES[2], text, mono=True),
        number_column(TITLES[3], place, Quantity.ADDRESS, missing=""),
        number_column(TITLES[4], size, Quantity.COUNT, missing=""),
    )
