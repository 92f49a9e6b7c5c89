"""Loads and runs programs over torch tensors, and records events and values.

The names of the API are imported when they are first used: importing one module of this package
takes 10 ms besides torch, importing all of it 190 ms.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "BackendInterface": "delegates.interface.BackendInterface",
    "BackendRegistry": "delegates.interface.BackendRegistry",
    "BufferDataLoader": "program.loaders.BufferDataLoader",
    "DataLoader": "program.loaders.DataLoader",
    "DebugFilter": "tracing.tracer.DebugFilter",
    "DebugLevel": "tracing.tracer.DebugLevel",
    "DelegateSteps": "delegates.stepping.DelegateSteps",
    "ErrorCode": "errors.ErrorCode",
    "EventTracer": "tracing.tracer.EventTracer",
    "ExecutionError": "errors.ExecutionError",
    "FileDataLoader": "program.loaders.FileDataLoader",
    "InnerNode": "delegates.stepping.InnerNode",
    "LoadMode": "program.loaders.LoadMode",
    "PartitionEngine": "delegates.interface.PartitionEngine",
    "Method": "execution.method.Method",
    "MethodMeta": "program.meta.MethodMeta",
    "MmapDataLoader": "program.loaders.MmapDataLoader",
    "OperatorRegistry": "kernels.registry.KernelRegistry",
    "ProfilingLevel": "tracing.tracer.ProfilingLevel",
    "Program": "execution.program.Program",
    "Runtime": "api.Runtime",
    "TensorInfo": "program.meta.TensorInfo",
    "Verification": "api.Verification",
}

__all__ = [*_HOME]  # pyright: ignore[reportUnsupportedDunderAll] - for scripts that import *


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any of the names above
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, own = _HOME[name].rpartition(".")
    return getattr(importlib.import_module(f"runtime.{module}"), own)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
