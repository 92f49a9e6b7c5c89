"""Rows of a table as the items of a list in a dialog."""

from __future__ import annotations

from PySide6.QtWidgets import QTreeWidget, QTreeWidgetItem

from inspector.tables.table import Table


def show_rows(found: QTreeWidget, table: Table) -> list[QTreeWidgetItem]:
    """Replace the rows of a list by those of a table; return their items."""
    found.clear()
    found.setHeaderLabels([column.heading for column in table.columns])
    places = range(len(table.columns))
    items = [QTreeWidgetItem([table.text(row, at) for at in places]) for row in range(table.length)]
    found.addTopLevelItems(items)
    return items
