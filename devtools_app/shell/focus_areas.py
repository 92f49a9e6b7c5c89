"""F6: the keyboard goes from area to area, and back to where it was in each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QWidget
from shiboken6 import isValid

from devtools_app.shell.view_host import ViewHost


class FocusAreas:
    """The areas of a window in order; one without anything for the keyboard is skipped."""

    def __init__(self, areas: Callable[[], Sequence[QWidget]]) -> None:
        """Remember how the areas are found.

        Args:
            areas: returns those that can be seen, in order
        """
        self._areas = areas
        self._last: dict[int, QWidget] = {}  # where the keyboard was, by the id of the area

    @property
    def current(self) -> QWidget | None:
        """Return the area with the keyboard, None outside of all."""
        focus = QApplication.focusWidget()
        if focus is None:
            return None
        return next((one for one in self._areas() if one is focus or one.isAncestorOf(focus)), None)

    def step(self, by: int) -> bool:
        """Go to the next area (1) or the one before (-1); return whether there is one."""
        areas = list(self._areas())
        now, focus = self.current, QApplication.focusWidget()
        if now is not None and focus is not None:
            self._last[id(now)] = focus
        at = areas.index(now) if now in areas else (-1 if by > 0 else 0)
        for distance in range(1, len(areas) + 1):
            if self._enter(areas[(at + by * distance) % len(areas)]):
                return True
        return False

    def _enter(self, area: QWidget) -> bool:
        last = self._last.get(id(area))
        if last is not None and isValid(last) and last.isVisible() and area.isAncestorOf(last):
            last.setFocus(Qt.FocusReason.ShortcutFocusReason)
            return True
        hosts = [one for one in area.findChildren(ViewHost) if one.isVisible()]
        for host in hosts[:1]:
            host.give_focus()
            focus = QApplication.focusWidget()
            if focus is not None and area.isAncestorOf(focus):
                return True
        first = next(iter(stops(area)), None)
        if first is not None:
            first.setFocus(Qt.FocusReason.ShortcutFocusReason)
        return first is not None


def stops(area: QWidget) -> list[QWidget]:
    """Return the widgets of an area at which Tab stops, in its order.

    The chain begins at the window and is not followed back to it: PySide makes what a widget
    returns belong to it, and with the last widget of the chain the window would lose its parts.
    """
    left = sum(map(_takes_tab, area.findChildren(QWidget)))
    found: list[QWidget] = []
    now: QWidget | None = area.window()
    while len(found) < left and (now := now.nextInFocusChain()) is not None:
        if area.isAncestorOf(now) and _takes_tab(now):
            found.append(now)
    return found


def _takes_tab(widget: QWidget) -> bool:
    takes = bool(widget.focusPolicy() & Qt.FocusPolicy.TabFocus)
    return takes and widget.isEnabled() and widget.isVisible() and widget.focusProxy() is None
