"""The project's own files, and child processes that start in a clean state."""

from __future__ import annotations

import fnmatch
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("schema", "compiler", "runtime", "inspector", "devtools_app")


def tracked_files() -> list[Path]:
    """Return the files that git knows and new ones it does not ignore; without git, all files."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        return sorted(path for path in ROOT.rglob("*") if path.is_file() and not _made(path))
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    paths = [ROOT / name for name in listed.decode().split("\0") if name]
    return sorted({path for path in paths if path.is_file()})


def _made(path: Path) -> bool:
    """Tell whether a file was made by a tool: its folder is one that .gitignore names."""
    ignored = (ROOT / ".gitignore").read_text("utf-8").split()
    folders = {name.rstrip("/") for name in ignored if name.endswith("/")} | {".git"}
    parts = path.relative_to(ROOT).parts[:-1]
    return any(fnmatch.fnmatch(part, name) for part in parts for name in folders)


def sources() -> list[Path]:
    """Return the Python files of the packages and of the tests, recipes of the corpus aside."""
    kept = tuple(ROOT / name for name in (*PACKAGES, "tests", ".ci"))
    data = ROOT / "tests" / "data" / "corpus"
    return [
        path
        for path in tracked_files()
        if path.suffix == ".py" and _below(path, kept) and not path.is_relative_to(data)
    ]


def _below(path: Path, folders: tuple[Path, ...]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def run_python(code: str, *, cwd: Path = ROOT, warnings: str = "error") -> str:
    """Run code in a fresh interpreter, offscreen, warnings as errors; return what it printed."""
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "PYTHONPATH": str(ROOT)}
    finished = subprocess.run(
        [sys.executable, "-W", warnings, "-c", code],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout
