"""A button that counts the columns hidden for lack of room and lists all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMenu

from devtools_app.widgets.column_fit import ColumnFit
from devtools_app.widgets.fields import ToolButton
from schema.objects.plural import plural


class FoldedColumns(ToolButton):
    """Has the number of columns that a view hides; a click lists all, to show or hide.

    Args:
        fit: of the view
        titles: returns the names of its columns
    """

    def __init__(self, fit: ColumnFit, titles: Callable[[], Sequence[str]]) -> None:
        super().__init__()
        self._fit = fit
        self._titles = titles
        self.setVisible(False)
        self.clicked.connect(self._show_menu)
        fit.folded.connect(self._folded)

    def columns_menu(self) -> QMenu:
        """Return a menu of all columns, with a mark at those shown."""
        menu = QMenu("Columns", self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for index, title in enumerate(self._titles()):
            action = menu.addAction(title)
            action.setCheckable(True)
            action.setChecked(not self._fit.is_hidden(index))
            action.toggled.connect(lambda on, index=index: self._fit.show_column(index, on))
        return menu

    def _show_menu(self) -> None:
        self.columns_menu().popup(self.mapToGlobal(self.rect().bottomLeft()))

    def _folded(self, count: int) -> None:
        self.setText(f"+{count}")
        self.setAccessibleName(f"{plural(count, 'column')} hidden for lack of room")
        self.setToolTip("Columns without room: a click lists all to show or hide")
        self.setVisible(count > 0)
