"""Recipe edits in the context menus of views."""

from __future__ import annotations

from collections.abc import Hashable

from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QMenu, QWidget

from devtools_app.actions.edit_menu import EditMenu
from devtools_app.actions.requests import Ask, OfferEdits
from devtools_app.widgets.item_panel import ItemPanel
from inspector.tables.selection import Selection


def offer_edits_of_rows(panel: ItemPanel, ask: Ask) -> None:
    """Offer, in the menu of a table or tree, the edits on what its rows select."""

    def more(menu: QMenu, key: Hashable) -> None:
        if isinstance(key, Selection):
            ask(OfferEdits(key, lambda offers: EditMenu(menu, offers)))

    panel.more_actions = more


def edits_menu(parent: QWidget, selection: Selection, ask: Ask) -> QMenu:
    """Return a menu with the edits of a selection."""
    menu = QMenu(parent)
    menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    menu.setToolTipsVisible(True)
    ask(OfferEdits(selection, lambda offers: EditMenu(menu, offers)))
    if menu.isEmpty():
        nothing = menu.addAction("No recipe edits available here")
        nothing.setEnabled(False)
    return menu


def show_edits(parent: QWidget, at: QPoint, selection: Selection, ask: Ask) -> QMenu:
    """Show the edits of a selection at a position of a widget; return the menu."""
    menu = edits_menu(parent, selection, ask)
    menu.popup(parent.mapToGlobal(at))
    return menu
