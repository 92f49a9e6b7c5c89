"""Compiles modules to a program in one call, stage by stage: ``export(model, inputs, recipe)``."""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "AOQuantizationConfig": "recipe",
    "BackendRecipeProvider": "provider",
    "ExportRecipe": "recipe",
    "ExportSession": "session",
    "LoweringRecipe": "recipe",
    "Mode": "recipe",
    "PipelineArtifact": "stage",
    "QuantizationRecipe": "recipe",
    "RecipeType": "recipe",
    "Stage": "stage",
    "StageType": "recipe",
    "export": "session",
    "recipe_registry": "registry",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any of the names above
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"compiler.compat.session.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
