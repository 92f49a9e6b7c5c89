"""Which ``.ptd`` file a program was loaded without, as far as the files beside it tell."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from inspector.files.written_folders import COMPILE_REPORT
from runtime import ErrorCode, ExecutionError
from runtime.errors import usual_remedy
from schema.errors import FormatError
from schema.objects.codec import read_json

_SUFFIX = ".ptd"
_LARGEST = 1 << 26  # bytes of a report


@contextmanager
def missing_data_named(program: str, data_files: Sequence[str]) -> Generator[None, None, None]:
    """Name the ``.ptd`` files that are left in errors about external data.

    Args:
        program: path of the program
        data_files: ``.ptd`` files that it is loaded with
    """
    try:
        yield
    except ExecutionError as error:
        if error.remedy == usual_remedy(ErrorCode.InvalidExternalData):
            error.remedy = _remedy(Path(program).parent, data_files) or error.remedy
        raise


def _remedy(folder: Path, data_files: Sequence[str]) -> str:
    """Return which files were not loaded, empty if none are known; equal names are one file."""
    loaded = {Path(path).name for path in data_files}
    try:
        there = {path.name for path in folder.iterdir() if path.suffix == _SUFFIX}
    except OSError:
        there = set[str]()
    present, gone = sorted(there - loaded), sorted(_written(folder) - there - loaded)
    sentences: list[str] = []
    if gone:
        words = f"{_listed(gone)} of the compile {'are' if len(gone) > 1 else 'is'}"
        sentences.append(f"{words} missing in {folder}: name a copy with --ptd.")
    if present:
        words = f"{_listed(present)} beside the program {'are' if len(present) > 1 else 'is'}"
        named = " ".join(f"--ptd {folder / name}" for name in present)
        sentences.append(f"{words} not loaded: {named}")
    return " ".join(sentences)


def _written(folder: Path) -> set[str]:
    """Return the names of the ``.ptd`` files that the compile report of a folder lists."""
    try:
        report: Any = read_json(folder / COMPILE_REPORT, "the report of a compile", _LARGEST)
    except (OSError, FormatError):
        return set()
    files = cast("Mapping[str, Any]", report).get("files") if isinstance(report, Mapping) else ()
    found: set[str] = set()
    for one in cast("Iterable[Any]", files) if isinstance(files, list) else ():
        path = cast("Mapping[str, Any]", one).get("path") if isinstance(one, Mapping) else None
        if isinstance(path, str) and path.endswith(_SUFFIX):
            found.add(path)
    return found


def _listed(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
