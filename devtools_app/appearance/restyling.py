"""Restyles the widgets of the program after its style sheet or fonts were replaced.

It does so in slices between the user's events, which begin with what can be seen: of thousands of
widgets a hundred or two are on the screen, and all of them take a third of a second.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import cast
from weakref import WeakMethod

from PySide6.QtCore import QCoreApplication, QEvent, QObject, Qt
from PySide6.QtWidgets import QApplication, QSplitter, QWidget
from shiboken6 import isValid
from typing_extensions import override

from devtools_app.appearance.slices import Slices

Call = Callable[[], object]
_LAST = Qt.EventPriority.LowEventPriority.value  # as Qt posts its own requests to paint


class _HeldLayouts(QObject):
    """Keeps widgets from laying out their children until all of these are restyled.

    Each restyled child asks for a new layout of all that it lies in, which measures every panel
    and page again: 10 to 20 ms for the window and 5 for a stack of views, between any two slices.
    """

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._held: dict[QWidget, bool] = {}  # and whether it was asked for a layout

    def hold(self, widgets: Iterable[QWidget]) -> None:
        for widget in widgets:
            if widget not in self._held:
                self._held[widget] = False
                widget.installEventFilter(self)

    def release(self) -> Iterator[Call]:
        """Yield the layouts that were asked for."""
        held, self._held = self._held, {}
        for widget, asked in held.items():
            if isValid(widget):
                widget.removeEventFilter(self)
                if asked:
                    yield partial(_lay_out, widget)

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() != QEvent.Type.LayoutRequest or watched not in self._held:
            return False
        self._held[cast("QWidget", watched)] = True
        return True


class Restyling(QObject):
    """Applies the rules to widgets, and calls those that draw with colours of their own."""

    def __init__(self, app: QApplication, parent: QObject) -> None:
        super().__init__(parent)
        self._app = app
        self._followers: list[tuple[WeakMethod[Call], bool]] = []  # and whether of sizes only
        self._unpainted: list[QWidget] = []
        self._layouts = _HeldLayouts(self)
        self._slices = Slices(self)

    def begin(self, sheet: str) -> None:
        """Set the style sheet at once: widgets that are made from now on have its looks."""
        for call in self._replace(sheet):
            call()
        self._slices.start(map(_do, self._calls((), size=True)))

    @property
    def busy(self) -> bool:
        """Return whether widgets are still to follow."""
        return self._slices.busy

    def follow(self, call: Call, *, size_only: bool) -> None:
        """Call a method of a widget after changes, as long as the widget exists."""
        self._followers.append((WeakMethod(call), size_only))

    def set_rules(self, sheet: str, then: Iterable[Call], *, size: bool) -> None:
        """Replace the style sheet of the application; the widgets follow from the next event on.

        Qt itself restyles every widget that it has cached rules for, and below each all of its
        children again: 54,000 times for 4,300 widgets, 2.3 s. Without cached rules it restyles
        none (``QStyleSheetStyle::repolish``), which is left to this object.

        Args:
            sheet: the rules
            then: calls to make once what is seen is restyled, which resets fonts
            size: whether the text size was changed as well
        """
        for window in self._app.topLevelWidgets():
            if window.isVisible() and window.updatesEnabled():
                window.setUpdatesEnabled(False)  # it is painted once what is seen is restyled
                self._unpainted.append(window)
        self._slices.start(map(_do, chain(self._replace(sheet), self._calls(then, size=size))))

    def _replace(self, sheet: str) -> Iterator[Call]:
        def forget() -> None:
            if self._app.styleSheet():
                self._app.style().unpolish(self._app)

        def take() -> None:
            forget()  # rules of widgets that were measured since; 450 ms if there are some
            self._app.setStyleSheet(sheet)

        yield forget
        yield take

    def _calls(self, then: Iterable[Call], *, size: bool) -> Iterator[Call]:
        """Yield what is to be done: for what is seen, to paint it, and for the rest."""
        tops = self._app.topLevelWidgets()
        seen = list(_tree(tops, _is_due))
        laid_out = [one for one in seen if one.layout() is not None or isinstance(one, QSplitter)]
        done = {id(one) for one in seen}
        self._layouts.hold(laid_out)
        yield from (partial(self._polish, widget) for widget in seen)
        yield from then
        self._followers = [one for one in self._followers if _owner(one[0]) is not None]
        told = [follower for follower, size_only in self._followers if size or not size_only]
        later: list[WeakMethod[Call]] = []
        for follower in told:
            owner = _owner(follower)
            if owner is None or id(owner) not in done:
                later.append(follower)  # behind the rules of its owner, which reset its font
            else:
                yield partial(_call, follower)
        if size:
            yield from self._layouts.release()
        yield self._paint
        self._layouts.hold(one for one in laid_out if isValid(one))
        others = (one for one in _tree(tops, isValid) if id(one) not in done)
        yield from (partial(self._polish, widget) for widget in others)
        yield from (partial(_call, follower) for follower in later)
        yield from self._layouts.release()

    def _paint(self) -> None:
        """Let windows be painted again.

        Qt posts no request to paint while parts of a window wait for one. The request that comes
        while painting is off is spent, and the parts wait on: the window was as before until a
        resize.
        """
        windows, self._unpainted = self._unpainted, []
        for window in windows:
            if isValid(window):
                window.setUpdatesEnabled(True)
                QCoreApplication.postEvent(window, QEvent(QEvent.Type.UpdateRequest), _LAST)

    def _polish(self, widget: QWidget) -> None:
        if not isValid(widget) or not widget.testAttribute(Qt.WidgetAttribute.WA_WState_Polished):
            return  # it is styled when it is first measured or shown
        self._app.style().polish(widget)
        QCoreApplication.sendEvent(widget, QEvent(QEvent.Type.StyleChange))


def _tree(tops: list[QWidget], includes: Callable[[QWidget], bool]) -> Iterator[QWidget]:
    """Yield widgets from the top downwards, only below those that are included."""
    waiting = deque(tops)
    while waiting:
        widget = waiting.popleft()
        if not includes(widget):
            continue
        yield widget
        if isValid(widget):
            children = (cast("QWidget", one) for one in widget.children() if one.isWidgetType())
            waiting.extend(one for one in children if not one.isWindow())


def _is_due(widget: QWidget) -> bool:
    """Return whether a widget is seen, or would be if its window were, but not menus and lists.

    Other windows that are hidden are few and small.
    """
    if widget.isWindow():
        return widget.isVisible() or widget.windowType() is not Qt.WindowType.Popup
    return widget.isVisibleTo(widget.window())


def _owner(follower: WeakMethod[Call]) -> QWidget | None:
    call = follower()
    owner = None if call is None else cast("QWidget", getattr(call, "__self__", None))
    return owner if owner is not None and isValid(owner) else None


def _lay_out(widget: QWidget) -> None:
    if isValid(widget):
        QCoreApplication.sendEvent(widget, QEvent(QEvent.Type.LayoutRequest))


def _do(call: Call) -> object:
    return call()


def _call(follower: WeakMethod[Call]) -> None:
    call = follower()
    if call is not None and _owner(follower) is not None:
        call()
