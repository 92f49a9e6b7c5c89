"""Model files of vendors that open as programs: by suffix, in the table of backends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from schema.backends import BACKENDS, Backend, resolve


def is_vendor_model(path: str | os.PathLike[str]) -> bool:
    """Return whether a file or folder is a model of a vendor, by its suffix."""
    return _backend(path) is not None and Path(path).exists()


def vendor_program(path: str | os.PathLike[str]) -> memoryview:
    """Return the bytes of the program that a model of a vendor is.

    Raises: OSError; FormatError
    """
    backend = _backend(path)
    assert backend is not None
    return memoryview(resolve(backend.model_reader)(Path(path)))


def vendor_suffixes() -> Iterator[str]:
    """Yield the suffixes of models of vendors."""
    for backend in BACKENDS.values():
        yield from backend.model_suffixes


def _backend(path: str | os.PathLike[str]) -> Backend | None:
    suffix = Path(path).suffix.lower()
    return next((one for one in BACKENDS.values() if suffix in one.model_suffixes), None)
