"""The ``executorch`` package of this interpreter, whichever release it is."""

from __future__ import annotations

import importlib
import importlib.metadata
import platform
import sys
from typing import Any

import torch


class StockError(Exception):
    """A request that this release of ``executorch`` does not support; one sentence."""


def part(name: str) -> Any:  # noqa: ANN401 - a module of any release
    """Return a module of the package, by its name below ``executorch``."""
    return importlib.import_module(f"executorch.{name}")


def part_or_none(name: str) -> Any:  # noqa: ANN401
    """Return a module of the package, None if this release lacks it or cannot load it."""
    try:
        return part(name)
    except (ImportError, OSError, AttributeError, RuntimeError):
        return None


def version() -> str:
    """Return the release, ``unknown`` if the package has none."""
    try:
        return importlib.metadata.version("executorch")
    except importlib.metadata.PackageNotFoundError:
        found = part_or_none("version")
        return str(getattr(found, "__version__", "unknown"))


def versions() -> dict[str, str]:
    """Return the versions of this interpreter for records."""
    return {
        "executorch": version(),
        "torch": str(torch.__version__),
        "python": platform.python_version(),
        "executable": sys.executable,
    }
