"""Where the keyboard goes when a view is opened: to what the view is for."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSpinBox,
    QComboBox,
    QLineEdit,
    QPushButton,
    QWidget,
)

from devtools_app.widgets.empty_state import EmptyState

_CONTROLS = (QAbstractButton, QComboBox, QLineEdit, QAbstractSpinBox)


def takes_keys(widget: QWidget) -> bool:
    """Return whether Tab reaches a widget that is visible."""
    return bool(widget.focusPolicy() & Qt.FocusPolicy.TabFocus) and widget.isVisible()


def order_keys(before: QWidget, parts: Iterable[QWidget]) -> None:
    """Put the controls of widgets into the order of Tab, behind one that is there already.

    What is created late would be after all other views.
    """
    for part in parts:
        for widget in (part, *part.findChildren(QWidget)):
            if widget.focusPolicy() & Qt.FocusPolicy.TabFocus:
                QWidget.setTabOrder(before, widget)
                before = widget


def first_focus(page: QWidget) -> QWidget | None:
    """Return what the keys of a page act on.

    That is the button which fills an empty page, else its drawing or table, of several the one at
    the upper left: others beside it show details of what is chosen in it. Else its most important
    button, a control that is not a list of choices (which arrow keys would change), any control.
    """
    parts = [one for one in (page, *page.findChildren(QWidget)) if takes_keys(one)]
    empty = (one for one in (page, *page.findChildren(EmptyState)) if isinstance(one, EmptyState))
    offers = [one.action for one in empty if one.isVisible() and one.action is not None]
    drawn = [one for one in parts if not isinstance(one, _CONTROLS)]
    drawn.sort(key=lambda one: one.mapTo(page, QPoint()).toTuple())
    primary = [one for one in parts if isinstance(one, QPushButton) and _is_primary(one)]
    quiet = [one for one in parts if not isinstance(one, QComboBox)]
    return next(iter((*offers, *drawn, *primary, *quiet, *parts)), None)


def _is_primary(button: QPushButton) -> bool:
    return button.property("primary") == "true" and button.isEnabled()
