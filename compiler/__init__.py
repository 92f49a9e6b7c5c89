"""From torch.export to program bytes: edge dialect, memory planning, emission, records.

The documented names are imported when they are first used.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "AllNodePartitioner": "partition.ready",
    "BackendDetails": "delegate.interface",
    "BackendError": "delegate.preprocess",
    "CancelledError": "errors",
    "CapabilityBasedPartitioner": "partition.capability",
    "CompileError": "errors",
    "CompileSpec": "delegate.interface",
    "ConfigerationBasedPartitioner": "partition.ready",
    "DelegateMappingBuilder": "delegate.mapping",
    "DelegationSpec": "partition.interface",
    "ETRecord": "record.record",
    "EdgeCompileConfig": "config",
    "EdgeProgramManager": "managers",
    "ExecutorchBackendConfig": "config",
    "ExecutorchProgramManager": "managers",
    "Granularity": "partition.rules",
    "GroupBasedPartitioner": "partition.patterns",
    "LoweredBackendModule": "delegate.module",
    "MemoryPlanningPass": "memory.options",
    "MethodProgramsPartitionerSpec": "delegate.api",
    "MissingOutVariantsError": "errors",
    "NamedDataStore": "delegate.named_data",
    "NamedDataStoreOutput": "delegate.named_data",
    "OperatorSupport": "partition.support",
    "PartitionCycleError": "partition.tags",
    "PartitionError": "partition.tags",
    "PartitionResult": "partition.interface",
    "PartitionRules": "partition.rules",
    "Partitioner": "partition.interface",
    "PartitionerConfig": "partition.ready",
    "PreprocessResult": "delegate.interface",
    "StageEvent": "stages",
    "SteeredPartitioner": "partition.steered",
    "TensorRule": "partition.rules",
    "UnboundedShapeError": "errors",
    "UnsupportedError": "errors",
    "WhyNoPartition": "partition.reasons",
    "WhyNoPartitionReporter": "partition.reasons",
    "any_chain": "partition.support",
    "chain": "partition.support",
    "create_op_support": "partition.support",
    "create_pattern_support": "partition.support",
    "executorch_call_delegate": "delegate.call",
    "format_delegated_graph": "delegate.show",
    "generate_grouped_partitions_from_list_of_nodes": "partition.patterns",
    "generate_partitions_from_list_of_nodes": "partition.patterns",
    "generate_pattern_op_partitions": "partition.patterns",
    "get_control_flow_submodules": "delegate.show",
    "get_delegated_payload": "delegate.show",
    "get_delegates": "delegate.show",
    "get_lowered_backend_modules": "delegate.show",
    "get_non_lowered_nodes": "delegate.show",
    "ops": "edge.ops",
    "print_delegated_graph": "delegate.show",
    "tag_constant_data": "partition.tags",
    "tag_mutated_buffer": "partition.tags",
    "to_backend": "delegate.api",
    "to_edge": "managers",
    "to_edge_transform_and_lower": "managers",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any of the names above
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"compiler.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
