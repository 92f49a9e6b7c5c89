"""Folders that jobs wrote beside a program: what is in them, how large they are, removing them.

A folder counts by the report in it, and only the files that its report names are counted and
removed: whatever else lies there belongs to the user.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from inspector.files.run_report import REPORT as RUN_REPORT
from schema.errors import FormatError
from schema.objects.codec import ContentError, from_json, read_json

_LARGEST = 1 << 26  # bytes of a report
COMPILE_REPORT, TRIALS = "compile.json", "bisect.json"
VARIANTS = "_variants"  # ending of the folder with the variants of a program
_VALUES = ("values.etdp", "values.debug", "run.debug", "inputs.pt")
_DEEP = 3  # a program, its variants, their runs


class FolderKind(str, Enum):
    """What a folder holds."""

    RUN = "run"
    VARIANT = "variant"
    BISECTION = "bisection"


@dataclass(frozen=True, slots=True)
class WrittenFolder:
    """A folder that a job wrote.

    Attributes:
        path: absolute
        kind: of its content
        files: those that the job wrote, with their sizes in bytes
        written: when, in seconds since the epoch
    """

    path: Path
    kind: FolderKind
    files: Mapping[str, int]
    written: float

    @property
    def size(self) -> int:
        """Return the bytes of its files."""
        return sum(self.files.values())

    @property
    def values_size(self) -> int:
        """Return the bytes of logged values."""
        return sum(size for name, size in self.files.items() if name in _VALUES)


def written_folders(place: Path) -> tuple[WrittenFolder, ...]:
    """Return the folders that jobs wrote beside a program or in a folder, largest first.

    Args:
        place: a program, whose runs and variants are found, or a folder

    Raises: OSError if it cannot be read
    """
    place = Path(os.path.abspath(place))
    if place.is_dir():
        found = list(_walked(place, _DEEP))
    else:
        os.stat(place)
        starts = (f"{place.stem}_run", f"{place.stem}{VARIANTS}")
        near = [one for one in _folders(place.parent) if one.name.startswith(starts)]
        found = [one for folder in near for one in _walked(folder, _DEEP - 1)]
    return tuple(sorted(found, key=lambda one: (-one.size, str(one.path))))


def runs_below(folder: Path, stem: str) -> tuple[WrittenFolder, ...]:
    """Return the runs of a program that were written into its folder.

    Args:
        folder: of the program
        stem: of its file name
    """
    named = re.compile(rf"(?:{re.escape(stem)}_)?run(?:_.+)?")
    found = [_written(one) for one in _folders(folder) if named.fullmatch(one.name)]
    return tuple(one for one in found if one is not None and one.kind is FolderKind.RUN)


def removed(folder: WrittenFolder, *, values_only: bool = False) -> int:
    """Remove the files of a folder, and the folder once nothing else is in it; return the bytes.

    Raises: OSError if a file cannot be removed
    """
    freed = 0
    for name, size in folder.files.items():
        if not values_only or name in _VALUES:
            (folder.path / name).unlink(missing_ok=True)
            freed += size
    with contextlib.suppress(OSError):  # files of the user are in it
        folder.path.rmdir()
        if folder.path.parent.name.endswith(VARIANTS):
            folder.path.parent.rmdir()
    return freed


def _walked(folder: Path, deep: int) -> Iterator[WrittenFolder]:
    """Yield a folder and those in it, the inner ones first."""
    if deep:
        for one in _folders(folder):
            yield from _walked(one, deep - 1)
    if (found := _written(folder)) is not None:
        yield found


def _folders(place: Path) -> list[Path]:
    """Return the folders in a folder; links are not followed, hidden ones left out."""
    with contextlib.suppress(PermissionError), os.scandir(place) as found:
        return sorted(
            Path(one.path)
            for one in found
            if one.is_dir(follow_symlinks=False) and not one.name.startswith(".")
        )
    return []


def _written(folder: Path) -> WrittenFolder | None:
    kinds = [(RUN_REPORT, FolderKind.RUN)]
    if folder.parent.name.endswith(VARIANTS):
        kinds += [(COMPILE_REPORT, FolderKind.VARIANT), (TRIALS, FolderKind.BISECTION)]
    for name, kind in kinds:
        facts = _facts(folder / name)
        listed = None if facts is None else _listed(folder / name, kind)
        if facts is None or listed is None:
            continue
        sizes = {
            each: size for each in (name, *listed) if (size := _size(folder / each)) is not None
        }
        return WrittenFolder(folder, kind, sizes, facts.st_mtime)
    return None


def _facts(path: Path) -> os.stat_result | None:
    """Return the facts of a regular file, None for anything else."""
    with contextlib.suppress(OSError):
        facts = path.lstat()
        return facts if stat.S_ISREG(facts.st_mode) else None
    return None


def _size(path: Path) -> int | None:
    facts = _facts(path)
    return None if facts is None else facts.st_size


@dataclass(frozen=True, slots=True)
class _File:
    path: str


@dataclass(frozen=True, slots=True)
class _Report:
    etscope: str
    files: tuple[_File, ...] = ()


def _listed(report: Path, kind: FolderKind) -> list[str] | None:
    """Return the files that a report names, None for a file of another kind.

    Only plain names count, which cannot lead elsewhere.
    """
    try:
        content = read_json(report, "the report of a job", _LARGEST)
        if kind is FolderKind.BISECTION:
            return []
        found = from_json(content, _Report, str(report))
    except (OSError, FormatError, ContentError):
        return None
    return [one.path for one in found.files if _is_plain(one.path)]


def _is_plain(name: str) -> bool:
    return bool(name) and name not in (".", "..") and not set(name) & {"/", "\\", "\0"}
