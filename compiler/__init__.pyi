"""The documented names for type checkers; at run time each is imported when it is first used."""

from compiler.compat.config_partitioner import AllNodePartitioner as AllNodePartitioner
from compiler.compat.config_partitioner import (
    ConfigerationBasedPartitioner as ConfigerationBasedPartitioner,
)
from compiler.compat.config_partitioner import PartitionerConfig as PartitionerConfig
from compiler.compat.delegate_mapping import DelegateMappingBuilder as DelegateMappingBuilder
from compiler.compat.delegated_graphs import format_delegated_graph as format_delegated_graph
from compiler.compat.delegated_graphs import (
    get_control_flow_submodules as get_control_flow_submodules,
)
from compiler.compat.delegated_graphs import get_delegated_payload as get_delegated_payload
from compiler.compat.delegated_graphs import get_delegates as get_delegates
from compiler.compat.delegated_graphs import (
    get_lowered_backend_modules as get_lowered_backend_modules,
)
from compiler.compat.delegated_graphs import get_non_lowered_nodes as get_non_lowered_nodes
from compiler.compat.delegated_graphs import print_delegated_graph as print_delegated_graph
from compiler.compat.graph_printing import add_cursor_to_graph as add_cursor_to_graph
from compiler.compat.graph_printing import inspect_node as inspect_node
from compiler.compat.passes.composite import bind_pattern_to_op as bind_pattern_to_op
from compiler.compat.passes.export_pass import ExportPass as ExportPass
from compiler.compat.passes.rewriting import replace_pattern as replace_pattern
from compiler.compat.passes.values import ExportPassBaseError as ExportPassBaseError
from compiler.compat.passes.values import NodeMetadata as NodeMetadata
from compiler.compat.passes.values import ProxyValue as ProxyValue
from compiler.delegate.lowered_module import LoweredBackendModule as LoweredBackendModule
from compiler.delegate.preprocess import BackendError as BackendError
from compiler.delegate.to_backend import (
    MethodProgramsPartitionerSpec as MethodProgramsPartitionerSpec,
)
from compiler.delegate.to_backend import to_backend as to_backend
from compiler.dialect.delegate_call import executorch_call_delegate as executorch_call_delegate
from compiler.dialect.ops import ops as ops
from compiler.edge.config import EdgeCompileConfig as EdgeCompileConfig
from compiler.edge.verifier import SpecViolationError as SpecViolationError
from compiler.emit.backend_options import DynamicMemoryPlanningMode as DynamicMemoryPlanningMode
from compiler.emit.backend_options import PropagateDeviceConfig as PropagateDeviceConfig
from compiler.emit.config import ExecutorchBackendConfig as ExecutorchBackendConfig
from compiler.errors import CancelledError as CancelledError
from compiler.errors import CompileError as CompileError
from compiler.errors import MissingOutVariantsError as MissingOutVariantsError
from compiler.errors import UnboundedShapeError as UnboundedShapeError
from compiler.errors import UnsupportedError as UnsupportedError
from compiler.frontend import ExportError as ExportError
from compiler.frontend import TrainingModeWarning as TrainingModeWarning
from compiler.frontend import export as export
from compiler.interface.backend import BackendDetails as BackendDetails
from compiler.interface.backend import CompileSpec as CompileSpec
from compiler.interface.backend import PreprocessResult as PreprocessResult
from compiler.interface.external_weights import (
    delegate_external_constants_pass_unlifted as delegate_external_constants_pass_unlifted,
)
from compiler.interface.named_data import NamedDataStore as NamedDataStore
from compiler.interface.named_data import NamedDataStoreOutput as NamedDataStoreOutput
from compiler.interface.partitioner import DelegationSpec as DelegationSpec
from compiler.interface.partitioner import Partitioner as Partitioner
from compiler.interface.partitioner import PartitionResult as PartitionResult
from compiler.memory.algorithms import MemoryAlgoResult as MemoryAlgoResult
from compiler.memory.algorithms import MemoryPlanningAlgorithmSuite as MemoryPlanningAlgorithmSuite
from compiler.memory.algorithms import SpecAllocResult as SpecAllocResult
from compiler.memory.algorithms import greedy as greedy
from compiler.memory.algorithms import interval as interval
from compiler.memory.algorithms import naive as naive
from compiler.memory.options import MemoryPlanningPass as MemoryPlanningPass
from compiler.memory.tensor_spec import TensorSpec as TensorSpec
from compiler.partition.capability import CapabilityBasedPartitioner as CapabilityBasedPartitioner
from compiler.partition.patterns import GroupBasedPartitioner as GroupBasedPartitioner
from compiler.partition.patterns import (
    generate_grouped_partitions_from_list_of_nodes as generate_grouped_partitions_from_list_of_nodes,  # noqa: E501 - a documented name
)
from compiler.partition.patterns import (
    generate_partitions_from_list_of_nodes as generate_partitions_from_list_of_nodes,
)
from compiler.partition.patterns import (
    generate_pattern_op_partitions as generate_pattern_op_partitions,
)
from compiler.partition.reasons import WhyNoPartition as WhyNoPartition
from compiler.partition.reasons import WhyNoPartitionReporter as WhyNoPartitionReporter
from compiler.partition.rules import Granularity as Granularity
from compiler.partition.rules import PartitionRules as PartitionRules
from compiler.partition.rules import TensorRule as TensorRule
from compiler.partition.steered import SteeredPartitioner as SteeredPartitioner
from compiler.partition.support import OperatorSupport as OperatorSupport
from compiler.partition.support import any_chain as any_chain
from compiler.partition.support import chain as chain
from compiler.partition.support import create_op_support as create_op_support
from compiler.partition.support import create_pattern_support as create_pattern_support
from compiler.partition.tags import PartitionCycleError as PartitionCycleError
from compiler.partition.tags import PartitionError as PartitionError
from compiler.partition.tags import tag_constant_data as tag_constant_data
from compiler.partition.tags import tag_mutated_buffer as tag_mutated_buffer
from compiler.passes.base import ExportedProgramPassBase as ExportedProgramPassBase
from compiler.passes.base import ExportedProgramPassResult as ExportedProgramPassResult
from compiler.passes.base import PassBase as PassBase
from compiler.passes.base import PassError as PassError
from compiler.passes.base import PassResult as PassResult
from compiler.passes.manager import PassManager as PassManager
from compiler.passes.pipeline import ExportedProgramPassManager as ExportedProgramPassManager
from compiler.passes.standard.common_subexpressions import CSEPass as CSEPass
from compiler.passes.standard.constant_prop import ConstantPropPass as ConstantPropPass
from compiler.passes.standard.constant_prop import constant_prop_pass as constant_prop_pass
from compiler.passes.standard.dead_code import DeadCodePass as DeadCodePass
from compiler.passes.standard.dead_code import (
    RemoveUnusedParametersPass as RemoveUnusedParametersPass,
)
from compiler.passes.standard.dead_code import (
    remove_unused_parameters_pass as remove_unused_parameters_pass,
)
from compiler.passes.standard.out_variants import ToOutVarPass as ToOutVarPass
from compiler.passes.standard.quant_chains import (
    DuplicateDynamicQuantChainPass as DuplicateDynamicQuantChainPass,
)
from compiler.passes.standard.quant_fusion import QuantFusionPass as QuantFusionPass
from compiler.passes.standard.reinplace import ReinplacePass as ReinplacePass
from compiler.passes.standard.reinplace import reinplace_pass as reinplace_pass
from compiler.passes.standard.spec_prop import SpecPropPass as SpecPropPass
from compiler.passes.standard.sym_shapes import (
    ConstraintBasedSymShapeEvalPass as ConstraintBasedSymShapeEvalPass,
)
from compiler.passes.standard.sym_shapes import (
    HintBasedSymShapeEvalPass as HintBasedSymShapeEvalPass,
)
from compiler.passes.standard.views import RemoveViewsPass as RemoveViewsPass
from compiler.passes.table import STANDARD_PASSES as STANDARD_PASSES
from compiler.passes.table import standard_pass as standard_pass
from compiler.pipeline.edge_manager import EdgeProgramManager as EdgeProgramManager
from compiler.pipeline.edge_manager import to_edge as to_edge
from compiler.pipeline.edge_manager import (
    to_edge_transform_and_lower as to_edge_transform_and_lower,
)
from compiler.pipeline.program_manager import ExecutorchProgramManager as ExecutorchProgramManager
from compiler.record.record import ETRecord as ETRecord
from compiler.record.record import generate_etrecord as generate_etrecord
from compiler.stages import StageEvent as StageEvent
