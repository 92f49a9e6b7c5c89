"""Folders that jobs wrote beside a program: what is in them, how large they are, removing them.

A folder counts by the report in it, and only the files that its report names are counted and
removed: other files there belong to the user. A sweep is one folder with those of its
points.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path, PurePath
from typing import Any, TypeVar

from inspector.files.run_calls import CALLS
from inspector.files.run_report import REPORT as RUN_REPORT
from schema.errors import FormatError
from schema.objects.codec import ContentError, from_json, read_json

_LARGEST = 1 << 26  # bytes of a report
COMPILE_REPORT, TRIALS = "compile.json", "bisect.json"
POINT, POINTS, RESULTS = "point.json", "points", "results.json"  # of a sweep, in its folder
VARIANTS = "_variants"  # ending of the folder with the variants of a program
_VALUES = ("values.etdp", "values.debug", "run.debug", "inputs.pt")
_DEEP = 3  # a program, its variants, their runs
_EVALUATION = ("eval.json", "samples.jsonl")


class FolderKind(str, Enum):
    """The content of a folder."""

    RUN = "run"
    VARIANT = "variant"
    BISECTION = "bisection"
    SWEEP = "sweep"
    EVALUATION = "evaluation"


@dataclass(frozen=True, slots=True)
class WrittenFolder:
    """A folder that a job wrote.

    Attributes:
        path: absolute
        kind: of its content
        files: those that the job wrote, by their paths below it, with their sizes in bytes
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
        return sum(size for name, size in self.files.items() if _is_values(name))


def written_folders(place: Path) -> tuple[WrittenFolder, ...]:
    """Return the folders that jobs wrote beside a program or in a folder, largest first.

    Args:
        place: a program, whose runs, variants and sweeps are found, or a folder

    Raises: OSError if it cannot be read
    """
    place = Path(os.path.abspath(place))
    if place.is_dir():
        found = list(_walked(place, _DEEP))
    else:
        os.stat(place)
        starts = (f"{place.stem}_run", f"{place.stem}{VARIANTS}")
        near = _folders(place.parent)
        own = [one for one in near if one.name.startswith(starts)]
        found = [one for folder in own for one in _walked(folder, _DEEP - 1)]
        others = (_sweep(one, place) for one in near if one not in own)
        found += [one for one in others if one is not None]
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


def written_by_job(folder: Path) -> WrittenFolder | None:
    """Return what a job wrote into a folder of any name, without folders in it of other jobs.

    Raises: OSError if it cannot be read
    """
    place = Path(os.path.abspath(folder))
    if not place.is_dir():
        return None
    return _sweep(place) or _written(place) or _named_by_report(place)


def removed(folder: WrittenFolder, *, values_only: bool = False) -> int:
    """Remove the files of a folder, and each folder once nothing else is in it; return the bytes.

    Raises: OSError if a file cannot be removed
    """
    freed = 0
    for name, size in folder.files.items():
        if not values_only or _is_values(name):
            (folder.path / name).unlink(missing_ok=True)
            freed += size
    homes = {home for name in folder.files for home in PurePath(name).parents}
    for home in sorted(homes, key=lambda one: -len(one.parts)):
        with contextlib.suppress(OSError):  # files of the user are in it
            (folder.path / home).rmdir()
    with contextlib.suppress(OSError):
        if folder.path.parent.name.endswith(VARIANTS):
            folder.path.parent.rmdir()
    return freed


def _is_values(name: str) -> bool:
    path = PurePath(name)
    return path.name in _VALUES or _is_call("/".join(path.parts[-2:]))


def _walked(folder: Path, deep: int) -> Iterator[WrittenFolder]:
    """Yield a folder and those in it, the inner ones first."""
    found = _sweep(folder) or _written(folder)
    if deep:
        for one in _folders(folder):
            if one.name != POINTS or found is None or found.kind is not FolderKind.SWEEP:
                yield from _walked(one, deep - 1)
    if found is not None:
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
        if facts is not None and listed is not None:
            return WrittenFolder(folder, kind, _sizes(folder, (name, *listed)), facts.st_mtime)
    return None


def _named_by_report(folder: Path) -> WrittenFolder | None:
    """Return a compile, a bisection or an evaluation in a folder that the user has named."""
    for name, kind in ((COMPILE_REPORT, FolderKind.VARIANT), (TRIALS, FolderKind.BISECTION)):
        facts = _facts(folder / name)
        names = list(_reported(folder, name, kind))
        if facts is not None and names:
            return WrittenFolder(folder, kind, _sizes(folder, names), facts.st_mtime)
    facts = _facts(folder / _EVALUATION[0])
    if facts is None or _read(folder / _EVALUATION[0], _EvaluationFolder) is None:
        return None
    sizes = _sizes(folder, _EVALUATION)
    return WrittenFolder(folder, FolderKind.EVALUATION, sizes, facts.st_mtime)


def _sweep(folder: Path, program: Path | None = None) -> WrittenFolder | None:
    """Return the sweep in a folder, None without one.

    Args:
        folder: that may hold one
        program: that its recipe must be beside, or among the variants of; None for any recipe
    """
    facts = _facts(folder / RESULTS)
    results = None if facts is None else _read(folder / RESULTS, _Sweep)
    if facts is None or results is None:
        return None
    if program is not None and not _is_of(program, Path(results.recipe)):
        return None
    names = [RESULTS]
    for points in (one for one in _folders(folder) if one.name == POINTS):
        for point in _folders(points):
            names += [f"{POINTS}/{point.name}/{name}" for name in _of_point(point)]
    return WrittenFolder(folder, FolderKind.SWEEP, _sizes(folder, names), facts.st_mtime)


def _is_of(program: Path, recipe: Path) -> bool:
    variants = program.parent / f"{program.stem}{VARIANTS}"
    return recipe.parent == program.parent or recipe.is_relative_to(variants)


def _of_point(point: Path) -> Iterator[str]:
    """Yield the files that a sweep wrote for a point: of its compile, its runs, its evaluation."""
    if _read(point / POINT, _Point) is not None:
        yield POINT
    yield from _reported(point, COMPILE_REPORT, FolderKind.VARIANT)
    for one in _folders(point):
        names = list(_reported(one, RUN_REPORT, FolderKind.RUN))
        if not names and _read(one / _EVALUATION[0], _EvaluationFolder) is not None:
            names = list(_EVALUATION)
        yield from (f"{one.name}/{name}" for name in names)


def _reported(folder: Path, report: str, kind: FolderKind) -> Iterator[str]:
    """Yield a report and the files that it names, nothing without one."""
    listed = _listed(folder / report, kind) if _facts(folder / report) is not None else None
    if listed is not None:
        yield from (report, *listed)


def _sizes(folder: Path, names: Iterable[str]) -> dict[str, int]:
    return {name: size for name in names if (size := _size(folder / name)) is not None}


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


@dataclass(frozen=True, slots=True)
class _Sweep:
    sweep: int
    etscope: str
    recipe: str


@dataclass(frozen=True, slots=True)
class _Point:
    key: str
    status: str


@dataclass(frozen=True, slots=True)
class _EvaluationFolder:
    eval: int


def _listed(report: Path, kind: FolderKind) -> list[str] | None:
    """Return the files that a report names, None for a file of another kind.

    Only plain names and those of calls count, which cannot lead elsewhere.
    """
    if kind is FolderKind.BISECTION:
        return [] if _read(report, dict[str, Any]) is not None else None
    found = _read(report, _Report)
    if found is None:
        return None
    has_calls = not (report.parent / CALLS).is_symlink()
    paths = [one.path for one in found.files]
    return [one for one in paths if _is_plain(one) or (has_calls and _is_call(one))]


_Content = TypeVar("_Content")


def _read(report: Path, kind: type[_Content]) -> _Content | None:
    """Return the content of a report, None if it is missing or another kind of file."""
    try:
        return from_json(read_json(report, "the report of a job", _LARGEST), kind, str(report))
    except (OSError, FormatError, ContentError):
        return None


def _is_call(name: str) -> bool:
    """Return whether a file has the values of a call of a sequence."""
    return re.fullmatch(rf"{CALLS}/[0-9]+\.pt", name) is not None


def _is_plain(name: str) -> bool:
    return bool(name) and name not in (".", "..") and not set(name) & {"/", "\\", "\0"}
