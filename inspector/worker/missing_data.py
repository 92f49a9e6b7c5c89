"""Which ``.ptd`` file a program was loaded without, as far as the files beside it tell."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from inspector.check.pairs import program_and_data
from inspector.files.bundled import inner_program
from inspector.files.written_folders import COMPILE_REPORT
from runtime import ErrorCode, ExecutionError
from runtime.errors import usual_remedy
from runtime.program.loading import read
from schema import bundled, flat_tensor
from schema.errors import FormatError
from schema.objects.codec import read_json
from schema.program import ProgramFile, decode

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
            error.remedy = _remedy(Path(program), data_files) or error.remedy
        raise


def _remedy(path: Path, data_files: Sequence[str]) -> str:
    """Return which files were not loaded, empty if none are known; equal names are one file."""
    folder, program = path.parent, _program(path)
    if program is None:
        return ""
    loaded = {Path(one).name for one in data_files}
    there = _beside(folder)
    present = [name for name in sorted(there - loaded) if _belongs(folder / name, program)]
    gone = sorted(_written(folder, program) - there - loaded)
    sentences: list[str] = []
    if gone:
        words = f"{_listed(gone)} of the compile {'are' if len(gone) > 1 else 'is'}"
        sentences.append(f"{words} missing in {folder}: name a copy with --ptd.")
    if present:
        words = f"{_listed(present)} beside the program {'are' if len(present) > 1 else 'is'}"
        named = " ".join(f"--ptd {folder / name}" for name in present)
        sentences.append(f"{words} not loaded: {named}")
    return " ".join(sentences)


def _program(path: Path) -> ProgramFile | None:
    """Return a program, or that in a bundle; None where it cannot be read."""
    try:
        data, file = read(str(path))
        if bundled.sniff(bytes(data[:16])):
            return inner_program(bundled.decode(data, file=file))
        return decode(data, file=file)
    except (ExecutionError, FormatError):
        return None


def _beside(folder: Path) -> set[str]:
    try:
        return {path.name for path in folder.iterdir() if path.suffix == _SUFFIX}
    except OSError:
        return set()


def _belongs(path: Path, program: ProgramFile) -> bool:
    """Return whether a file has keys that a program looks up, in the layout that it expects."""
    try:
        data, file = read(str(path))
        return program_and_data(program, flat_tensor.decode(data, file=file)).matched > 0
    except (ExecutionError, FormatError):
        return False


def _written(folder: Path, program: ProgramFile) -> set[str]:
    """Return the ``.ptd`` files in the compile report of a folder, if it is of the program."""
    try:
        report: Any = read_json(folder / COMPILE_REPORT, "the report of a compile", _LARGEST)
    except (OSError, FormatError):
        return set()
    files = cast("Mapping[str, Any]", report).get("files") if isinstance(report, Mapping) else ()
    found: dict[str, Any] = {}
    for one in cast("Iterable[Any]", files) if isinstance(files, list) else ():
        if isinstance(one, Mapping):
            entry = cast("Mapping[str, Any]", one)
            found[str(entry.get("path"))] = entry.get("bytes")
    if program.nbytes not in (size for name, size in found.items() if name.endswith(".pte")):
        return set()
    return {name for name in found if name.endswith(_SUFFIX)}


def _listed(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
