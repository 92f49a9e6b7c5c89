"""The folder of the user's configuration, in which the window keeps its settings as well."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def user_folder() -> Path:
    """Return the folder, which need not exist yet."""
    return _configuration() / "etscope"


def _configuration() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Preferences"
    found = os.environ.get("XDG_CONFIG_HOME", "")
    return Path(found) if os.path.isabs(found) else Path.home() / ".config"
