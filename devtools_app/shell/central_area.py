"""The middle of the window: a tab row with one view at a time, or two side by side."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QSplitter, QStackedWidget, QTabBar, QVBoxLayout, QWidget

from devtools_app.shell.view_host import ViewHost
from devtools_app.views.spec import ViewContext, ViewSpec


class ViewTabs(QWidget):
    """A tab row over a stack of view hosts.

    Signals:
        chosen(name): the user chose another tab
    """

    chosen = Signal(str)

    def __init__(self, context: ViewContext, specs: tuple[ViewSpec, ...], name: str) -> None:
        super().__init__()
        self._specs = specs
        self._bar = QTabBar()
        self._bar.setAccessibleName(name)
        self._bar.setExpanding(False)
        self._bar.setDrawBase(False)
        self._bar.setUsesScrollButtons(True)
        self._bar.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._stack = QStackedWidget()
        self.hosts = tuple(ViewHost(spec, context) for spec in specs)
        for number, (spec, host) in enumerate(zip(specs, self.hosts, strict=True), 1):
            index = self._bar.addTab(spec.title)
            self._bar.setTabToolTip(index, f"{spec.title}  Alt+{number}" if number < 10 else "")
            self._stack.addWidget(host)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self._bar)
        layout.addWidget(self._stack, 1)
        self._bar.currentChanged.connect(self._changed)

    @property
    def current(self) -> ViewHost | None:
        """Return the host in front."""
        index = self._bar.currentIndex()
        return self.hosts[index] if 0 <= index < len(self.hosts) else None

    def show_view(self, name: str) -> bool:
        """Bring a view to the front without a signal; return whether it exists."""
        names = [spec.name for spec in self._specs]
        if name not in names:
            return False
        blocked = self._bar.blockSignals(True)
        self._bar.setCurrentIndex(names.index(name))
        self._bar.blockSignals(blocked)
        self._stack.setCurrentIndex(names.index(name))
        return True

    def _changed(self, index: int) -> None:
        self._stack.setCurrentIndex(index)
        if 0 <= index < len(self._specs):
            self.chosen.emit(self._specs[index].name)


class Centre(QSplitter):
    """One or two tab rows.

    Signals:
        chosen(name): the user chose another view
        split_chosen(name): the same in the second row
    """

    chosen = Signal(str)
    split_chosen = Signal(str)

    def __init__(self, context: ViewContext, specs: tuple[ViewSpec, ...]) -> None:
        super().__init__(Qt.Orientation.Horizontal)
        self._context = context
        self._specs = specs
        self._main = ViewTabs(context, specs, "Views")
        self._second: ViewTabs | None = None
        self.setChildrenCollapsible(False)
        self.setHandleWidth(1)
        self.addWidget(self._main)
        self._main.chosen.connect(self.chosen)

    @property
    def hosts(self) -> tuple[ViewHost, ...]:
        """Return all places for views, of both rows."""
        return self._main.hosts + (self._second.hosts if self._second is not None else ())

    @property
    def current(self) -> ViewHost | None:
        """Return the host that has the keyboard, else the one in front of the first row."""
        second = self._second
        if second is not None and second.isVisible() and second.isAncestorOf(self.focusWidget()):
            return second.current
        return self._main.current

    def show_views(self, view: str, split_view: str) -> None:
        """Bring views to the front; an empty second name means there is no second row."""
        self._main.show_view(view)
        if split_view:
            self._second_row().show_view(split_view)
        if self._second is not None:
            self._second.setVisible(bool(split_view))

    def _second_row(self) -> ViewTabs:
        if self._second is None:
            self._second = ViewTabs(self._context, self._specs, "Views at the right")
            self._second.chosen.connect(self.split_chosen)
            self.addWidget(self._second)
            self.setSizes([1, 1])
        return self._second
