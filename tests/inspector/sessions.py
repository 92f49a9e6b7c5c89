"""The committed sessions, as test parameters."""

from __future__ import annotations

import functools
import shutil
from pathlib import Path

from inspector.files.load import load_session
from inspector.files.session import Session
from schema import etdump

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


def without_values(folder: Path, place: Path) -> Path:
    """Return a copy of a session in a new folder, its trace without what was logged."""
    shutil.copytree(folder, place, ignore=shutil.ignore_patterns("*.debug"))
    trace = place / "run.etdp"
    runs = [
        etdump.run(run.name, [one for one in run.events if not isinstance(one, etdump.DebugEvent)])
        for run in etdump.decode(trace.read_bytes()).run_data
    ]
    trace.write_bytes(etdump.encode(etdump.dump(runs)))
    return place


@functools.cache
def session(path: Path) -> Session:
    """Return a session, loaded once a process."""
    return load_session([path])
