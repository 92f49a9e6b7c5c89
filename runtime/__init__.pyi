from runtime.api import Runtime, Verification
from runtime.delegates.interface import BackendInterface, BackendRegistry, PartitionEngine
from runtime.delegates.stepping import DelegateSteps, InnerNode
from runtime.errors import ErrorCode, ExecutionError
from runtime.execution.method import Method
from runtime.execution.program import Program
from runtime.kernels.registry import KernelRegistry as OperatorRegistry
from runtime.program.loaders import (
    BufferDataLoader,
    DataLoader,
    FileDataLoader,
    LoadMode,
    MmapDataLoader,
)
from runtime.program.meta import MethodMeta, TensorInfo
from runtime.tracing.tracer import (
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
    "Method",
    "MethodMeta",
    "MmapDataLoader",
    "OperatorRegistry",
    "PartitionEngine",
    "ProfilingLevel",
    "Program",
    "Runtime",
    "TensorInfo",
    "Verification",
]
