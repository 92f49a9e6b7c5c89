from runtime.api import Runtime, Verification
from runtime.delegates import BackendInterface, BackendRegistry, Measurement
from runtime.errors import ErrorCode, ExecutionError
from runtime.loaders import (
    BufferDataLoader,
    DataLoader,
    FileDataLoader,
    LoadMode,
    MmapDataLoader,
)
from runtime.meta import MethodMeta, TensorInfo
from runtime.method import Method
from runtime.program import Program
from runtime.registry import KernelRegistry as OperatorRegistry
from runtime.stepping import DelegateSteps, InnerNode
from runtime.tracer import (
    DebugFilter,
    DebugLevel,
    EventTracer,
    ProfilingLevel,
)

__all__ = [
    "BackendInterface",
    "BackendRegistry",
    "BufferDataLoader",
    "DataLoader",
    "DebugFilter",
    "DebugLevel",
    "DelegateSteps",
    "ErrorCode",
    "EventTracer",
    "ExecutionError",
    "FileDataLoader",
    "InnerNode",
    "LoadMode",
    "Measurement",
    "Method",
    "MethodMeta",
    "MmapDataLoader",
    "OperatorRegistry",
    "ProfilingLevel",
    "Program",
    "Runtime",
    "TensorInfo",
    "Verification",
]
