"""Where samples come from: a name in a Python file, a folder of tensors, a file, or generated."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from inspector.files.digest import sha256_of
from inspector.recipes.emission import file_of, in_file

GENERATED = ("random", "ones", "zeros")
EXAMPLE = "example"  # the example inputs of the reference of an evaluation
SAMPLE_SUFFIXES = (".pt", ".npy")  # of the files of a folder, each a sample
EXPECTED = (
    "expected FILE.py:NAME, a folder of .pt and .npy files, a .pt file with a list, or one of"
    f" {', '.join(GENERATED)}"
)


class DataSourceError(ValueError):
    """A text that names no samples; one sentence."""


@dataclass(frozen=True, slots=True)
class DataSource:
    """A parsed data source.

    Attributes:
        text: as written, without the index
        path: file or folder; empty for generated samples
        name: of the iterable, or the callable that returns it, in a Python file; else empty
        index: of the only sample wanted; None for all
    """

    text: str
    path: str = ""
    name: str = ""
    index: int | None = None

    @property
    def runs_code(self) -> bool:
        """Return whether reading it runs code of the user."""
        return bool(self.name)

    @property
    def generated(self) -> bool:
        """Return whether samples are generated from the program, which are endless."""
        return not self.path

    def files(self) -> tuple[Path, ...]:
        """Return the files with samples in a folder, in natural order of their names.

        Hidden ones are left out: archivers and editors leave such files of their own.

        Raises: OSError
        """
        found = [one for one in Path(self.path).iterdir() if one.suffix in SAMPLE_SUFFIXES]
        return tuple(sorted((one for one in found if one.name[0] != "."), key=_natural))


def _natural(path: Path) -> tuple[tuple[int, str], ...]:
    """Return a key by which 2.pt precedes 10.pt."""
    digits = "".join(one if one.isdigit() else f" {one} " for one in path.name).split()
    return tuple((int(one), "") if one.isdecimal() else (-1, one) for one in digits)


def data_source(text: str) -> DataSource:
    """Return the samples that a text names; ``TEXT#3`` names only sample 3, counted from 0.

    Raises: DataSourceError
    """
    whole, sign, number = text.rpartition("#")
    if sign and number.isascii() and number.isdigit() and not Path(text).exists():
        found = data_source(whole)
        return DataSource(found.text, found.path, found.name, int(number))
    if text in (*GENERATED, EXAMPLE):
        return DataSource(text)
    if in_file(text):
        path = file_of(text)
        name = text[len(path) + 1 :]
        if not name.isidentifier():
            raise DataSourceError(f"{text}: expected the name of an iterable behind {path}:")
        return DataSource(text, path, name)
    if not text or text.endswith(".py"):
        raise DataSourceError(f"{text or 'nothing'!r}: {EXPECTED}")
    return DataSource(text, text)


def names_sample(text: str) -> bool:
    """Return whether a text names one sample of a data source, as in ``data.py:batches#3``."""
    try:
        return data_source(text).index is not None
    except DataSourceError:
        return False


def absolute(text: str) -> str:
    """Return a data source with an absolute path."""
    found = data_source(text)
    return text if found.generated else os.path.abspath(found.path) + text[len(found.path) :]


def fingerprint(path: str | Path) -> str:
    """Return a hash of the content of a file, or of the names, sizes and dates in a folder.

    Raises: OSError
    """
    place = Path(path)
    if not place.is_dir():
        found = place.stat()
        return _hash_of(str(place.absolute()), found.st_mtime_ns, found.st_size)
    facts = [(one.name, one.stat()) for one in sorted(place.iterdir())]
    text = ";".join(f"{name} {stat.st_size} {stat.st_mtime_ns}" for name, stat in facts)
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


@lru_cache(maxsize=64)
def _hash_of(path: str, _changed_ns: int, _size: int) -> str:
    return sha256_of(path)
