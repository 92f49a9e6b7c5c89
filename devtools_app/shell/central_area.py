"""The middle of the window: a tab row with one view at a time, or two side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from PySide6.QtCore import QEvent, QPointF, Qt, Signal
from PySide6.QtGui import QHoverEvent
from PySide6.QtWidgets import (
    QApplication,
    QFrame,
    QHBoxLayout,
    QSplitter,
    QStackedWidget,
    QTabBar,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from devtools_app.shell.dock_title import counted
from devtools_app.shell.panel_buttons import PanelButtons
from devtools_app.shell.view_host import ViewHost
from devtools_app.state.tab_groups import tab_key
from devtools_app.views.spec import ViewContext, ViewSpec
from devtools_app.widgets.fields import leave_wheel

_HALF = 10_000  # pixels, which the splitter scales down; of small sizes it makes the least ones


class Lender(Protocol):
    """A panel whose view can be a tab as well."""

    def lend(self) -> ViewHost:
        """Return the place of the view, to be shown elsewhere."""
        ...

    def take_back(self) -> None:
        """Show the view here again."""
        ...


class ViewTabs(QWidget):
    """A tab row over a stack of view hosts.

    Signals:
        chosen(name): the user chose another tab
    """

    chosen = Signal(str)

    def __init__(self, context: ViewContext, specs: Iterable[ViewSpec], name: str) -> None:
        super().__init__()
        self._specs = {spec.name: spec for spec in specs}
        self._hosts = {one: ViewHost(spec, context) for one, spec in self._specs.items()}
        self._lenders: Mapping[str, Lender] = {}
        self._counts: dict[str, int] = {}
        self._corner: PanelButtons | None = None
        self._bar = QTabBar()
        self._bar.setAccessibleName(name)
        self._bar.setExpanding(False)
        self._bar.setDrawBase(False)
        leave_wheel(self._bar)
        self._bar.setUsesScrollButtons(True)
        self._bar.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._stack = QStackedWidget()
        for host in self._hosts.values():
            self._stack.addWidget(host)
        top = QFrame()
        top.setObjectName("tabRow")
        self._top = QHBoxLayout(top)
        self._top.setContentsMargins(0, 0, 0, 0)
        self._top.setSpacing(0)
        self._top.addWidget(self._bar, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(top)
        layout.addWidget(self._stack, 1)
        self._bar.currentChanged.connect(self._changed)
        # queued: the view is in front by then; the arrow keys leave the keyboard on the tabs
        self._bar.tabBarClicked.connect(self._clicked, Qt.ConnectionType.QueuedConnection)

    @property
    def hosts(self) -> tuple[ViewHost, ...]:
        """Return the places of the views; without those that are lent."""
        return tuple(self._hosts.values())

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the views that have a tab, in order."""
        return tuple(str(self._bar.tabData(tab)) for tab in range(self._bar.count()))

    @property
    def current(self) -> ViewHost | None:
        """Return the host in front."""
        found = self._stack.currentWidget()
        return found if self._bar.count() and isinstance(found, ViewHost) else None

    def share(self, lenders: Mapping[str, Lender]) -> None:
        """Show views of panels in their places instead of a second copy."""
        self._lenders = lenders
        for name in lenders:
            host = self._hosts.pop(name)
            self._stack.removeWidget(host)
            host.deleteLater()

    def show_view(self, name: str, names: tuple[str, ...]) -> None:
        """Show tabs, one of them in front, without a signal.

        The keyboard goes along, to what the view is for, if it was in the view before.

        Args:
            name: of the view in front; it has a tab even if the names lack it
            names: of the tabs, in order
        """
        if name not in self._specs:
            name = next(iter(names), "")
        shown = names if name in names or not name else (*names, name)
        former, focus = self.current, QApplication.focusWidget()
        here = former is not None and focus is not None and former.isAncestorOf(focus)
        blocked = self._bar.blockSignals(True)
        if shown != self.names:
            self._fill(shown)
        if name:
            self._bar.setCurrentIndex(shown.index(name))
            self._bring_up(name)
        self._bar.blockSignals(blocked)
        if here and self.current is not None and self.current is not former:
            self.current.give_focus()

    def set_count(self, name: str, count: int) -> None:
        """Show a number behind the title of a view; none for 0."""
        self._counts[name] = count
        if name in self.names:
            title = counted(self._specs[name].title, count)
            self._bar.setTabText(self.names.index(name), title)

    def set_corner(self, corner: PanelButtons) -> None:
        """Put buttons at the end of the tabs; they are folded where the tabs have no room."""
        self._corner = corner
        self._top.addWidget(corner)

    def _fit_corner(self) -> None:
        # tabs that are asked for their size before they are seen never tell their row of it
        if self._corner is not None and self._bar.isVisible():
            room = self.width() - self._corner.whole_width
            self._corner.set_folded(on=self._bar.sizeHint().width() > room)

    @override
    def event(self, event: QEvent) -> bool:
        """Fit the corner to another width of the row, or of the tabs."""
        handled = super().event(event)
        if event.type() in (QEvent.Type.Resize, QEvent.Type.LayoutRequest, QEvent.Type.Show):
            self._fit_corner()
        return handled

    def _fill(self, names: tuple[str, ...]) -> None:
        while self._bar.count():
            self._bar.removeTab(0)
        for number, name in enumerate(names, 1):
            title = self._specs[name].title
            index = self._bar.addTab(counted(title, self._counts.get(name, 0)))
            self._bar.setTabData(index, name)
            key = tab_key(number)
            self._bar.setTabToolTip(index, f"{title}  {key}" if key else "")
        # Qt keeps the tab that was below the pointer highlighted, whichever is there now
        nowhere = QPointF(-1, -1)
        leave = QHoverEvent(QEvent.Type.HoverLeave, nowhere, nowhere, nowhere)
        QApplication.sendEvent(self._bar, leave)

    def _bring_up(self, name: str, *, by_user: bool = False) -> None:
        for other, lender in self._lenders.items():
            if other != name:
                lender.take_back()
        host = self._hosts[name] if name in self._hosts else self._lenders[name].lend()
        if by_user:
            host.postpone_first()
        if self._stack.indexOf(host) < 0:
            self._stack.addWidget(host)
        self._stack.setCurrentWidget(host)

    def _changed(self, index: int) -> None:
        if index >= 0:
            name = str(self._bar.tabData(index))
            self._bring_up(name, by_user=True)
            self.chosen.emit(name)

    def _clicked(self, _index: int) -> None:
        if self.current is not None:
            self.current.give_focus()


class Centre(QSplitter):
    """One or two tab rows.

    Signals:
        chosen(name): the user chose another view
        split_chosen(name): the same in the second row
    """

    chosen = Signal(str)
    split_chosen = Signal(str)

    def __init__(self, context: ViewContext, specs: Iterable[ViewSpec]) -> None:
        super().__init__(Qt.Orientation.Horizontal)
        self._context = context
        self._specs = tuple(specs)
        self._main = ViewTabs(context, self._specs, "Views")
        self._second: ViewTabs | None = None
        self.setChildrenCollapsible(False)
        self.setHandleWidth(1)
        self.addWidget(self._main)
        self._main.chosen.connect(self.chosen)

    @property
    def hosts(self) -> tuple[ViewHost, ...]:
        """Return all places for views, of both rows; without those that are lent."""
        return self._main.hosts + (self._second.hosts if self._second is not None else ())

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the views that have a tab in the first row, in order."""
        return self._main.names

    @property
    def rows(self) -> tuple[QWidget, ...]:
        """Return the rows of tabs with their views that can be seen."""
        shown = self._second is not None and self._second.isVisible()
        return (self._main, self._second) if self._second is not None and shown else (self._main,)

    @property
    def current(self) -> ViewHost | None:
        """Return the host that has the keyboard, else the one in front of the first row."""
        second = self._second
        if second is not None and second.isVisible() and second.isAncestorOf(self.focusWidget()):
            return second.current
        return self._main.current

    def share(self, lenders: Mapping[str, Lender]) -> None:
        """Show views of panels in the first row instead of a second copy."""
        self._main.share(lenders)

    def set_corner(self, corner: PanelButtons) -> None:
        """Put buttons at the end of the tabs of the first row."""
        self._main.set_corner(corner)

    def set_count(self, name: str, count: int) -> None:
        """Show a number behind the title of a view; none for 0."""
        for tabs in filter(None, (self._main, self._second)):
            tabs.set_count(name, count)

    def show_views(self, view: str, split_view: str, names: tuple[str, ...]) -> None:
        """Bring views to the front; an empty second name hides the second row.

        Args:
            view: name of the view in front
            split_view: of the second row
            names: of the tabs of both, in order
        """
        self._main.show_view(view, names)
        if split_view:
            self._second_row().show_view(split_view, names)
        if self._second is not None:
            self._second.setVisible(bool(split_view))

    def _second_row(self) -> ViewTabs:
        if self._second is None:
            self._second = ViewTabs(self._context, self._specs, "Views at the right")
            self._second.chosen.connect(self.split_chosen)
            self.addWidget(self._second)
            self.setSizes([_HALF, _HALF])
        return self._second
