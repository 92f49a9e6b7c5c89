"""Language models: configuration, decoders, checkpoints, export with a KV cache."""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "LlmConfig": "config",
    "LlmConfigError": "config",
    "config_of": "config",
    "export_llm": "export",
    "exported_llm": "export",
    "read_config": "config",
}

__all__ = [*_HOME]  # pyright: ignore[reportUnsupportedDunderAll] - for scripts that import *


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any of the names above
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"compiler.llm.{_HOME[name]}"), name)
