"""The project's own files, and child processes that start in a clean state."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("schema", "compiler", "runtime", "inspector", "devtools_app")


def tracked_files() -> list[Path]:
    """Return the files that git knows, and new ones that it does not ignore."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    paths = [ROOT / name for name in listed.decode().split("\0") if name]
    return sorted({path for path in paths if path.is_file()})


def sources() -> list[Path]:
    """Return the Python files of the packages and of the tests, recipes of the corpus aside."""
    kept = tuple(ROOT / name for name in (*PACKAGES, "tests", ".ci"))
    data = ROOT / "tests" / "data" / "corpus"
    return [
        path
        for path in tracked_files()
        if path.suffix == ".py" and path.is_relative_to(data) is False and _below(path, kept)
    ]


def _below(path: Path, folders: tuple[Path, ...]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def run_python(code: str, *, cwd: Path = ROOT) -> str:
    """Run code in a fresh interpreter, offscreen, warnings as errors; return what it printed."""
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "PYTHONPATH": str(ROOT)}
    finished = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout
