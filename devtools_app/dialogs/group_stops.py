"""One Tab stop for a whole group of fields: its heading; the arrow down enters the fields."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QApplication, QWidget
from typing_extensions import override

_POLICY = "policyInside"  # of a field while the keyboard is in its group
_TAB = Qt.FocusPolicy.TabFocus


class GroupStops(QObject):
    """Lets Tab pass over the fields of a group until the keyboard is in one of them."""

    def __init__(self, head: QWidget, body: QWidget) -> None:
        super().__init__(head)
        self._head, self._body = head, body
        self._entered = False
        head.installEventFilter(self)
        body.installEventFilter(self)
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        app.focusChanged.connect(self._focus_changed)
        self.settle()

    def settle(self) -> None:
        """Take fields in that were added meanwhile."""
        for field in self._body.findChildren(QWidget):
            if field.focusProxy() is not None:
                continue
            kept = field.property(_POLICY)
            if not self._entered and field.focusPolicy() & _TAB:
                field.setProperty(_POLICY, field.focusPolicy().value)
                field.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
            elif self._entered and kept is not None:
                field.setProperty(_POLICY, None)
                field.setFocusPolicy(Qt.FocusPolicy(kept))

    def enter(self) -> bool:
        """Give the keyboard to the first field; return whether there is one."""
        self._set(entered=True)
        for field in self._in_order():
            field.setFocus(Qt.FocusReason.TabFocusReason)
            return True
        self._set(entered=False)
        return False

    def _in_order(self) -> list[QWidget]:
        found: list[QWidget] = []
        now = self._body.nextInFocusChain()
        while now is not None and now is not self._body:
            takes = now.focusPolicy() & _TAB and now.focusProxy() is None
            if self._body.isAncestorOf(now) and takes and now.isVisible() and now.isEnabled():
                found.append(now)
            now = now.nextInFocusChain()
        return found

    def _focus_changed(self, _old: QWidget | None, new: QWidget | None) -> None:
        if new is not None and new.window() is self._body.window():
            self._set(entered=self._body.isAncestorOf(new))

    def _set(self, *, entered: bool) -> None:
        if entered != self._entered:
            self._entered = entered
            self.settle()

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if not isinstance(event, QKeyEvent) or event.type() != QEvent.Type.KeyPress:
            return False
        key = event.key()
        if watched is self._head:
            return key == Qt.Key.Key_Down and not self._body.isHidden() and self.enter()
        if key in (Qt.Key.Key_Down, Qt.Key.Key_Up):  # those that a field has no use for
            return self._step(1 if key == Qt.Key.Key_Down else -1)
        return False

    def _step(self, by: int) -> bool:
        fields, now = self._in_order(), QApplication.focusWidget()
        if now not in fields:
            return False
        to = fields.index(now) + by
        target = self._head if to < 0 else fields[min(to, len(fields) - 1)]
        target.setFocus(Qt.FocusReason.TabFocusReason)
        return True
