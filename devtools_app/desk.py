"""What is open and what is remembered: sessions, recents, workspaces, preferences."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass, field, replace
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from devtools_app.json_file import DamagedFileError
from devtools_app.opening import Load, Loaded, Opener, Target, load_later
from devtools_app.settings import Settings, SettingsFile
from devtools_app.state import Place, State
from devtools_app.store import Store
from devtools_app.transitions import (
    add_session,
    close_session,
    replace_session,
    show_session,
    with_options,
)
from devtools_app.watching import Watcher
from devtools_app.workspace import (
    Workspace,
    is_workspace,
    load_workspace,
    save_workspace,
    workspace_of,
)
from schema.identity_cache import clear as forget_derived

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Notice:
    """Something the user should know, shown above the views.

    Attributes:
        text: one or two sentences
        tone: info, warning or error
        details: more to copy
        alone: a file to offer opening without the ones found beside it, empty for no offer
    """

    text: str
    tone: str = "info"
    details: str = ""
    alone: str = ""


@dataclass(slots=True)
class _Restoring:
    """A workspace whose files are being read."""

    workspace: Workspace
    path: Path
    names: dict[str, str] = field(default_factory=dict[str, str])


class Desk(QObject):
    """Opens and closes sessions, reads and writes what outlives the window.

    Signals:
        noticed(notice): a Notice to show
        settings_changed(settings): the preferences are others now
        layout_wanted(layout): a workspace brings a dock layout

    Attributes:
        opener: reads files; connect its progress
        workspace_path: where Save writes, None while the workspace has no file
    """

    noticed = Signal(object)
    settings_changed = Signal(object)
    layout_wanted = Signal(str)

    def __init__(
        self,
        store: Store,
        settings_file: SettingsFile,
        load: Load = load_later,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._store = store
        self._file = settings_file
        self._settings = settings_file.load()
        self._restoring: _Restoring | None = None
        self.workspace_path: Path | None = None
        self.opener = Opener(load, self)
        self._watcher = Watcher(self)
        self._watcher.set_on(self._settings.watch)
        self._watcher.changed.connect(self.reload)
        self.opener.loaded.connect(self._loaded)
        store.changed.connect(self._state_changed)
        store.update(units=self._settings.units, overlay=self._settings.overlay)

    @property
    def settings(self) -> Settings:
        """Return the preferences."""
        return self._settings

    def put_settings(self, settings: Settings) -> None:
        """Use other preferences and remember them."""
        if settings == self._settings:
            return
        old, self._settings = self._settings, settings
        self._file.save(settings)
        if settings.watch != old.watch:
            self._watcher.set_on(settings.watch)
        state = replace(self._store.state, units=settings.units)
        self._store.put(with_options(state, settings.session_options()))
        self.settings_changed.emit(settings)

    def watch_for_now(self) -> None:
        """Watch files until the window closes, without remembering it."""
        self._watcher.set_on(True)

    def open(self, paths: tuple[str, ...], *, pair: bool = False) -> None:
        """Open files and folders together as one session; a workspace opens what it names.

        Args:
            paths: files and folders
            pair: take the files beside a single file that belong to it as well
        """
        workspaces = [path for path in paths if is_workspace(path)]
        if workspaces:
            self.open_workspace(Path(workspaces[0]))
        elif paths:
            absolute = tuple(os.path.abspath(path) for path in paths)
            self._start((Target(absolute, pair=pair),))

    def open_beside(self, paths: tuple[str, ...]) -> None:
        """Read the session shown again, with more files."""
        one = self._store.state.open_session
        if one is None:
            self.open(paths)
            return
        more = tuple(os.path.abspath(path) for path in paths)
        self._start((Target(tuple(dict.fromkeys((*one.paths, *more))), one.id),))

    def open_alone(self, path: str) -> None:
        """Read the session shown again, with this file only."""
        self._start((Target((path,), self._store.state.current),))

    def reload(self, ids: tuple[str, ...] = ()) -> None:
        """Read sessions again, by default the one shown."""
        wanted = ids or (self._store.state.current,)
        found = [one for one in self._store.state.sessions if one.id in wanted]
        self._start(tuple(Target(one.paths, one.id) for one in found))

    def close(self, session: str) -> None:
        """Close a session and let go of its files."""
        self._store.put(close_session(self._store.state, session))
        forget_derived()

    def show(self, session: str) -> None:
        """Show another session."""
        self._store.put(show_session(self._store.state, session))

    def open_workspace(self, path: Path) -> None:
        """Open the files of a workspace beside what is open."""
        try:
            workspace = load_workspace(path)
        except (DamagedFileError, OSError) as error:
            self.noticed.emit(Notice(f"The workspace cannot be opened. {error}", "error"))
            return
        if not workspace.sessions:
            self.noticed.emit(Notice(f"The workspace {path.name} names no files.", "warning"))
            return
        self._restoring = _Restoring(workspace, path)
        targets = tuple(Target(paths, label=name) for name, paths in workspace.sessions)
        self.opener.open(targets, self._settings.session_options())

    def save_workspace(self, path: Path, layout: str) -> bool:
        """Write the workspace; return whether that worked."""
        try:
            save_workspace(path, workspace_of(self._store.state, layout))
        except OSError as error:
            text = f"The workspace cannot be saved in {path}: {error.strerror}"
            self.noticed.emit(Notice(text, "error"))
            return False
        self.workspace_path = path
        self.put_settings(self._settings.with_recent((str(path.absolute()),)))
        return True

    def shut_down(self) -> None:
        """Stop reading and watching."""
        self._watcher.set_on(False)
        self.opener.shut_down()

    def _start(self, targets: tuple[Target, ...]) -> None:
        self._restoring = None
        self.opener.open(targets, self._settings.session_options())

    def _state_changed(self, old: State, new: State) -> None:
        if old.sessions != new.sessions:
            self._watcher.show_state(new)

    def _loaded(self, results: tuple[Loaded, ...]) -> None:
        restoring, self._restoring = self._restoring, None
        state = self._store.state
        for result in results:
            state = self._take(state, result, restoring)
        if restoring is not None:
            state = _restored(state, restoring)
        self._store.put(state)
        self._tell(results, restoring)

    def _take(self, state: State, result: Loaded, restoring: _Restoring | None) -> State:
        if result.session is None:
            return state
        replaces = result.target.replaces
        if replaces:  # nothing happens when it was closed in the meantime
            return replace_session(state, replaces, result.session, result.paths)
        state = add_session(state, result.session, result.paths)
        if restoring is not None:
            restoring.names[result.target.label] = state.current
        return state

    def _tell(self, results: tuple[Loaded, ...], restoring: _Restoring | None) -> None:
        failed = [result for result in results if result.session is None]
        settings = self._settings
        if restoring is not None:
            self.workspace_path = restoring.path
            self.layout_wanted.emit(restoring.workspace.layout)
            settings = settings.with_recent((str(restoring.path.absolute()),))
        for result in results if restoring is None else ():
            if result.session is not None:
                settings = settings.with_recent(result.paths)
            elif not any(os.path.exists(path) for path in result.target.paths):
                settings = settings.without_recent(result.target.paths)
        self.put_settings(settings)
        if failed:
            sentences = "\n".join(result.error for result in failed)
            self.noticed.emit(Notice(sentences, "error"))
        elif len(results) == 1:
            self._tell_pairing(results[0])

    def _tell_pairing(self, result: Loaded) -> None:
        beside = [path for path in result.paths if path not in result.target.paths]
        if not beside:
            return
        names = ", ".join(Path(path).name for path in beside)
        chosen = result.target.paths[0]
        text = f"Opened together with {names}, found beside {Path(chosen).name}."
        self.noticed.emit(Notice(text, alone=chosen))


def _restored(state: State, restoring: _Restoring) -> State:
    """Return the state as the workspace describes it, its session ids turned into ours."""
    workspace, names = restoring.workspace, restoring.names

    def place(old: Place) -> Place:
        return replace(old, session=names.get(old.session, ""))

    notes = {names[key]: text for key, text in workspace.notes.items() if key in names}
    marks = [replace(mark, place=place(mark.place)) for mark in workspace.bookmarks]
    kept = tuple(mark for mark in marks if mark.place.session)
    slots = {mark.slot for mark in kept}
    others = tuple(mark for mark in state.bookmarks if mark.slot not in slots)
    state = replace(
        state,
        notes={**state.notes, **notes},
        bookmarks=(*others, *kept),
        view=workspace.view or state.view,
        split_view=workspace.split_view,
        overlay=workspace.overlay,
        filter_text=workspace.filter_text,
    )
    current = names.get(workspace.current)
    if current is None:
        return state
    state = show_session(state, current)
    session = state.session
    if session is None or workspace.method not in session.methods:
        return state
    return replace(state, method=workspace.method, selection=workspace.selection)
