"""Preferences of the user, stored in one JSON file; damage loses only preferences."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QStandardPaths

from devtools_app.appearance.look import BASE_SIZE, LARGEST, SMALLEST, ThemeMode
from devtools_app.state.json_file import read_parts, write_json
from devtools_app.state.panel_layout import NO_LAYOUTS, PanelLayout
from devtools_app.state.run_form import RunForm, run_form_from
from devtools_app.state.tab_groups import TabGroup
from inspector.tables.selection import Units
from inspector.units import SIZE_UNITS, TICK_UNITS, TIME_UNITS
from schema.errors import FormatError
from schema.objects.codec import read_object, to_json

if TYPE_CHECKING:
    from inspector.files.session import SessionOptions

_LOG = logging.getLogger(__name__)
MAX_RECENTS = 12
_MAX_BYTES = 4 << 20  # anything larger was not written by the window
TIME_CHOICES = ("auto", *(unit.symbol for unit in TIME_UNITS))
SIZE_CHOICES = ("auto", *(unit.symbol for unit in SIZE_UNITS))
TICK_CHOICES = ("", *TICK_UNITS)  # the empty one: ns, shown as assumed
_UNITS = {"time": TIME_CHOICES, "size": SIZE_CHOICES}
_PLACE = "settings"
_STAYS = "The file stays as it is, and no preferences are saved."
_NOTHING: Mapping[str, object] = {}
_NO_FRONTS: Mapping[str, str] = {}
_VARIABLE = "ETSCOPE_SETTINGS"


_STEMS = ("model", "run", "values")  # of files that a compile and a run write


def _is_same(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Return whether two are one session: the same files, or a folder and the files it has."""
    if set(one) == set(other):
        return True
    return _is_folder_of(one, other) or _is_folder_of(other, one)


def _is_folder_of(folder: tuple[str, ...], paths: tuple[str, ...]) -> bool:
    """Return whether these are the files of a program in a folder and of its run in or below it."""
    if len(folder) != 1:
        return False
    home, files = PurePath(folder[0]), [PurePath(path) for path in paths]
    named = all(one.suffix and one.stem in _STEMS for one in files)
    within = any(one.parent == home for one in files) and all(home in one.parents for one in files)
    return named and within


@dataclass(frozen=True, slots=True)
class Settings:
    """Preferences and persistent data of the window.

    Attributes:
        theme: system, light or dark
        font_size: normal text in logical pixels
        units: how numbers are shown
        tick: unit of ETDump ticks chosen by the user, empty if not chosen
        source_roots: folders with source files
        path_mapping: (recorded prefix, local folder) pairs
        editor: command that opens a file; {file} and {line} are filled in
        watch: whether files are reloaded when they change
        recents: opened sessions, newest first
        geometry: of the window, base64 of Qt's bytes
        layouts: where the panels are, by the group of tabs
        arrangements: of the panels that the user has named
        view: view in front
        group: its group of tabs
        fronts: the view in front of each group
        overlay: meaning of colours
        graph_filters: saved searches of the graph view
        last_compile: contents of the Compile dialog, as JSON: its classes are imported later
        last_run: settings of the last run
        gates: requirements of the Gates view
    """

    theme: ThemeMode = ThemeMode.SYSTEM
    font_size: int = BASE_SIZE
    units: Units = field(default_factory=Units)
    tick: str = ""
    source_roots: tuple[str, ...] = ()
    path_mapping: tuple[tuple[str, str], ...] = ()
    editor: str = ""
    watch: bool = False
    recents: tuple[tuple[str, ...], ...] = ()
    geometry: str = ""
    layouts: Mapping[str, PanelLayout] = field(default_factory=lambda: NO_LAYOUTS)
    arrangements: Mapping[str, PanelLayout] = field(default_factory=lambda: NO_LAYOUTS)
    view: str = ""
    group: TabGroup = TabGroup.LOOK
    fronts: Mapping[str, str] = field(default_factory=lambda: _NO_FRONTS)
    overlay: str = "time"
    graph_filters: tuple[str, ...] = ()
    last_compile: Mapping[str, object] = field(default_factory=lambda: _NOTHING)
    last_run: RunForm = field(default_factory=RunForm)
    gates: tuple[str, ...] = ()

    def session_options(self) -> SessionOptions:
        """Return how sessions are to be read."""
        from inspector.files.session import SessionOptions

        return SessionOptions(
            source_time_scale=self.tick or "ns",
            time_scale_assumed=not self.tick,
            source_roots=self.source_roots,
            path_mapping=dict(self.path_mapping),
        )

    def with_recent(self, paths: tuple[str, ...]) -> Settings:
        """Return the settings with a session as the most recent one."""
        others = tuple(entry for entry in self.recents if not _is_same(entry, paths))
        return replace(self, recents=(paths, *others)[:MAX_RECENTS])

    def without_recent(self, paths: tuple[str, ...]) -> Settings:
        """Return the settings without a recent session, for example if its files are missing."""
        return replace(self, recents=tuple(one for one in self.recents if one != paths))


def settings_from(content: Mapping[str, object]) -> Settings:
    """Return the settings in a JSON object; missing or invalid fields become defaults."""
    known = dict(content)
    pairs = known.pop("path_mapping", [])
    known["path_mapping"] = list(map(_pair, pairs)) if isinstance(pairs, list) else pairs
    units, run = (known.pop(name, {}) for name in ("units", "last_run"))
    limits = {"font_size": (SMALLEST, LARGEST)}
    found = read_parts(known, Settings, _PLACE, choices={"tick": TICK_CHOICES}, limits=limits)
    return replace(
        found,
        units=read_parts(units, Units, f"{_PLACE}: units", choices=_UNITS),
        path_mapping=tuple(pair for pair in found.path_mapping if pair[0]),
        recents=tuple(paths for paths in found.recents if paths)[:MAX_RECENTS],
        last_compile=_finite(found.last_compile),
        last_run=run_form_from(run),
    )


def _pair(content: object) -> object:
    """Return one pair of the mapping of paths as a list; in the file it is an object."""
    if not isinstance(content, dict):
        return content
    found = cast("dict[str, object]", content)
    return [found.get("from"), found.get("to")]


def _finite(content: Mapping[str, object]) -> dict[str, object]:
    """Return JSON content without NaN and infinities, which JSON of others does not have."""
    return json.loads(json.dumps(content), parse_constant=lambda _: None)


def settings_content(settings: Settings) -> dict[str, object]:
    """Return the settings as a JSON object."""
    content: dict[str, object] = to_json(settings)
    content["path_mapping"] = [{"from": one, "to": two} for one, two in settings.path_mapping]
    return content


class SettingsFile:
    """The file of the settings.

    Attributes:
        path: of the file
        trouble: the error of reading it and its new path; empty
            without an error
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = default_path() if path is None else path
        self.trouble = ""
        self._may_write = True

    def load(self) -> Settings:
        """Return the settings; defaults if the file is missing or damaged.

        A damaged file is renamed, because the next save would overwrite it; an unreadable one is
        not touched, and nothing is saved.
        """
        try:
            return settings_from(read_object(self.path, "preferences", _MAX_BYTES))
        except FileNotFoundError:
            return Settings()
        except FormatError as error:
            self._refuse(str(error), self._set_aside())
        except OSError as error:
            self._may_write = False
            self._refuse(f"{self.path} cannot be read: {error.strerror or error}", _STAYS)
        return Settings()

    def _set_aside(self) -> str:
        kept = _free_name(self.path)
        try:
            self.path.rename(kept)
        except OSError:
            self._may_write = False
            return _STAYS
        return f"The file is kept as {kept.name}."

    def _refuse(self, reason: str, outcome: str) -> None:
        self.trouble = f"The preferences are not used: {reason}. {outcome}"
        _LOG.warning("%s", self.trouble)

    def save(self, settings: Settings) -> None:
        """Write the settings; a failure is only logged."""
        if not self._may_write:
            return
        try:
            write_json(self.path, settings_content(settings))
        except OSError as error:
            _LOG.warning("preferences are not saved: %s", error)


def _free_name(path: Path) -> Path:
    """Return an unused name for a damaged file."""
    names = [path.with_name(f"{path.name}.damaged")]
    names += [path.with_name(f"{path.name}.damaged-{number}") for number in range(2, 10)]
    return next((name for name in names if not name.exists()), names[-1])


def default_path() -> Path:
    """Return the path of the settings: in the configuration folder, or ETSCOPE_SETTINGS."""
    named = os.environ.get(_VARIABLE)
    if named:
        return Path(named)
    where = QStandardPaths.StandardLocation.GenericConfigLocation
    return Path(QStandardPaths.writableLocation(where)) / "etscope" / "settings.json"
