"""The documented names for type checkers; at run time each is imported when it is first used."""

from compiler.config import EdgeCompileConfig as EdgeCompileConfig
from compiler.config import ExecutorchBackendConfig as ExecutorchBackendConfig
from compiler.edge.ops import ops as ops
from compiler.errors import CancelledError as CancelledError
from compiler.errors import CompileError as CompileError
from compiler.errors import MissingOutVariantsError as MissingOutVariantsError
from compiler.errors import UnboundedShapeError as UnboundedShapeError
from compiler.errors import UnsupportedError as UnsupportedError
from compiler.managers import EdgeProgramManager as EdgeProgramManager
from compiler.managers import to_edge as to_edge
from compiler.managers import to_edge_transform_and_lower as to_edge_transform_and_lower
from compiler.memory.algorithms import MemoryAlgoResult as MemoryAlgoResult
from compiler.memory.algorithms import (
    MemoryPlanningAlgorithmSuite as MemoryPlanningAlgorithmSuite,
)
from compiler.memory.algorithms import SpecAllocResult as SpecAllocResult
from compiler.memory.algorithms import greedy as greedy
from compiler.memory.algorithms import interval as interval
from compiler.memory.algorithms import naive as naive
from compiler.memory.options import MemoryPlanningPass as MemoryPlanningPass
from compiler.memory.tensor_spec import TensorSpec as TensorSpec
from compiler.program_manager import ExecutorchProgramManager as ExecutorchProgramManager
from compiler.record.record import ETRecord as ETRecord
from compiler.stages import StageEvent as StageEvent
