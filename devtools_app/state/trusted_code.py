"""The code that the user has agreed to run, for as long as this process is there."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

_OURS = Path(__file__).resolve().parents[1]
_agreed: set[str] = set()


def agree(paths: Iterable[str]) -> None:
    """Take it that the code in files may be run: the user has said so, or has had it run."""
    _agreed.update(paths)


def is_agreed(path: str) -> bool:
    """Return whether the code in a file may be run without a question; ours may."""
    return path in _agreed or Path(path).resolve().is_relative_to(_OURS)
