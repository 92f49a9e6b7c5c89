"""The description of a drawing for screen readers: its role, and its selection as it is read out.

Qt gives a role to its own widgets only. A drawing gets one by a factory of interfaces, which Qt
queries for each object that an assistive program looks at for the first time.
"""

from __future__ import annotations

from functools import cache

import shiboken6
from PySide6.QtCore import QObject
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent, QAccessibleInterface
from PySide6.QtWidgets import QAccessibleWidget, QLineEdit, QToolButton, QWidget

_roles: dict[str, QAccessible.Role] = {}  # by the name of the class
# Qt owns the interfaces and deletes them with their widgets; until then Python has to keep its half
_kept: list[QAccessibleInterface] = []


def set_accessible_role(widget: QWidget, role: QAccessible.Role) -> None:
    """Give widgets of the class of this one a role; before its name, for which Qt looks."""
    _roles[type(widget).__name__] = role
    _install()


def announce(widget: QWidget, text: str) -> None:
    """Have a text read out, if anyone listens."""
    if text and QAccessible.isActive():
        QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(widget, text))


def spoken_name(label: str, about: str) -> str:
    """Return what a button does, with its label: by that a voice presses the button."""
    words = label.rstrip(" …")
    return about if words.lower() in about.lower() else f"{words}: {about}"


def add_clear_button(field: QLineEdit) -> None:
    """Give a field a button that clears it, with the name that Qt's own lacks."""
    field.setClearButtonEnabled(True)
    for button in field.findChildren(QToolButton):
        button.setAccessibleName(f"Clear: {field.accessibleName()}")


@cache
def _install() -> None:
    QAccessible.installFactory(_interface)


def _interface(class_name: str, owner: QObject) -> QAccessibleInterface | None:
    role = _roles.get(class_name)
    if role is None or not isinstance(owner, QWidget):
        return None
    _kept[:] = [one for one in _kept if shiboken6.isValid(one)]
    made = QAccessibleWidget(owner, role)
    _kept.append(made)
    return made
