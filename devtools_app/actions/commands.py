"""Handlers of the actions of the window, named as in the table in ``actions``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QProcess
from PySide6.QtWidgets import QApplication, QWidget

from devtools_app.actions.bisect_command import BisectCommand
from devtools_app.actions.compile_command import CompileCommand
from devtools_app.actions.job_commands import JobCommands
from devtools_app.actions.job_ends import JobEnds
from devtools_app.actions.keys import sheet_sections
from devtools_app.actions.palettes import Palettes
from devtools_app.actions.recipe_command import RecipeCommand
from devtools_app.actions.run_command import RunCommand
from devtools_app.actions.sweep_command import SweepCommand
from devtools_app.appearance.look import BASE_SIZE, ThemeMode
from devtools_app.dialogs.about import AboutDialog
from devtools_app.dialogs.key_sheet import KeySheet
from devtools_app.dialogs.preferences import Preferences
from devtools_app.sample_data import LOOP
from devtools_app.state import transitions
from devtools_app.state.external_editor import EditorError, default_template, editor_command
from devtools_app.state.requests import Notice
from devtools_app.state.settings import Settings
from devtools_app.state.tab_groups import TabGroup
from devtools_app.state.transitions import show_group
from devtools_app.views.spec import CanDraw, CanExport, CanFind, CanStep
from devtools_app.widgets.image import save_image
from inspector.files.workspace_file import SUFFIX
from inspector.tables.selection import NOTHING
from schema.files.vendor_models import vendor_suffixes

if TYPE_CHECKING:
    from devtools_app.actions.host import CommandHost, Services
    from devtools_app.views.spec import ViewSpec
    from devtools_app.widgets.item_panel import ItemPanel

    ActiveView = tuple[ViewSpec, QWidget | None]

_FILES = (
    "ExecuTorch files (*.pte *.ptd *.bpte *.etrecord *.pt2 *.etdp *.etdump *.bin *.debug"
    f" results.json {' '.join(f'*{one}' for one in vendor_suffixes())})"
    ";;All (*)"
)
_GROUPS = {
    "look": TabGroup.LOOK,
    "change_program": TabGroup.CHANGE,
    "prove": TabGroup.PROVE,
}
_VALUES = "Values of nodes (*.json *.csv *.tsv);;All (*)"
_WORKSPACES = f"Workspaces (*{SUFFIX})"
_TABLES = "Tab-separated (*.tsv);;Comma-separated (*.csv)"
_IMAGES = "PNG image (*.png);;SVG image (*.svg)"


class Commands:
    """The handlers of all actions.

    Attributes:
        palettes: Ctrl+P and Ctrl+Shift+P
        compiles: File > Compile…
        runs: File > Run…
        recipes: commands of the Recipe menu
        bisects: command of the Bisect panel
        sweeps: command of the Sweep view
        jobs: commands of the Jobs panel
        job_ends: messages about jobs that ended behind the back of the user
    """

    def __init__(self, services: Services, window: CommandHost) -> None:
        self._window = window
        self._parent = services.parent
        self._theme = services.theme
        self._store = services.store
        self._controller = services.controller
        self._recipe_store = services.recipe_store
        self._paths = services.paths
        self._recompiling = services.jobs.recompiling
        self.palettes = Palettes(services, window)
        self.compiles = CompileCommand(services, window)
        self.runs = RunCommand(services, window)
        self.recipes = RecipeCommand(services, window)
        self.bisects = BisectCommand(services, window, self.recipes)
        self.sweeps = SweepCommand(services, window)
        self.jobs = JobCommands(services, window)
        self.job_ends = JobEnds(services, window)

    def handlers(self) -> dict[str, Callable[[], object]]:
        """Return the handler of each action of the table."""
        return {
            "open": self.open,
            "open_folder": self.open_folder,
            "add_files": self.add_files,
            "sample": lambda: self._controller.open(LOOP),
            "compile": self.compiles.ask,
            "run": lambda: self._window.show_view("run"),
            "reload": self._controller.reload,
            "watch": self.watch,
            "close_session": lambda: self._controller.close(self._store.state.current),
            "save_workspace": self.save_workspace,
            "save_workspace_as": self.save_workspace_as,
            "colleague": self.copy_for_colleague,
            "export_table": self.export_table,
            "export_image": self.export_image,
            "devices": self.devices,
            "disk": self.disk,
            "preferences": self.preferences,
            "quit": self._window.close,
            **{name: partial(self.show_group, group) for name, group in _GROUPS.items()},
            "split": self.split,
            "bigger": lambda: self.set_font_size(self._controller.settings.font_size + 1),
            "smaller": lambda: self.set_font_size(self._controller.settings.font_size - 1),
            "normal_size": lambda: self.set_font_size(BASE_SIZE),
            "next_theme": self.next_theme,
            "colour_by_file": self.colour_by_file,
            "full_screen": self._window.toggle_full_screen,
            "fold": self._window.fold,
            "save_layout": self._window.save_layout,
            "reset_layout": self._window.reset_layout,
            "back": lambda: self._store.put(transitions.back(self._store.state)),
            "forward": lambda: self._store.put(transitions.forward(self._store.state)),
            "goto": self.palettes.go_to,
            "find": self.find,
            "next": lambda: self.step(1),
            "previous": lambda: self.step(-1),
            "clear": self.clear,
            "next_area": lambda: self._window.step_area(1),
            "previous_area": lambda: self._window.step_area(-1),
            "next_session": self.next_session,
            "bookmark": self.bookmark,
            "recompile": self.recipes.recompile,
            "undo": self._recipe_store.undo,
            "redo": self._recipe_store.redo,
            "change": self._window.show_edits,
            "recipe": lambda: self._window.show_view("recipe"),
            "compare": lambda: self._window.show_view("compare"),
            "step": lambda: self._window.show_view("step"),
            "bisect": lambda: self._window.show_view("bisect"),
            "copy_python": self.recipes.copy_python,
            "copy_command": self.recipes.copy_command,
            "commands": self.palettes.commands,
            "guide": self.guide,
            "tour": self._window.start_tour,
            "keys": lambda: KeySheet(self._theme, self._parent, sheet_sections()).open(),
            "start_page": self._window.show_start_page,
            "about": lambda: AboutDialog(self._theme, self._parent).open(),
        }

    def shut_down(self) -> None:
        """Stop the threads; called before the window closes."""
        self.palettes.shut_down()

    def open(self) -> None:
        """Ask for files; a single one also opens related files next to it."""
        paths = self._paths.open_files(
            self._parent, "Open ExecuTorch files", f"{_FILES};;{_WORKSPACES}"
        )
        self._controller.open(paths, pair=True)

    def open_folder(self) -> None:
        """Ask for a folder and open all files in it together."""
        folder = self._paths.open_folder(
            self._parent, "Open a folder of files that belong together"
        )
        if folder:
            self._controller.open((folder,))

    def add_files(self) -> None:
        """Ask for files that join the session shown."""
        paths = self._paths.open_files(self._parent, "Add files to this session", _FILES)
        if paths:
            self._controller.open_beside(paths)

    def colour_by_file(self) -> None:
        """Ask for values of nodes, and colour the graph by them."""
        paths = self._paths.open_files(self._parent, "Values of nodes", _VALUES)
        if paths:
            self._controller.open_beside(paths)
            self._window.show_view("graph")

    def watch(self) -> None:
        """Switch reloading of changed files on or off."""
        self._controller.set_watch(not self._controller.watching)

    def locate_files(self) -> None:
        """Ask for the folder with the files that a workspace misses."""
        title = "Folder with the files of the workspace"
        folder = self._paths.open_folder(self._parent, title)
        if folder:
            self._controller.locate_files(Path(folder))

    def save_workspace(self) -> None:
        """Save to the file of the workspace, else ask for one."""
        if self._controller.workspace_path is None:
            self.save_workspace_as()
        else:
            self._save_workspace(self._controller.workspace_path)

    def save_workspace_as(self) -> None:
        """Ask for a file and save."""
        one = self._store.state.open_session
        suggested = f"{one.session.name if one else 'workspace'}{SUFFIX}"
        name = self._paths.save_file(self._parent, "Save workspace", suggested, _WORKSPACES)
        if name:
            self._save_workspace(Path(name))

    def _save_workspace(self, path: Path) -> None:
        if self._controller.save_workspace(path, self._window.layouts()):
            self._window.show_status(f"Saved {path}")

    def copy_for_colleague(self) -> None:
        """Open the dialog of an anonymised copy."""
        from devtools_app.dialogs.colleague_dialog import ColleagueDialog

        state, layouts = self._store.state, self._window.layouts()
        ColleagueDialog(self._theme, state, layouts, self._paths, self._parent).open()

    def export_table(self) -> None:
        """Write the table in front to a file."""
        active = self._window.active_view()
        target = _table_of(active)
        if active is None or target is None:
            self._window.show_status("This view has no table to export")
            return
        name = self._paths.save_file(self._parent, "Export table", f"{active[0].name}.tsv", _TABLES)
        if name and target.export_to(
            Path(name), lambda path: self._window.show_status(f"Exported {path}")
        ):
            self._window.show_status(f"Writing {name}")

    def export_image(self) -> None:
        """Export the view in front as an image."""
        spec, view = self._window.active_view() or (None, None)
        if spec is None or view is None:
            self._window.show_status("No view to export")
            return
        name = self._paths.save_file(self._parent, "Export image", f"{spec.name}.png", _IMAGES)
        if not name:
            return
        try:
            if isinstance(view, CanDraw):
                view.save_image(Path(name))
            else:
                save_image(view, Path(name))
        except OSError as error:
            reason = f"{name}: {error.strerror or error}"
            self._window.notice(Notice(f"The image cannot be written. {reason}", "error"))
            return
        self._window.show_status(f"Exported {name}")

    def devices(self) -> None:
        """Open the dialog of devices."""
        from devtools_app.dialogs.devices_dialog import DevicesDialog

        DevicesDialog(self._theme, self._parent).open()

    def disk(self) -> None:
        """Open the dialog of what runs and variants take on the disk."""
        from devtools_app.dialogs.disk_dialog import DiskDialog

        sessions = self._store.state.sessions
        programs = [
            file.path
            for one in sessions
            for file in one.session.files
            if file.kind in ("pte", "bpte")
        ]
        used = [path for one in sessions for path in one.paths]
        used.append(self._recompiling.at_work)
        sweep = self._store.state.sweep
        DiskDialog(self._theme, programs, filter(None, used), self._parent, sweep).open()

    def preferences(self) -> None:
        """Open the preferences."""
        dialog = Preferences(self._theme, self._controller.preferences, self._parent)
        dialog.applied.connect(self.take_preferences)
        dialog.open()

    def take_preferences(self, settings: Settings) -> None:
        """Apply the dialog's settings, keeping settings that changed while it was open."""
        recents = self._controller.settings.recents
        self._controller.put_preferences(replace(settings, recents=recents))

    def show_group(self, group: TabGroup) -> None:
        """Bring a group of tabs to the front, at the view that was in front of it.

        The view gets the keyboard, so that its keys work at once.
        """
        self._store.put(show_group(self._store.state, group, self._window.tabs))
        self._window.show_view(self._store.state.view)

    def split(self) -> None:
        """Show or hide a second view beside the first."""
        state = self._store.state
        if state.split_view:
            self._store.update(split_view="")
            return
        names = [name for name in self._window.tabs.get(state.group, ()) if name != state.view]
        self._store.update(split_view=names[0] if names else "")

    def set_font_size(self, size: int) -> None:
        """Change the size of normal text."""
        self._theme.set_size(size)
        size = self._theme.size
        self._controller.put_settings(replace(self._controller.settings, font_size=size))

    def next_theme(self) -> None:
        """Toggle between light and dark."""
        dark = self._theme.palette.dark
        self.set_theme(ThemeMode.LIGHT if dark else ThemeMode.DARK)

    def set_theme(self, mode: ThemeMode) -> None:
        """Use a theme and remember it."""
        self._controller.put_settings(replace(self._controller.settings, theme=mode))

    def find(self) -> None:
        """Focus the search field of the view with the keyboard focus."""
        active = self._window.active_view()
        if active is not None and isinstance(active[1], CanFind):
            active[1].start_find()
            return
        panels = _panels_in(active)
        if panels:
            panels[0].start_find()
        elif self._store.state.sessions:
            self.palettes.go_to()

    def step(self, by: int) -> None:
        """Go to the next or previous item of the view with the keyboard focus."""
        active = self._window.active_view()
        if active is not None and isinstance(active[1], CanStep):
            active[1].step(by)

    def clear(self) -> None:
        """Dismiss messages first, then the selection."""
        if self._window.dismiss_notice():
            return
        self._store.put(transitions.select(self._store.state, NOTHING))

    def guide(self) -> None:
        """Open the guide at the view with the keyboard focus."""
        active = self._window.active_view()
        title = "" if active is None else active[0].title
        if title != "Guide":
            self._store.update(help_subject="")  # it is shown again after reading elsewhere
            self._store.update(help_subject=title)
        self._window.show_view("guide")

    def next_session(self) -> None:
        """Show the session after this one."""
        state = self._store.state
        ids = [one.id for one in state.sessions]
        if len(ids) > 1:
            index = (ids.index(state.current) + 1) % len(ids)
            self._controller.show(ids[index])

    def bookmark(self) -> None:
        """Bookmark this place under the first free number."""
        state = self._store.state
        if state.open_session is None:
            return
        label = place_label(state.current, state.method, state.selection.node)
        marked = transitions.set_bookmark(state, label)
        self._store.put(marked)
        self._window.show_status(f"Ctrl+{marked.bookmarks[-1].slot} comes back here")

    def go_to_bookmark(self, slot: int) -> None:
        """Go to the bookmark with a number."""
        found = transitions.bookmark_at(self._store.state, slot)
        if found is not None:
            self._store.put(transitions.go_to(self._store.state, found.place))

    def add_source_root(self) -> None:
        """Ask for a folder with source files and read the sessions again with it."""
        folder = self._paths.open_folder(self._parent, "Folder with the source of the model")
        settings = self._controller.settings
        if folder and folder not in settings.source_roots:
            roots = (*settings.source_roots, folder)
            self._controller.put_settings(replace(settings, source_roots=roots))

    def open_source(self, file: str, line: int) -> None:
        """Open a recorded source file in the user's editor."""
        from inspector.graph.source import find_file, find_source

        settings = self._controller.settings
        session = self._store.state.session
        path = (
            find_source(file, session)
            if session is not None
            else find_file(file, settings.session_options())
        )
        if path is None:
            text = f"{file} is not on this machine; Preferences can map its folder."
            self._window.notice(Notice(text, "warning"))
            return
        try:
            command = editor_command(settings.editor or default_template(), path, line)
        except EditorError as error:
            self._window.notice(Notice(f"Not opened: {error}.", "warning", str(path)))
            return
        started = QProcess.startDetached(command[0], command[1:])
        if not started:
            self._window.notice(Notice(f"{command[0]} could not be started.", "warning"))


def place_label(session: str, method: str, node: str) -> str:
    """Return the label of a bookmark."""
    return "  ".join(part for part in (session, node or method) if part)


def _panels_in(active: ActiveView | None) -> list[ItemPanel]:
    if active is None or active[1] is None:
        return []
    from devtools_app.widgets.item_panel import ItemPanel  # a view is there, so it is imported

    panels = [one for one in active[1].findChildren(ItemPanel) if one.isVisible()]
    focus = QApplication.focusWidget()
    panels.sort(key=lambda panel: not (focus is not None and panel.isAncestorOf(focus)))
    return panels


def _table_of(active: ActiveView | None) -> CanExport | None:
    if active is not None and isinstance(active[1], CanExport):
        return active[1]
    panels = _panels_in(active)
    return panels[0] if panels else None
