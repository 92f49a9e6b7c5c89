"""Environments of vendors' packages that ETScope has made: a folder each, with an interpreter."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schema.vendors.needs import has_module
from schema.vendors.table import Vendor

FACTS = "environment.json"
_NAME = "backends"


@dataclass(frozen=True, slots=True)
class Environment:
    """An environment.

    Attributes:
        name: of the backend it was made for
        folder: of the environment
        python: its interpreter
        packages: that were installed, with their versions
        created: day, as in 2026-11-23
    """

    name: str
    folder: Path
    python: Path
    packages: tuple[str, ...] = ()
    created: str = ""


def environments_folder() -> Path:
    """Return the folder of all environments, which need not exist yet."""
    return _data_folder() / "etscope" / _NAME


def _data_folder() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    found = os.environ.get("XDG_DATA_HOME", "")
    return Path(found) if os.path.isabs(found) else Path.home() / ".local" / "share"


def python_in(folder: Path) -> Path:
    """Return the interpreter of an environment."""
    windows = sys.platform == "win32"
    return folder / ("Scripts" if windows else "bin") / ("python.exe" if windows else "python")


def environments() -> tuple[Environment, ...]:
    """Return the environments whose creation was finished, by name."""
    root = environments_folder()
    if not root.is_dir():
        return ()
    found = (_environment(folder) for folder in sorted(root.iterdir()))
    return tuple(one for one in found if one is not None)


def unfinished() -> tuple[Path, ...]:
    """Return the folders of environments that cannot be used: their creation has not ended."""
    root = environments_folder()
    folders = sorted(root.iterdir()) if root.is_dir() else ()
    return tuple(one for one in folders if one.is_dir() and _environment(one) is None)


def environment(name: str) -> Environment | None:
    """Return the environment of a backend, None if it is not there."""
    return next((one for one in environments() if one.name == name), None)


def environment_for(vendor: Vendor) -> Environment | None:
    """Return the environment of a vendor, else one that meets its needs, None without any."""
    own = environment(vendor.alias)
    if own is not None:
        return own
    return next((one for one in environments() if not _missing(one, vendor)), None)


def state_here(vendor: Vendor) -> tuple[str, str]:
    """Return why a vendor's compiler cannot run here, and the name of the environment it runs in.

    Both are empty if the current interpreter has it.
    """
    missing = vendor.missing()
    found = environment_for(vendor) if missing else None
    return ("", found.name) if found is not None else (missing, "")


def _missing(one: Environment, vendor: Vendor) -> str:
    return vendor.missing(_libraries(one.folder), str(one.python.parent))


def python_with(module: str) -> str:
    """Return the interpreter of an environment that has a module; empty if none has it."""
    having = (one for one in environments() if has_module(module, _libraries(one.folder)))
    return next((str(one.python) for one in having), "")


def _libraries(folder: Path) -> list[str]:
    found = (*folder.glob("lib/python3*/site-packages"), folder / "Lib" / "site-packages")
    return [str(one) for one in found]


def _environment(folder: Path) -> Environment | None:
    try:
        facts: Any = json.loads((folder / FACTS).read_text("utf-8"))
        packages = tuple(str(one) for one in facts["packages"])
        created = str(facts["created"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    python = python_in(folder)
    return Environment(folder.name, folder, python, packages, created) if python.exists() else None
