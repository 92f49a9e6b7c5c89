"""Every action of the window in one table; menus, palette and key sheet are generated from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from PySide6.QtCore import QObject
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QWidget

from devtools_app.appearance.theme import Theme

SEPARATOR = "-"


@dataclass(frozen=True, slots=True)
class ActionSpec:
    """One action of the user.

    Attributes:
        name: key of its handler
        text: in menu and palette; three dots if it opens a dialog
        menu: File, View, Go, Recipe or Help; empty if only in the palette
        keys: shortcuts, the first is shown
        icon: name in the icon set, may be empty; a checkable one has its tick in that place
        checkable: whether it has an on and off state
        group: actions of the same group stand together, a line between groups
    """

    name: str
    text: str
    menu: str
    keys: tuple[str, ...] = ()
    icon: str = ""
    checkable: bool = False
    group: str = ""


ACTIONS: tuple[ActionSpec, ...] = (
    ActionSpec("open", "Open files…", "File", ("Ctrl+O",), "open", group="open"),
    ActionSpec("open_folder", "Open folder…", "File", ("Ctrl+Shift+O",), "folder", group="open"),
    ActionSpec("add_files", "Add files to this session…", "File", (), "plus", group="open"),
    ActionSpec("sample", "Open the sample", "File", (), "play", group="open"),
    ActionSpec("compile", "Compile…", "File", ("Ctrl+Shift+B",), "play", group="compile"),
    ActionSpec("run", "Run…", "File", ("Ctrl+Shift+R",), "play", group="compile"),
    ActionSpec("step", "Step through a delegate", "File", (), "step", group="compile"),
    ActionSpec("reload", "Reload", "File", ("F5",), "reload", group="session"),
    ActionSpec("watch", "Reload when files change", "File", (), "", True, "session"),
    ActionSpec("close_session", "Close session", "File", ("Ctrl+W",), "close", group="session"),
    ActionSpec("save_workspace", "Save workspace", "File", ("Ctrl+S",), "save", group="workspace"),
    ActionSpec(
        "save_workspace_as", "Save workspace as…", "File", ("Ctrl+Shift+S",), group="workspace"
    ),
    ActionSpec("colleague", "Anonymised copy of the workspace…", "File", (), group="workspace"),
    ActionSpec("export_table", "Export table…", "File", ("Ctrl+E",), "export", group="export"),
    ActionSpec("export_image", "Export image…", "File", ("Ctrl+Shift+E",), group="export"),
    ActionSpec("disk", "Disk use…", "File", (), "", group="prefs"),
    ActionSpec("devices", "Devices…", "File", (), "", group="prefs"),
    ActionSpec("preferences", "Preferences…", "File", ("Ctrl+,",), "settings", group="prefs"),
    ActionSpec("quit", "Quit", "File", ("Ctrl+Q",), "quit", group="quit"),
    ActionSpec("look", "Look", "View", ("Ctrl+Alt+1",), "", True, "groups"),
    ActionSpec("change_program", "Change", "View", ("Ctrl+Alt+2",), "", True, "groups"),
    ActionSpec("prove", "Prove", "View", ("Ctrl+Alt+3",), "", True, "groups"),
    ActionSpec("split", "Two views side by side", "View", ("Ctrl+\\",), "", True, "split"),
    ActionSpec("fold", "Open or fold the panel below", "View", ("Ctrl+J",), group="split"),
    ActionSpec("bigger", "Larger text", "View", ("Ctrl++", "Ctrl+="), group="text"),
    ActionSpec("smaller", "Smaller text", "View", ("Ctrl+-",), group="text"),
    ActionSpec("normal_size", "Normal text size", "View", ("Ctrl+Shift+0",), group="text"),
    ActionSpec("next_theme", "Light or dark", "View", ("Ctrl+Shift+L",), "theme", group="look"),
    ActionSpec("colour_by_file", "Colour the graph by a file…", "View", (), "", group="look"),
    ActionSpec("full_screen", "Full screen", "View", ("F11",), "", True, "look"),
    ActionSpec("save_layout", "Save arrangement of panels as…", "", (), "save"),
    ActionSpec("reset_layout", "Reset layout", "", (), "layout"),
    ActionSpec("back", "Back", "Go", ("Alt+Left", "Backspace"), "back", group="history"),
    ActionSpec("forward", "Forward", "Go", ("Alt+Right",), "forward", group="history"),
    ActionSpec("goto", "Go to node, operator, module…", "Go", ("Ctrl+P",), "search", group="find"),
    ActionSpec("find", "Filter or find in this view", "Go", ("Ctrl+F",), "filter", group="find"),
    ActionSpec("next", "Next in this view", "Go", (".",), "down", group="find"),
    ActionSpec("previous", "Previous in this view", "Go", (",",), "up", group="find"),
    ActionSpec("clear", "Clear selection", "Go", ("Esc",), group="find"),
    ActionSpec("next_area", "Next area", "Go", ("F6",), group="areas"),
    ActionSpec("previous_area", "Area before", "Go", ("Shift+F6",), group="areas"),
    ActionSpec("next_session", "Next session", "Go", ("Ctrl+Tab",), group="sessions"),
    ActionSpec("bookmark", "Bookmark this place", "Go", ("Ctrl+B",), "bookmark", group="marks"),
    ActionSpec(
        "recompile", "Recompile, run and compare", "Recipe", ("Ctrl+R",), "play", group="make"
    ),
    ActionSpec("change", "Change the recipe here…", "Recipe", ("Ctrl+.",), group="edit"),
    ActionSpec("undo", "Undo edit of the recipe", "Recipe", ("Ctrl+Z",), "undo", group="edit"),
    ActionSpec(
        "redo",
        "Redo edit of the recipe",
        "Recipe",
        ("Ctrl+Shift+Z", "Ctrl+Y"),
        "redo",
        group="edit",
    ),
    ActionSpec("recipe", "Show the recipe", "Recipe", (), "recipe", group="show"),
    ActionSpec("compare", "Compare variants", "Recipe", ("Ctrl+D",), "compare", group="show"),
    ActionSpec(
        "bisect", "Find nodes to keep off the delegate", "Recipe", (), "bisect", group="show"
    ),
    ActionSpec("copy_python", "Copy as Python", "Recipe", (), "copy", group="copy"),
    ActionSpec("copy_command", "Copy as command", "Recipe", (), "copy", group="copy"),
    ActionSpec("guide", "Guide to this view", "Help", ("F1",), "info", group="guide"),
    ActionSpec("tour", "Tour of the sample", "Help", (), "step", group="guide"),
    ActionSpec("commands", "Command palette…", "Help", ("Ctrl+Shift+P",), "command", group="help"),
    ActionSpec("keys", "Keys…", "Help", ("?",), "keyboard", group="help"),
    ActionSpec("start_page", "Start page", "Help", (), "overview", group="help"),
    ActionSpec("about", "About ETScope", "Help", (), "", group="about"),
)
MENUS = ("File", "View", "Go", "Recipe", "Help")


class Actions(QObject):
    """The QActions created from the table, by name.

    Raises: KeyError when the table names an action that has no handler, or the other way round
    """

    def __init__(
        self, owner: QWidget, theme: Theme, handlers: Mapping[str, Callable[[], object]]
    ) -> None:
        super().__init__(owner)
        self._theme = theme
        known = {spec.name for spec in ACTIONS}
        if known != set(handlers):
            raise KeyError(
                f"actions or handlers without a counterpart: {sorted(known ^ set(handlers))}"
            )
        self.by_name = {spec.name: self._make(owner, spec, handlers[spec.name]) for spec in ACTIONS}
        theme.changed.connect(self._restyle)
        self._restyle()

    def __getitem__(self, name: str) -> QAction:
        return self.by_name[name]

    def _make(self, owner: QWidget, spec: ActionSpec, handler: Callable[[], object]) -> QAction:
        action = QAction(spec.text, owner)
        action.setObjectName(spec.name)
        action.setShortcuts([QKeySequence(key) for key in spec.keys])
        action.setCheckable(spec.checkable)
        action.setToolTip(f"{spec.text.rstrip('…')}  {spec.keys[0]}" if spec.keys else spec.text)
        action.triggered.connect(lambda _checked=False: handler())
        owner.addAction(action)
        return action

    def _restyle(self) -> None:
        for spec in ACTIONS:
            if spec.icon:
                self.by_name[spec.name].setIcon(self._theme.icon(spec.icon))
