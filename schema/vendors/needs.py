"""What the compiler of a vendor needs on a machine, and whether it is there."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class VendorNeed:
    """Something without which a partitioner cannot be used.

    Attributes:
        module: path of a module below a folder of packages, as ``package/part``
        command: name of a program on the path, or beside the interpreter
        variable: of the environment, with a folder
        platform: as ``sys.platform``
        missing: sentence where it is not there
    """

    module: str = ""
    command: str = ""
    variable: str = ""
    platform: str = ""
    missing: str = ""

    @property
    def sentence(self) -> str:
        """Return why a partitioner cannot be used without it."""
        if self.missing:
            return self.missing
        if self.command:
            return f"the program {self.command} is not on the path"
        if self.variable:
            return f"the environment variable {self.variable} does not name a folder"
        if self.platform:
            return f"it needs {_SYSTEMS.get(self.platform, self.platform)}"
        return f"the module {self.module.replace('/', '.')} is not installed"

    def is_met(self, paths: Sequence[str] | None = None, commands: str = "") -> bool:
        """Return whether it is there.

        Args:
            paths: folders of packages; None for those of this interpreter
            commands: path for programs, as in PATH; empty for that of this interpreter
        """
        if self.platform:
            return sys.platform == self.platform
        if self.variable:
            return Path(os.environ.get(self.variable) or "/none").is_dir()
        if self.command:
            return shutil.which(self.command, path=commands or command_path()) is not None
        return has_module(self.module, sys.path if paths is None else paths)


_SYSTEMS = {"darwin": "macOS", "linux": "Linux", "win32": "Windows"}
_EXTENSIONS = (".so", ".pyd", ".dylib")


def has_module(place: str, paths: Sequence[str]) -> bool:
    """Return whether a module or package lies below any of some folders; nothing is imported."""
    return any(_is_below(Path(path or "."), place) for path in paths)


def _is_below(root: Path, place: str) -> bool:
    found = root / place
    try:
        if found.is_dir() or found.with_name(f"{found.name}.py").is_file():
            return True
        # an extension has the tag of the interpreter in its name
        return any(one.suffix in _EXTENSIONS for one in found.parent.glob(f"{found.name}.*"))
    except OSError:
        return False


def command_path() -> str:
    """Return the path for programs, the folder of the interpreter's own scripts first."""
    return os.pathsep.join((sysconfig.get_path("scripts"), os.environ.get("PATH", "")))


def use_own_commands() -> None:
    """Put the folder of the interpreter's own scripts on the path of this process."""
    own = sysconfig.get_path("scripts")
    if own not in os.environ.get("PATH", "").split(os.pathsep):
        os.environ["PATH"] = command_path()
