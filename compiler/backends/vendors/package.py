"""Parts of the ``executorch`` package, by name."""

from __future__ import annotations

import importlib
from typing import Any


def backend_part(name: str) -> Any:  # noqa: ANN401 - a module of any release
    """Return a module of a vendor, by its name below ``executorch.backends``."""
    return importlib.import_module(f"executorch.backends.{name}")


def spec(key: str, value: bytes) -> Any:  # noqa: ANN401 - of the package
    """Return a compile spec of the package."""
    home = importlib.import_module("executorch.exir.backend.compile_spec_schema")
    return home.CompileSpec(key, value)
