"""Libraries of operators that a user names: files that register with torch when they are loaded.

Needs torch alone, so that an interpreter of the user's choice can load them as well.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from inspector.worker.exporter import AnswerError, module_of, sentence_of

_CALLED = re.compile(
    rb'"(?:torch\.ops|executorch\.exir\.dialects\.edge\.ops)\.(\w+)\.(\w+)(?:\.\w+)?"'
)
_GRAPHS = "/models/"  # folder of an archive that has its graphs
_LARGEST = 1 << 28  # bytes of a graph that are searched
_SHARED = (".so", ".dylib", ".dll")
_torch_ops: Any = torch.ops
_loaded: set[str] = set()


def load_libraries(paths: Iterable[str]) -> None:
    """Load each library that this process has not loaded yet.

    A Python file is executed; a shared library is loaded, which runs its initialisers.

    Raises: AnswerError for any other file, or one that the system cannot load; OSError for a
        missing file; errors of the code of a Python file
    """
    for path in paths:
        place = os.path.realpath(path)
        if place not in _loaded:
            _load(path)
            _loaded.add(place)


def _load(path: str) -> None:
    suffix = Path(path).suffix
    if suffix == ".py":
        _run(Path(path).absolute())
        return
    if suffix not in _SHARED:
        expected = ", ".join((".py", *_SHARED))
        raise AnswerError(f"{path}: expected a library of operators ({expected})")
    Path(path).stat()
    try:
        _torch_ops.load_library(str(Path(path).absolute()))
    except (OSError, RuntimeError) as error:
        raise AnswerError(f"{path}: this library cannot be loaded: {sentence_of(error)}") from error


def _run(file: Path) -> None:
    """Run a Python file, under its import name if it belongs to a package.

    Otherwise a package that imports it would run it a second time, and torch accepts
    each registration only once.
    """
    place = os.path.realpath(file)
    known = (getattr(module, "__file__", None) for module in [*sys.modules.values()])
    if any(isinstance(path, str) and os.path.realpath(path) == place for path in known):
        return
    name = _import_name(file)
    if not name:
        module_of(file)
        return
    sys.path.append(str(file.parent))  # for modules in its folder, as when run as a script
    module = importlib.import_module(name)
    sys.modules.setdefault(file.stem, module)


def _import_name(file: Path) -> str:
    """Return the dotted name a file is imported by, empty for one outside of packages."""
    for entry in map(Path, sys.path):
        if not file.is_relative_to(entry.absolute()):
            continue
        parts = file.with_suffix("").relative_to(entry.absolute()).parts
        if len(parts) < 2 or not all(part.isidentifier() for part in parts):
            continue
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        try:
            found = importlib.util.find_spec(name)
        except (ImportError, AttributeError, ValueError):  # its package cannot be imported
            continue
        if found is not None and found.origin and Path(found.origin).samefile(file):
            return name
    return ""


def lacking(operators: list[str]) -> str:
    """Return a sentence about unregistered operators of a program."""
    return (
        f"{', '.join(operators)} {'is' if len(operators) == 1 else 'are'} not registered in this"
        " process; name the library that does so (--library)"
    )


def unregistered(path: str | Path) -> list[str]:
    """Return the operators a ``.pt2`` file calls that this process does not know, sorted."""
    try:
        with zipfile.ZipFile(path) as archive:
            graphs = [
                archive.read(entry)
                for entry in archive.infolist()
                if _GRAPHS in entry.filename and entry.file_size <= _LARGEST
            ]
    except (OSError, zipfile.BadZipFile, ValueError, RuntimeError, NotImplementedError):
        return []  # torch has reported the error
    return unregistered_in(graphs)


def unregistered_in(graphs: Iterable[bytes]) -> list[str]:
    """Return the operators that graphs in JSON call and this process does not know, sorted."""
    called: set[tuple[str, str]] = set()
    for text in graphs:
        found: list[tuple[bytes, bytes]] = _CALLED.findall(text)
        called |= {(space.decode(), name.decode()) for space, name in found}
    called = {(space, name) for space, name in called if space != "higher_order"}
    return sorted(f"{space}::{name}" for space, name in called if not _is_known(space, name))


def _is_known(namespace: str, name: str) -> bool:
    return hasattr(getattr(_torch_ops, namespace), name)
