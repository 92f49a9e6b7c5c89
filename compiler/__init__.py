"""From torch.export to program bytes: edge dialect, memory planning, emission, records.

The documented names are imported when they are first used.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "CancelledError": "errors",
    "CompileError": "errors",
    "ETRecord": "record.record",
    "EdgeCompileConfig": "config",
    "EdgeProgramManager": "managers",
    "ExecutorchBackendConfig": "config",
    "ExecutorchProgramManager": "managers",
    "MemoryPlanningPass": "memory.options",
    "MissingOutVariantsError": "errors",
    "StageEvent": "stages",
    "UnboundedShapeError": "errors",
    "UnsupportedError": "errors",
    "ops": "edge.ops",
    "to_edge": "managers",
    "to_edge_transform_and_lower": "managers",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any of the names above
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"compiler.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
