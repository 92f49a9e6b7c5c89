"""The menu bar, built from the table of actions and open sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QLabel, QMainWindow, QMenu

from devtools_app.actions.table import ACTIONS, MENUS, Actions
from devtools_app.appearance.look import ThemeMode
from devtools_app.appearance.theme import FontSize, Theme
from devtools_app.shell.docks import Docks
from devtools_app.state.state import State
from devtools_app.state.tab_groups import tab_key
from devtools_app.state.transitions import BOOKMARK_SLOTS, bookmark_at
from devtools_app.viewmodels.recent_list import recent_titles
from devtools_app.views.spec import ViewSpec

Recents = tuple[tuple[str, ...], ...]
_THEME_WORDS = {
    ThemeMode.SYSTEM: "Follow the system",
    ThemeMode.LIGHT: "Light",
    ThemeMode.DARK: "Dark",
}


class Menus(QObject):
    """Owns the menus and the actions that are not in the table: views, recents, bookmarks."""

    def __init__(self, window: QMainWindow, theme: Theme, actions: Actions) -> None:
        super().__init__(window)
        self._window = window
        self._theme = theme
        self.extra: list[QAction] = []
        self._menus = {name: QMenu(f"&{name}", window) for name in MENUS}  # not the bar's: ours
        for menu in self._menus.values():
            window.menuBar().addMenu(menu)
        self._recent = QMenu("Open recent", window)
        self._bookmarks = QMenu("Bookmarks", window)
        self._others = QMenu("Other views", window)
        self._views: dict[str, QAction] = {}
        self._titles: dict[str, str] = {}
        self._listed: tuple[tuple[str, ...], Mapping[str, str]] = ((), {})
        self._add_name()
        self._fill(actions)
        self._theme_menu = self._themes()

    def _add_name(self) -> None:
        name = QLabel("ETScope")
        name.setContentsMargins(14, 0, 6, 0)
        bar = self._window.menuBar()

        def restyle() -> None:
            name.setFont(self._theme.sans(FontSize.NORMAL, strong=True))
            name.adjustSize()
            # a menu bar asks its corner for the size only when it gets one
            bar.setCornerWidget(name, Qt.Corner.TopLeftCorner)
            name.show()

        self._theme.changed.connect(restyle)
        restyle()

    def _fill(self, actions: Actions) -> None:
        for menu_name, menu in self._menus.items():
            group = ""
            for spec in ACTIONS:
                if spec.menu != menu_name:
                    continue
                if group and spec.group != group:
                    menu.addSeparator()
                group = spec.group
                menu.addAction(actions[spec.name])
                if spec.name == "sample":
                    menu.addMenu(self._recent)
                if spec.name == "bookmark":
                    menu.addMenu(self._bookmarks)

    def add_views(self, specs: Iterable[ViewSpec], show: Callable[[str], object]) -> None:
        """Add one entry per view of the middle, before the rest of the menu."""
        for spec in specs:
            action = QAction(spec.title, self._window)
            action.setData(spec.icon)
            action.triggered.connect(partial(_call, show, spec.name))
            self._window.addAction(action)
            self.extra.append(action)
            self._views[spec.name] = action
        self._titles = {name: action.text() for name, action in self._views.items()}
        if self._views:
            self._menus["View"].insertMenu(self._split_action(), self._others)
            self._menus["View"].insertSeparator(self._split_action())
        self._theme.changed.connect(self._draw_icons)
        self._draw_icons()

    def show_tabs(self, names: tuple[str, ...], why_not: Mapping[str, str]) -> None:
        """List the tabs with Alt and a digit, and the other views below them.

        Args:
            names: of the views that have a tab, in order
            why_not: why a view can never be filled, by its name; empty if it can
        """
        if (names, why_not) == self._listed:
            return
        self._listed = (names, why_not)
        menu = self._menus["View"]
        others = [name for name in self._views if name not in names]
        for name, action in self._views.items():
            menu.removeAction(action)
            self._others.removeAction(action)
            reason = why_not.get(name, "")
            action.setText(f"{self._titles[name]} ({reason})" if reason else self._titles[name])
            at = names.index(name) + 1 if name in names else 0
            action.setShortcut(QKeySequence(tab_key(at)))
        for name in names:
            menu.insertAction(self._others.menuAction(), self._views[name])
        for name in others:
            self._others.addAction(self._views[name])
        self._others.menuAction().setVisible(bool(others))

    def _draw_icons(self) -> None:
        for action in self.extra:
            if isinstance(action.data(), str):
                action.setIcon(self._theme.icon(action.data()))

    def add_docks(self, docks: Docks) -> None:
        """Add one entry per panel that shows or hides it."""
        menu = QMenu("Panels", self._window)
        for dock in docks.by_name.values():
            action = dock.toggleViewAction()
            menu.addAction(action)
            show = QAction(f"Go to {dock.windowTitle()}", self._window)
            show.triggered.connect(dock.bring_up)
            self._window.addAction(show)
            self.extra.append(show)
        self._menus["View"].insertMenu(self._split_action(), menu)

    def add_arrangements(self, menu: QMenu) -> None:
        """Add the arrangements of the panels."""
        self._menus["View"].insertMenu(self._split_action(), menu)

    def show_recents(
        self, recents: Recents, open_recent: Callable[[tuple[str, ...]], object]
    ) -> None:
        """List recent sessions."""
        self._recent.clear()
        self._recent.setToolTipsVisible(True)
        for paths, title in zip(recents, recent_titles(recents), strict=True):
            action = self._recent.addAction(title.replace("&", "&&"))
            action.setToolTip("\n".join(paths))
            action.triggered.connect(partial(_call, open_recent, paths))
        self._recent.menuAction().setVisible(bool(recents))

    def add_bookmarks(self, go: Callable[[int], object]) -> None:
        """Add Ctrl+1 to Ctrl+9 and Ctrl+0."""
        for number in range(1, BOOKMARK_SLOTS + 1):
            slot = number % BOOKMARK_SLOTS
            action = QAction("", self._window)
            action.setShortcut(QKeySequence(f"Ctrl+{slot}"))
            action.setData(slot)
            action.triggered.connect(partial(_call, go, slot))
            self._bookmarks.addAction(action)
            self._window.addAction(action)

    def show_state(self, state: State) -> None:
        """List the bookmarks."""
        for action in self._bookmarks.actions():
            found = bookmark_at(state, int(action.data()))
            action.setVisible(found is not None)
            action.setEnabled(found is not None)
            if found is not None:
                action.setText(found.label.replace("&", "&&"))
        self._bookmarks.menuAction().setVisible(bool(state.bookmarks))

    def _split_action(self) -> QAction:
        return next(one for one in self._menus["View"].actions() if one.objectName() == "split")

    def _themes(self) -> QMenu:
        menu = QMenu("Theme", self._window)
        group = QActionGroup(menu)
        for mode, text in _THEME_WORDS.items():
            action = menu.addAction(text)
            action.setCheckable(True)
            action.setChecked(mode is self._theme.mode)
            action.setData(mode)
            group.addAction(action)
        self._menus["View"].insertMenu(
            next(one for one in self._menus["View"].actions() if one.objectName() == "next_theme"),
            menu,
        )
        self._theme.changed.connect(self._check_theme)
        return menu

    def _check_theme(self) -> None:
        for action in self._theme_menu.actions():
            action.setChecked(ThemeMode(action.data()) is self._theme.mode)

    def on_theme(self, chosen: Callable[[ThemeMode], object]) -> None:
        """Connect a callback for the choice of a theme."""
        for action in self._theme_menu.actions():
            action.triggered.connect(partial(_call, chosen, ThemeMode(action.data())))


def _call(handler: Callable[[Any], object], value: object, _checked: bool = False) -> None:
    handler(value)
