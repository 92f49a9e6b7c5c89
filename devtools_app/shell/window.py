"""The main window: composes the parts and distributes the state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAction, QCloseEvent, QShowEvent
from PySide6.QtWidgets import QApplication, QMainWindow, QVBoxLayout, QWidget
from typing_extensions import override

from devtools_app.actions.commands import Commands
from devtools_app.actions.host import Services
from devtools_app.actions.router import Router
from devtools_app.actions.table import Actions
from devtools_app.appearance.icon_set import app_icon
from devtools_app.appearance.theme import Theme
from devtools_app.jobs.imports import Imports
from devtools_app.jobs.window_jobs import WindowJobs
from devtools_app.sessions.opening import Load, load_later
from devtools_app.sessions.recipe_store import RecipeStore
from devtools_app.sessions.selection_sync import SelectionSync
from devtools_app.sessions.session_controller import SessionController
from devtools_app.shell.arrangements import Arrangements
from devtools_app.shell.below_panels import BelowPanels
from devtools_app.shell.central_area import Centre
from devtools_app.shell.docks import Docks
from devtools_app.shell.enabled_actions import check_groups, enable_actions, offer_sample
from devtools_app.shell.file_drop import Dropping
from devtools_app.shell.focus_areas import FocusAreas
from devtools_app.shell.fold_bar import FoldBar
from devtools_app.shell.job_line import JobLine, count_running, follow_opening, follow_recompiling
from devtools_app.shell.layouts import GroupLayouts
from devtools_app.shell.menus import Menus
from devtools_app.shell.middle_pages import MiddlePages
from devtools_app.shell.node_panel import FollowingPanel
from devtools_app.shell.notices import Notices
from devtools_app.shell.panel_buttons import PanelButtons
from devtools_app.shell.remembered import remembered, restore
from devtools_app.shell.start_page import StartPage
from devtools_app.shell.status_bar import StatusLine
from devtools_app.shell.toolbar import TopBar
from devtools_app.shell.tour import Tour
from devtools_app.shell.view_host import ViewHost
from devtools_app.state.panel_layout import PanelLayouts, Showing
from devtools_app.state.requests import Notice
from devtools_app.state.settings import Settings, SettingsFile
from devtools_app.state.state import State
from devtools_app.state.store import Store
from devtools_app.state.transitions import with_group_of_view
from devtools_app.views import VIEWS
from devtools_app.views.spec import Area, ViewContext, ViewSpec, never_filled, tabs_of
from devtools_app.widgets.files import PathChooser
from devtools_app.widgets.log_panel import LogStore
from devtools_app.widgets.message_strip import MessageStrip

_FIRST_SIZE = (1280, 800)
_RECIPE = "recipe"  # the view that has the edits
_EDITS_BELOW = 60  # pixels below the tabs of the views


class MainWindow(QMainWindow):
    """The main window.

    Attributes:
        theme: the look
        store: the state
        controller: open sessions and persistent settings
        jobs: running jobs
        recipe_store: recipes of open programs
        commands: handlers of actions
        router: handles requests of views
        context: passed to views
        bound: the actions of the table
        tabs: names of the views in the middle, by their group
        centre: the views in the middle
        docks: the panels
        panels: where they are for each group
        fold_bar: the line over the panels below
        below: opens and folds them
        following: the panel that follows the selection, None without one
        panel_buttons: at the end of the tabs
        arrangements: of the panels, by name
        status: the line at the bottom
        strip: messages over the views
        tour: of the sample
        areas: that F6 goes through
        top_bar: session, method and meaning of colour
        menus: the menu bar
    """

    def __init__(
        self,
        theme: Theme,
        settings_file: SettingsFile,
        *,
        load: Load = load_later,
        views: tuple[ViewSpec, ...] = VIEWS,
        log: LogStore | None = None,
    ) -> None:
        super().__init__()
        self.theme = theme
        self._groups = tabs_of(views)
        self.tabs = {
            group: tuple(view.name for view in found) for group, found in self._groups.items()
        }
        self.store = Store(parent=self, settle=lambda state: with_group_of_view(state, self.tabs))
        self.controller = SessionController(self.store, settings_file, load, self)
        self.jobs = WindowJobs(self)
        self.jobs.history.folder = settings_file.path.with_name("jobs")
        recompiling = self.jobs.recompiling
        self.recipe_store = RecipeStore(self.store, self, lambda: recompiling.at_work)
        self._selection_sync = SelectionSync(self.store, self)
        paths = PathChooser(self.controller.folder)
        services = Services(
            self,
            theme,
            self.store,
            self.controller,
            self.jobs,
            self.recipe_store,
            paths,
            lambda request: self.router(request),
        )
        self.commands = Commands(services, self)
        self.router = Router(services, self, self.commands)
        has = (log or LogStore(), self.jobs, paths, Imports(self))
        self.context = ViewContext(self.store, theme, self.router, *has)
        self.jobs.history.logged.connect(self.context.log.add_job)
        tabs = {view.name for found in self._groups.values() for view in found}
        self.centre_specs = tuple(view for view in views if view.name in tabs)
        self.strip = MessageStrip(theme)
        self._notices = Notices(self.strip, self.store, self.router, self)
        self.centre = Centre(self.context, self.centre_specs)
        self.status = StatusLine(theme)
        self._job_line = JobLine(self.status.show_job, self.jobs, self)
        self.top_bar = TopBar(theme, self._groups)
        below = (view for view in views if view.area is Area.BOTTOM)
        self.fold_bar = FoldBar(theme, below)
        self.bound = Actions(self, theme, self.commands.handlers())
        offer_sample(self.bound)
        self._build_middle()
        self._build_panels(views)
        self.menus = self._build_menus()
        self._wire()
        self._wire_opening()
        self._restore()
        if settings_file.trouble:
            self.notice(Notice(settings_file.trouble, "warning"))

    def _build_middle(self) -> None:
        self.setWindowIcon(app_icon())
        self.setAcceptDrops(True)
        self._dropping = Dropping(self, self.theme, self.store, self.controller.open)
        self.resize(*_FIRST_SIZE)
        self.addToolBar(self.top_bar)
        self.setStatusBar(self.status)
        offers: dict[str, Callable[[], object]] = {
            name: self.bound[name].trigger
            for name in ("open", "open_folder", "compile", "sample", "tour")
        }
        self._start_page = StartPage(self.theme, offers, self.controller.open)
        self._pages = MiddlePages(self._start_page, self.centre)
        middle = QWidget()
        layout = QVBoxLayout(middle)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self._pages, 1)
        layout.addWidget(self.fold_bar)
        self.strip.float_over(self._pages)  # the line over the panels below stays in sight
        self.setCentralWidget(middle)
        self.areas = FocusAreas(self._areas)
        fronts = self._bring_up, lambda name: self.docks.by_name[name].bring_up()
        self.tour = Tour(self._pages, self.theme, self.store, self.controller, *fronts)

    def _build_panels(self, views: tuple[ViewSpec, ...]) -> None:
        around = [view for view in views if view.area is not Area.CENTRE]
        self.docks = Docks(self, self.context, around, self.bound.by_name)
        by_name = self.docks.by_name
        tabs = {spec.name for spec in self.centre_specs}
        self.centre.share({name: dock for name, dock in by_name.items() if name in tabs})
        self.below = BelowPanels(
            self, by_name, self.fold_bar, self.theme, lambda: self.docks.stowed
        )
        followed = (one for one in by_name.values() if one.host.spec.showing is Showing.FOLLOWS)
        following = next(followed, None)
        self.following = None if following is None else FollowingPanel(following, self)
        self.panels = GroupLayouts(self.docks, self.below, self.following)
        self.below.reset()
        at_sides = {
            name: dock for name, dock in by_name.items() if dock.host.spec.area is not Area.BOTTOM
        }
        self.panel_buttons = PanelButtons(self.theme, at_sides)
        if self.following is not None:
            self.panel_buttons.opened.connect(self.following.open_if_named)
        self.centre.set_corner(self.panel_buttons)
        fixed = (self.bound["save_layout"], self.bound["reset_layout"])
        self.arrangements = Arrangements(self, self.controller, self.panels, fixed)

    def _build_menus(self) -> Menus:
        menus = Menus(self, self.theme, self.bound)
        menus.add_views(self.centre_specs, self.open_view)
        menus.add_docks(self.docks)
        menus.add_arrangements(self.arrangements.menu)
        menus.add_bookmarks(self.commands.go_to_bookmark)
        menus.on_theme(self.commands.set_theme)
        return menus

    def _wire(self) -> None:
        self.store.changed.connect(self._show_state)
        self.controller.noticed.connect(self.notice)
        self.controller.settings_changed.connect(self._take_settings)
        self.controller.layouts_requested.connect(
            lambda layouts: self.panels.restore(layouts, self.store.state.group)
        )
        update = self.store.update
        self.centre.chosen.connect(lambda name: update(view=name))
        self.centre.split_chosen.connect(lambda name: update(split_view=name))
        self.top_bar.group_chosen.connect(self.commands.show_group)
        self.top_bar.session_chosen.connect(self.controller.show)
        self.top_bar.method_chosen.connect(lambda name: update(method=name))
        self.top_bar.overlay_chosen.connect(lambda name: update(overlay=name))
        self.top_bar.find_pressed.connect(self.commands.palettes.go_to)
        self.top_bar.recompile_pressed.connect(self.bound["recompile"].trigger)
        self.top_bar.edits_pressed.connect(lambda: self.show_view(_RECIPE))

    def _wire_opening(self) -> None:
        follow_opening(self.controller.opener, self.status.busy, self._job_line)
        status = self.status  # its sentence may say to press Ctrl+R, which now was pressed
        follow_recompiling(self.jobs.recompiling, status.recompile, status.clear_message)
        count_running(self.jobs.history, self.fold_bar)

    def _restore(self) -> None:
        settings = self.controller.settings
        names = [spec.name for spec in self.centre_specs]
        self.controller.first_view = names[0] if names else ""
        restore(self, self.store, settings, names)
        self.panels.restore(settings.layouts, self.store.state.group)
        self._take_settings(settings)
        self._show_state(self.store.state, self.store.state)

    @property
    def hosts(self) -> tuple[ViewHost, ...]:
        """Return all places for views."""
        return (*self.centre.hosts, *self.docks.hosts)

    def active_view(self) -> tuple[ViewSpec, QWidget | None] | None:
        """Return the view with the focus, else the one in front; None without views."""
        focus = QApplication.focusWidget()
        found = self.centre.current
        for host in self.hosts:
            if focus is not None and host.isAncestorOf(focus):
                found = host
        return None if found is None else (found.spec, found.view)

    def layouts(self) -> PanelLayouts:
        """Return where the panels are by the group of tabs, for a workspace."""
        return self.panels.of_groups(self.store.state.group)

    def all_actions(self) -> tuple[QAction, ...]:
        """Return every command for the palette, those of the table first."""
        panels = (dock.command() for dock in self.docks.by_name.values())
        named = self.arrangements.named
        return (*self.bound.by_name.values(), *self.menus.extra, *named, *panels)

    def show_view(self, name: str, *, in_turns: bool = False, begin: bool = False) -> None:
        """Bring a view to the front and give it the focus, or once it is there.

        A view that is a panel as well is the tab while its group is in front.
        """
        state = self.store.state
        dock = self.docks.by_name.get(name)
        if dock is not None and name not in self.tabs.get(state.group, ()):
            dock.bring_up(in_turns=in_turns)
        elif spec := next((one for one in self.centre_specs if one.name == name), None):
            self._pages.ask_for_views(without_session=spec.without_session)
            self.store.update(view=name)
            self._show_page()
            if self.centre.current is not None:
                self.centre.current.give_focus()
        if begin:
            self._host(name).begin()

    def _host(self, name: str) -> ViewHost:
        return next(host for host in self.hosts if host.spec.name == name)

    def open_view(self, name: str) -> None:
        """Bring up a view that the user asked for; a new one is made and filled in turns."""
        self._host(name).postpone_first()
        self.show_view(name, in_turns=True)

    def _bring_up(self, name: str) -> None:
        """Bring a view to the front; the keyboard stays where it is."""
        self._pages.ask_for_views()
        self.store.update(view=name)
        self._show_page()

    def show_start_page(self) -> None:
        """Show the start page over the views until one is chosen or something is opened."""
        self._pages.ask_for_start()
        self._show_page()

    def reset_layout(self) -> None:
        """Reset all panels to their default places."""
        self.panels.reset()
        self._show_page()

    def step_area(self, by: int) -> None:
        """Move the keyboard to the next area of the window (1) or the one before (-1)."""
        self.areas.step(by)

    def _areas(self) -> list[QWidget]:
        """Return the areas that can be seen, from the upper left to the lower right."""
        if self._pages.at_start:
            return [self._start_page]
        docks = [one for one in self.docks.by_name.values() if one.in_front]
        left, right, below = (
            [one for one in docks if one.host.spec.area is area]
            for area in (Area.LEFT, Area.RIGHT, Area.BOTTOM)
        )
        over = [one for one in (self.strip, self.tour.card) if one is not None and one.isVisible()]
        return [self.top_bar, *left, *self.centre.rows, *right, *over, self.fold_bar, *below]

    def start_tour(self) -> None:
        """Show the first step of the tour of the sample."""
        self.tour.start()

    def save_layout(self) -> None:
        """Ask for a name and save the arrangement of the panels."""
        self.arrangements.ask()

    def fold(self) -> None:
        """Open or fold the panel below the views."""
        self.below.toggle()

    def notice(self, notice: Notice) -> None:
        """Show a message over the views."""
        self._notices.show(notice)

    def dismiss_notice(self) -> bool:
        """Hide the message or the tour over the views; return whether there was one."""
        return self._notices.dismiss() or self.tour.leave()

    def show_status(self, text: str) -> None:
        """Show a sentence in the status line for a few seconds."""
        self.status.show_message(text)

    def show_edits(self) -> None:
        """Show the edits of the recipe on the selection in a menu."""
        selection = self.store.state.selection
        if selection:
            at = QPoint(self.centre.width() // 3, _EDITS_BELOW)
            from devtools_app.views.editing import show_edits

            show_edits(self.centre, at, selection, self.context)
        else:
            self.show_status("Choose a node, an operator or a partition first: Ctrl+P finds one")

    def toggle_full_screen(self) -> None:
        """Toggle full screen."""
        # not showNormal: a window that was maximised stays that
        self.setWindowState(self.windowState() ^ Qt.WindowState.WindowFullScreen)
        self._sync_actions()

    def _sync_actions(self) -> None:
        state = self.store.state
        enable_actions(self.bound, state)
        check_groups(self.bound, state.group, self._groups)
        self.bound["split"].setEnabled(len(self.centre_specs) > 1)
        self.bound["split"].setChecked(bool(state.split_view))
        self.bound["watch"].setChecked(self.controller.watching)
        self.bound["full_screen"].setChecked(self.isFullScreen())

    def _show_state(self, old: State, new: State) -> None:
        if len(new.sessions) > len(old.sessions) or new.sweep != old.sweep:
            self._pages.ask_for_views()
        self.top_bar.show_state(new)
        self._count_edits(self.top_bar.edits.count)
        self.status.show_state(new)
        self.fold_bar.show_state(new)
        self.menus.show_state(new)
        if old.group is not new.group:
            self.panels.switch(old.group, new.group)
        self._show_tabs(new)
        self._show_page()
        if self.following is not None:
            self.following.show_state(old, new)
        more = len(old.sessions) < len(new.sessions) or old.group is not new.group
        if more and new.sessions:
            self.docks.show_sessions(len(new.sessions))
        for host in self.hosts:
            host.refresh()
        self._sync_actions()
        self._job_line.look()
        session = new.session
        self.setWindowTitle(f"{session.name} – ETScope" if session is not None else "ETScope")

    def _count_edits(self, count: int) -> None:
        """Show the number of edits on the tab of the recipe."""
        self.centre.set_count(_RECIPE, count)
        dock = self.docks.by_name.get(_RECIPE)
        if dock is not None:
            dock.set_count(count)

    def _show_tabs(self, state: State) -> None:
        why_not = never_filled(self.centre_specs, state.session)
        names = tuple(one for one in self.tabs.get(state.group, ()) if one not in why_not)
        self.centre.show_views(state.view, state.split_view, names)
        self.strip.place()
        self.menus.show_tabs(names, why_not)

    def _show_page(self) -> None:
        state, was_start = self.store.state, self._pages.at_start
        self._pages.show_state(state, has_views=bool(self.centre_specs))
        if was_start and not self._pages.at_start and self.centre.current is not None:
            self.centre.current.give_focus()  # what had it is gone
        if state.sessions:
            self.fold_bar.show()
            if self.docks.unstow():
                self.panels.settle()
            self.top_bar.show()
        else:
            self.docks.stow()
            self.fold_bar.hide()
            self.top_bar.hide()
        self.docks.name_tab_rows()

    def _take_settings(self, settings: Settings) -> None:
        self.theme.set_mode(settings.theme)
        self.theme.set_size(settings.font_size)
        self._start_page.show_recents(settings.recents)
        self.menus.show_recents(settings.recents, self.controller.open)
        self._sync_actions()

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._dropping.watch(self.windowHandle())
        for host in self.hosts:
            host.refresh()

    @override
    def closeEvent(self, event: QCloseEvent) -> None:
        settings = replace(self.controller.settings, layouts=self.layouts())
        self.controller.put_settings(remembered(self, self.store.state, settings))
        self.context.imports.stop()
        for host in self.hosts:
            host.shut_down()
        self.jobs.shut_down()
        self._selection_sync.shut_down()
        self.status.shut_down()
        self.fold_bar.shut_down()
        self.commands.shut_down()
        self._dropping.shut_down()
        self.controller.shut_down()
        super().closeEvent(event)
