"""The ``executorch`` package of this interpreter, whichever release it is."""

from __future__ import annotations

import importlib
import importlib.metadata
import platform
import sys
from typing import Any

import torch


class StockError(Exception):
    """Something that this release of ``executorch`` does not do; one sentence."""


def part(name: str) -> Any:  # noqa: ANN401 - a module of any release
    """Return a module of the package, by its name below ``executorch``."""
    return importlib.import_module(f"executorch.{name}")


def part_or_none(name: str) -> Any:  # noqa: ANN401
    """Return a module of the package, None where this release has none or cannot load it."""
    try:
        return part(name)
    except (ImportError, OSError, AttributeError, RuntimeError):
        return None


def version() -> str:
    """Return the release, ``unknown`` where the package has none."""
    try:
        return importlib.metadata.version("executorch")
    except importlib.metadata.PackageNotFoundError:
        found = part_or_none("version")
        return str(getattr(found, "__version__", "unknown"))


def versions() -> dict[str, str]:
    """Return what is to be recorded of this interpreter."""
    return {
        "executorch": version(),
        "torch": str(torch.__version__),
        "python": platform.python_version(),
        "executable": sys.executable,
    }
