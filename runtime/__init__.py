"""Loads and runs programs over torch tensors, and records what happened."""

from __future__ import annotations

from runtime.api import Runtime, Verification
from runtime.delegates import BackendInterface
from runtime.errors import ErrorCode, ExecutionError
from runtime.meta import MethodMeta, TensorInfo
from runtime.method import Method
from runtime.program import Program
from runtime.tracer import (
    DebugFilter,
    DebugLevel,
    EventTracer,
    ProfilingLevel,
)

__all__ = [
    "BackendInterface",
    "DebugFilter",
    "DebugLevel",
    "ErrorCode",
    "EventTracer",
    "ExecutionError",
    "Method",
    "MethodMeta",
    "ProfilingLevel",
    "Program",
    "Runtime",
    "TensorInfo",
    "Verification",
]
