"""The code that the user has agreed to run, for the lifetime of the process."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the window is on the screen before anything of the inspector is loaded
    from inspector.recipes.compile_job import CompileJob
    from inspector.recipes.source import Source

_OURS = Path(__file__).resolve().parents[1]
_agreed: set[str] = set()


def agree(paths: Iterable[str]) -> None:
    """Trust the code in files: the user has confirmed it, or has run it."""
    _agreed.update(paths)


def is_agreed(path: str) -> bool:
    """Return whether the code in a file may be run without confirmation, like ETScope's own."""
    return path in _agreed or Path(path).resolve().is_relative_to(_OURS)


def untrusted_code(job: CompileJob) -> tuple[str, ...]:
    """Return the files whose code a compile would run and which are not trusted yet.

    The recipe itself does not make its source trusted: both may be from an untrusted source.
    """
    from inspector.recipes.compile_job import code_files

    return tuple(path for path in code_files(job) if not is_agreed(path))


def untrusted_source(source: Source | None) -> str:
    """Return a source whose code a run of its program would run, unless it is trusted, or empty.

    Programs in files are data: only a function of a Python file is code.
    """
    from inspector.recipes.source import SourceKind

    runs = source is not None and source.kind is SourceKind.PYTHON
    return str(source) if source is not None and runs and not is_agreed(source.path) else ""
