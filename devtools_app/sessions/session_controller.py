"""Open sessions, recent files, workspaces and preferences."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, QTimer, Signal

from devtools_app.jobs.latest import Latest
from devtools_app.sample_data import SAMPLE
from devtools_app.sessions.notices import (
    LOCATE,
    awaited_folders,
    files_lost,
    files_not_found,
    nothing_yet,
    opened_beside,
    unit_question,
)
from devtools_app.sessions.open_kind import Opens, opens_as
from devtools_app.sessions.opening import Load, Loaded, Opener, OpenTarget, load_later
from devtools_app.sessions.rereading import Patience, kept_session, lost_files, rewritten_files
from devtools_app.sessions.restoring import Restoring, absent_part, restored_state, with_absent
from devtools_app.sessions.watching import Watcher
from devtools_app.state.panel_layout import PanelLayouts
from devtools_app.state.relocation import missing_paths, relocated, session_paths
from devtools_app.state.requests import Notice, Reload
from devtools_app.state.settings import Settings, SettingsFile
from devtools_app.state.state import State
from devtools_app.state.store import Store
from devtools_app.state.sweep_file import sweep_path
from devtools_app.state.transitions import (
    add_session,
    close_session,
    replace_session,
    show_session,
    with_options,
)
from devtools_app.state.workspace import (
    Workspace,
    load_workspace,
    save_workspace,
    workspace_of,
)
from inspector.files.workspace_file import is_workspace
from schema.errors import FormatError
from schema.files.vendor_models import is_vendor_model
from schema.objects.identity_cache import clear as forget_derived

if TYPE_CHECKING:
    from inspector.files.session import Session, SessionOptions

_LOG = logging.getLogger(__name__)


class SessionController(QObject):
    """Opens and closes sessions, reads and writes persistent data.

    Signals:
        noticed(notice): a Notice to show
        settings_changed(settings): the preferences have changed
        layouts_requested(layouts): a workspace brings the places of the panels

    Attributes:
        opener: reads files; connect its progress
        workspace_path: file for Save, None while the workspace has no file
    """

    noticed = Signal(object)
    settings_changed = Signal(object)
    layouts_requested = Signal(object)

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
        self._restoring: Restoring | None = None
        self._partial: Restoring | None = None  # workspace with sessions that could not be opened
        self._relocating = Latest("locating files", self)
        self._relocating.ready.connect(self._located)
        self._absent = Workspace()
        self._watch_now = False
        self._tick_now = ""
        self._due: set[str] = set()
        self._losses: dict[str, Notice] = {}
        self._patience = Patience()
        self.workspace_path: Path | None = None
        self.first_view = ""  # of what the user opens, whatever was looked at before
        self.opener = Opener(load, self)
        self._watcher = Watcher(self)
        self._watcher.set_on(self._settings.watch)
        self._watcher.changed.connect(self._changed_on_disk)
        self._watcher.rewritten.connect(self._rewritten_on_disk)
        self._watcher.appeared.connect(lambda folders: self.open(folders))
        self.opener.loaded.connect(self._loaded)
        # queued: the other observers of the end come before the start of the next
        self.opener.ended.connect(self._reload_due, Qt.ConnectionType.QueuedConnection)
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
        self._store.put(with_options(state, self._options()))
        self.settings_changed.emit(settings)

    @property
    def watching(self) -> bool:
        """Return whether changed files are read again by themselves."""
        return self._settings.watch or self._watch_now

    def set_watch(self, on: bool) -> None:
        """Turn watching on or off, and save that."""
        self._watch_now = False
        self.put_settings(replace(self._settings, watch=on))
        self._watcher.set_on(on)
        self.settings_changed.emit(self._settings)

    def watch_for_now(self) -> None:
        """Watch files until the window closes, without remembering it."""
        self._watch_now = True
        self._watcher.set_on(True)
        self.settings_changed.emit(self._settings)

    def take_tick_for_now(self, tick: str) -> None:
        """Use this tick unit until the preferences change it."""
        self._tick_now = tick
        if (
            self._store.state.sessions
        ):  # options import the readers, which a start need not wait for
            self._store.put(with_options(self._store.state, self._options()))

    @property
    def preferences(self) -> Settings:
        """Return the settings as they hold now, with the options of this run."""
        return replace(self._settings, tick=self._tick_now or self._settings.tick)

    def put_preferences(self, settings: Settings) -> None:
        """Apply the dialog's settings; options of this run are kept unless changed."""
        if self._tick_now and settings.tick == self._tick_now:
            settings = replace(settings, tick=self._settings.tick)
        else:
            self._tick_now = ""
        self.put_settings(settings)
        self._store.put(with_options(self._store.state, self._options()))

    def _options(self) -> SessionOptions:
        return self.preferences.session_options()

    def open(self, paths: tuple[str, ...], *, pair: bool = False) -> None:
        """Open files and folders as one session or more; a workspace opens its sessions.

        Folders that each have a program or a record become separate sessions.

        Args:
            paths: files and folders
            pair: also open related files next to a single file
        """
        match opens_as(paths, self._store.state):
            case Opens.NOTHING:
                pass
            case Opens.WORKSPACE:
                found = next(path for path in paths if is_workspace(path))
                self.open_workspace(Path(found))
                others = [Path(path).name for path in paths if path != found]
                if others:
                    text = f"A workspace has to be opened alone: {', '.join(others)} stayed closed."
                    self.noticed.emit(Notice(text, "warning"))
            case Opens.SWEEP:
                path = os.path.abspath(sweep_path(paths[0]))
                self._store.update(sweep=path, view="sweep")
            case Opens.PERHAPS_VALUES | Opens.SESSIONS as kind:
                files = tuple(os.path.abspath(path) for path in paths)
                beside = self._beside(files) if kind is Opens.PERHAPS_VALUES else None
                self._start((OpenTarget(files, pair=pair, several=True, if_values=beside),))

    def open_result(self, paths: tuple[str, ...], *, behind: bool = False) -> None:
        """Open the files of a job or a variant as one session; the view in front stays.

        Args:
            paths: files
            behind: whether the session in front stays, too
        """
        files = tuple(os.path.abspath(path) for path in paths)
        self._start((OpenTarget(files, keep_view=True, behind=behind),))

    def open_beside(self, paths: tuple[str, ...]) -> None:
        """Read the session shown again, with more files."""
        target = self._beside(tuple(os.path.abspath(path) for path in paths))
        if target is None:
            self.open(paths)
        else:
            self._start((target,))

    def _beside(self, files: tuple[str, ...]) -> OpenTarget | None:
        """Return the session shown with more files, None without a session."""
        one = self._store.state.open_session
        if one is None:
            return None
        return OpenTarget(tuple(dict.fromkeys((*one.paths, *files))), one.id)

    def read_with(self, paths: tuple[str, ...], session: str) -> None:
        """Read a session again, from these files."""
        self._start((OpenTarget(tuple(dict.fromkeys(paths)), session, partial=True),))

    def open_alone(self, path: str) -> None:
        """Read the session shown again, with this file only."""
        self._start((OpenTarget((path,), self._store.state.current),))

    def choose_ticks(self, session: str, unit: str) -> None:
        """Read the traces of a session in a unit, and remember it by their content."""
        from inspector.files.origin import remember_unit

        one = next((one for one in self._store.state.sessions if one.id == session), None)
        if one is None:
            return
        try:
            remember_unit(one.session.files, unit)
        except OSError as error:
            self.noticed.emit(Notice(f"The unit is not remembered: {error}.", "warning"))
        self._store.put(with_options(self._store.state, self._options()))

    def reload(self, ids: tuple[str, ...] = (), *, partial: bool = False) -> None:
        """Read sessions again, by default the one shown.

        Args:
            ids: which sessions
            partial: accept readable files only; by default a session is unchanged if one of its
                files is unreadable
        """
        requested = ids or (self._store.state.current,)
        found = [one for one in self._store.state.sessions if one.id in requested]
        self._start(tuple(OpenTarget(one.paths, one.id, partial=partial) for one in found))

    def _changed_on_disk(self, ids: tuple[str, ...]) -> None:
        self._patience.begin(ids)
        self._read_again(ids)

    def _read_again(self, ids: tuple[str, ...]) -> None:
        self._due.update(ids)
        if not self.opener.busy:  # what the user asked for is not given up for a file that changed
            self._reload_due()

    def _rewritten_on_disk(self, ids: tuple[str, ...]) -> None:
        for one in self._store.state.sessions:
            issues = rewritten_files(one.session) if one.id in ids else ()
            if issues:
                kept = kept_session(one.session, issues)
                self._store.put(replace_session(self._store.state, one.id, kept))
                self.noticed.emit(files_lost(one.id, issues, ("Reload", Reload(one.id))))

    def _reload_due(self) -> None:
        due, self._due = tuple(sorted(self._due)), set()
        if due:
            self.reload(due)

    def close(self, session: str) -> None:
        """Close a session and release its files."""
        self._store.put(close_session(self._store.state, session))
        forget_derived()

    def folder(self) -> str:
        """Return the folder of the current session, else of the last one; empty if removed."""
        one = self._store.state.open_session
        lately = self._settings.recents[0] if self._settings.recents else ()
        for path in (one.paths if one is not None else lately)[:1]:
            is_folder = os.path.isdir(path) and not is_vendor_model(path)
            folder = path if is_folder else os.path.dirname(path)
            return folder if os.path.isdir(folder) else ""
        return ""

    def show(self, session: str) -> None:
        """Switch to a session."""
        self._store.put(show_session(self._store.state, session))

    def open_workspace(self, path: Path) -> None:
        """Open the files of a workspace in addition to open sessions."""
        try:
            workspace = load_workspace(path)
        except FormatError as error:
            self.noticed.emit(Notice(f"The workspace cannot be opened. {error}", "error"))
            return
        except OSError as error:
            text = f"The workspace {path} cannot be opened: {error.strerror or error}"
            self.noticed.emit(Notice(text, "error"))
            return
        if not workspace.sessions:
            self.noticed.emit(Notice(f"The workspace {path.name} names no files.", "warning"))
            return
        self._restore(Restoring(workspace, path))

    def locate_files(self, folder: Path) -> None:
        """Open the sessions of the last workspace that lack files, from below a folder."""
        last = self._partial
        if last is not None:
            self._relocating.submit(lambda token: relocated(last.workspace, folder, token.check))

    def _located(self, workspace: Workspace) -> None:
        last = self._partial
        if last is None:
            return
        if workspace == last.workspace:
            text = "None of the files was found there, or several that are equally likely."
            self.noticed.emit(Notice(text, "warning", offers=(LOCATE,)))
            return
        opened = frozenset(last.names)
        self._restore(replace(last, workspace=workspace, names=dict(last.names), opened=opened))

    def _restore(self, restoring: Restoring) -> None:
        """Open the sessions of a workspace that are not open yet."""
        self._restoring = restoring
        sessions = restoring.workspace.sessions
        targets = tuple(
            OpenTarget(paths, label=name) for name, paths in sessions if name not in restoring.names
        )
        self.opener.open(targets, self.preferences.session_options)

    def save_workspace(self, path: Path, layouts: PanelLayouts) -> bool:
        """Write the workspace; return whether that worked."""
        try:
            workspace = workspace_of(self._store.state, layouts)
            save_workspace(path, with_absent(workspace, self._absent))
        except OSError as error:
            text = f"The workspace cannot be saved in {path}: {error.strerror or error}"
            self.noticed.emit(Notice(text, "error"))
            return False
        self.workspace_path = path
        self.put_settings(self._settings.with_recent((str(path.absolute()),)))
        return True

    def shut_down(self) -> None:
        """Stop reading and watching."""
        self._watcher.set_on(False)
        self._relocating.close()
        self.opener.shut_down()

    def _start(self, targets: tuple[OpenTarget, ...]) -> None:
        self._restoring = None
        self.opener.open(targets, self.preferences.session_options)

    def _state_changed(self, old: State, new: State) -> None:
        if old.sessions != new.sessions:
            self._watcher.show_state(new)

    def _loaded(self, results: tuple[Loaded, ...]) -> None:
        restoring, self._restoring = self._restoring, None
        self._losses = {}
        state = self._store.state
        for result in results:
            state = self._take(state, result, restoring)
        known = {one.id for one in self._store.state.sessions}
        new = [one.id for one in state.sessions if one.id not in known]
        if restoring is not None:
            state = restored_state(state, restoring)
            self._absent = absent_part(restoring)
            self._partial = restoring if self._absent.sessions else None
        elif len(new) > 1:  # as one reads: the first is what the others are compared with
            state = show_session(state, new[0])
        self._store.put(state)
        self._report(results, restoring)

    def _take(self, state: State, result: Loaded, restoring: Restoring | None) -> State:
        if result.target.replaces:
            return self._replace(state, result)
        if result.session is None:
            return state
        target = result.target
        state = add_session(state, result.session, result.paths, behind=target.behind)
        state = _coloured(state, 0, result.session)
        if restoring is None:
            return state if target.keep_view else replace(state, view=self.first_view)
        restoring.names[target.label] = state.current
        return state

    def _replace(self, state: State, result: Loaded) -> State:
        one = next((one for one in state.sessions if one.id == result.target.replaces), None)
        if one is None:  # closed in the meantime
            return state
        lost = () if result.target.partial else lost_files(one, result)
        if lost and (wait := self._patience.next_wait(one.id)):
            QTimer.singleShot(wait, self, lambda: self._read_again((one.id,)))
            return state
        if lost:
            offer = ("Show the remaining files", Reload(one.id, partial=True))
            self._losses[one.id] = files_lost(
                one.id, lost, offer if result.session is not None else None
            )
            return replace_session(state, one.id, kept_session(one.session, lost))
        if result.session is None:
            return state
        self._patience.done(one.id)
        before = len(one.session.node_data)
        state = replace_session(state, one.id, result.session, result.paths)
        return _coloured(state, before, result.session)

    def _report(self, results: tuple[Loaded, ...], restoring: Restoring | None) -> None:
        failed = [
            result
            for result in results
            if result.session is None and result.target.replaces not in self._losses
        ]
        settings = self._settings
        if restoring is not None:
            self.workspace_path = restoring.path
            self.layouts_requested.emit(restoring.workspace.layouts)
            settings = settings.with_recent((str(restoring.path.absolute()),))
        for result in results if restoring is None else ():
            if result.session is not None:
                settings = settings.with_recent(result.paths)
            elif not any(os.path.exists(path) for path in result.target.paths):
                settings = settings.without_recent(result.target.paths)
        self.put_settings(settings)
        for loss in self._losses.values():
            self.noticed.emit(loss)
        lost = missing_paths(session_paths(self._absent)) if restoring is not None else ()
        if lost:
            self.noticed.emit(files_not_found(lost, failed))
        elif failed and (folders := awaited_folders(failed)) and self.watching:
            self._watcher.wait_for(folders)
            self.noticed.emit(nothing_yet(folders))
        elif failed:
            sentences = "\n".join(result.error for result in failed)
            self.noticed.emit(Notice(sentences, "error"))
        elif len(results) == 1 and not self._losses:
            self._report_pairing(results[0])

    def _ask_unit(self, result: Loaded) -> None:
        """Ask for the unit of ticks of a trace from elsewhere, until it is known for this file."""
        from inspector.profile.methods import unit_assumed

        session = result.session
        if session is None or result.target.replaces or not session.dumps:
            return
        if any(Path(path).is_relative_to(SAMPLE) for path in result.paths):
            return
        if unit_assumed(session):
            self.noticed.emit(unit_question(self._store.state.current))

    def _report_pairing(self, result: Loaded) -> None:
        found = opened_beside(result)
        if found is None:
            self._ask_unit(result)
        else:
            self.noticed.emit(found)


def _coloured(state: State, before: int, session: Session) -> State:
    """Return the state with the graph coloured by the first set of values that was added."""
    from devtools_app.viewmodels.data_colours import data_overlays

    names = data_overlays(session)[before:]
    return replace(state, overlay=names[0][0]) if names else state
