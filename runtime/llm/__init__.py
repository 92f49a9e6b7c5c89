"""Generates text with programs of language models: tokenizers, sampling, the loop over tokens."""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "Audio": "multimodal",
    "GenerationConfig": "generation",
    "GenerationStats": "generation",
    "Image": "multimodal",
    "MultimodalRunner": "multimodal",
    "TextRunner": "text_runner",
    "load_tokenizer": "tokenizers",
}

__all__ = [*_HOME]  # pyright: ignore[reportUnsupportedDunderAll] - for scripts that import *


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any of the names above
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"runtime.llm.{_HOME[name]}"), name)
