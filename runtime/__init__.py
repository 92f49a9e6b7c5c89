"""Loads and runs programs over torch tensors, and records what happened.

The names of the API are imported when they are first used: a module of this package alone is there
in 10 ms beside torch, all of it takes 190 ms.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "BackendInterface": "delegates.BackendInterface",
    "BackendRegistry": "delegates.BackendRegistry",
    "BufferDataLoader": "loaders.BufferDataLoader",
    "DataLoader": "loaders.DataLoader",
    "DebugFilter": "tracer.DebugFilter",
    "DebugLevel": "tracer.DebugLevel",
    "DelegateSteps": "stepping.DelegateSteps",
    "ErrorCode": "errors.ErrorCode",
    "EventTracer": "tracer.EventTracer",
    "ExecutionError": "errors.ExecutionError",
    "FileDataLoader": "loaders.FileDataLoader",
    "InnerNode": "stepping.InnerNode",
    "LoadMode": "loaders.LoadMode",
    "Measurement": "delegates.Measurement",
    "Method": "method.Method",
    "MethodMeta": "meta.MethodMeta",
    "MmapDataLoader": "loaders.MmapDataLoader",
    "OperatorRegistry": "registry.KernelRegistry",
    "ProfilingLevel": "tracer.ProfilingLevel",
    "Program": "program.Program",
    "Runtime": "api.Runtime",
    "TensorInfo": "meta.TensorInfo",
    "Verification": "api.Verification",
}

__all__ = [*_HOME]  # pyright: ignore[reportUnsupportedDunderAll] - for scripts that import *


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any of the names above
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, own = _HOME[name].partition(".")
    return getattr(importlib.import_module(f"runtime.{module}"), own)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
