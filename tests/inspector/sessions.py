"""The committed sessions, as test parameters."""

from __future__ import annotations

import functools
from pathlib import Path

from inspector.files.load import load_session
from inspector.files.session import Session

DATA = Path(__file__).resolve().parents[1] / "data"


def folders(*needed: str) -> list[Path]:
    """Return the session folders that have all of these files."""
    found = [
        path
        for pattern in ("corpus/v*/*", "corpus/special/*", "extra/*")
        for path in DATA.glob(pattern)
        if path.is_dir()
    ]
    return sorted(path for path in found if all((path / name).exists() for name in needed))


def label(path: Path) -> str:
    """Return the name of a session in test ids."""
    return f"{path.parent.name}-{path.name}"


@functools.cache
def session(path: Path) -> Session:
    """Return a session, loaded once a process."""
    return load_session([path])
