"""Tensors of a comparison stored on disk in the order of the run, within a budget."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
ArraySources = Mapping[str, tuple[int, Callable[[], Array]]]
"""Name -> bytes of an array, and a function that returns it."""


class Kept:
    """A folder of tensors that grows up to a budget."""

    def __init__(self, folder: Path | None, budget: int) -> None:
        self._folder = folder
        self._left = budget if folder is not None else 0
        self._gone: set[str] = set()

    def add(self, name: str, number: int, arrays: ArraySources) -> str:
        """Write a pass of a tensor; return the file's name, empty when there was no room.

        Args:
            name: of the file, without its suffix
            number: of the pass
            arrays: computed one at a time
        """
        if self._folder is None or name in self._gone:
            return ""
        file = f"{name}.npz"
        needed = sum(nbytes for nbytes, _ in arrays.values())
        if needed <= self._left:
            try:
                _append(self._folder / file, number, arrays)
            except OSError:
                self._left = 0  # a full disk keeps nothing more; the comparison goes on
            else:
                self._left -= needed
                return file
        self._gone.add(name)  # a tensor of which passes are missing is not shown
        (self._folder / file).unlink(missing_ok=True)
        return ""


def _append(path: Path, number: int, arrays: ArraySources) -> None:
    with zipfile.ZipFile(path, "a" if number else "w") as archive:
        for key, (_, compute) in arrays.items():
            with archive.open(f"{key}.{number}.npy", "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, compute(), allow_pickle=False)


def kept_arrays(path: Path) -> dict[str, Array]:
    """Return the arrays of a kept file; of several passes they are stacked.

    Raises: OSError, ValueError if it cannot be read
    """
    passes: dict[str, dict[int, Array]] = {}
    with np.load(path, allow_pickle=False) as members:
        for member in members.files:
            key, _, number = member.partition(".")
            passes.setdefault(key, {})[int(number or 0)] = members[member]
    found: dict[str, Array] = {}
    for key, each in passes.items():
        rows = [each[number] for number in sorted(each)]
        alike = len({row.shape for row in rows}) == 1
        joined = np.stack(rows) if alike else np.concatenate([row.ravel() for row in rows])
        found[key] = rows[0] if len(rows) == 1 else joined
    return found
