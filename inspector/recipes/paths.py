"""Files that a job names, so that it is independent of the current folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from inspector.recipes.compile_job import CompileJob
from inspector.recipes.emission import file_of, in_file
from inspector.recipes.source import Source

_Moved = Callable[[str], str]


def placed(job: CompileJob) -> CompileJob:
    """Return a job whose files are named from the root, not from the folder we are in."""
    return with_files(job, lambda path: str(Path(path).absolute()))


def found_beside(job: CompileJob, folder: Path) -> CompileJob:
    """Return the job of a recipe in a folder, with the paths of its files resolved.

    A relative path is resolved against that folder, then against the current one. A file that is
    missing at its path is replaced by a file of that name in the folder.

    Args:
        job: of the recipe
        folder: of the recipe
    """
    return with_files(job, lambda path: _there(path, folder.absolute()))


def _there(path: str, folder: Path) -> str:
    name = Path(path.replace("\\", "/")).name
    tries = (folder / path, Path(path).absolute(), folder / name)
    return next((str(one) for one in tries if name and _exists(one)), path)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # an invalid path, for example with a NUL character
        return False


def with_files(job: CompileJob, moved: Callable[[str], str]) -> CompileJob:
    """Return a job with another path for each file, folder or interpreter that it names."""
    how = job.quantising
    inputs = how.calibration  # a file, a folder, or a name in a Python file
    return replace(
        job,
        source=Source(_moved(job.source.path, moved), job.source.function),
        python=_interpreter(job.python, moved),
        partitioners=tuple(_named(one, moved) for one in job.partitioners),
        passes=tuple(_named(one, moved) for one in job.passes),
        memory_planner=_named(job.memory_planner, moved),
        libraries=tuple(moved(path) for path in job.libraries),
        quantising=replace(
            how,
            calibration=_named(inputs, moved) if in_file(inputs) else _moved(inputs, moved),
            quantizer=_named(how.quantizer, moved),
        ),
    )


def _moved(path: str, moved: _Moved) -> str:
    return moved(path) if path else ""


def _interpreter(path: str, moved: _Moved) -> str:
    """Keep a name without a folder: it is searched in PATH."""
    return moved(path) if path and os.path.dirname(path) else path


def _named(text: str, moved: _Moved) -> str:
    if not in_file(text):
        return text
    file = file_of(text)
    return moved(file) + text[len(file) :]
