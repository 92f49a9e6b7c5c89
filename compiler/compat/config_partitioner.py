"""Declarative partitioners: by configurations of operators, and for entire graphs."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import networkx
import torch
from torch.export import ExportedProgram
from torch.fx.passes.infra.partitioner import Partition

from compiler.interface.backend import CompileSpec
from compiler.interface.partitioner import (
    TAG,
    DelegationSpec,
    NodeFilter,
    Partitioner,
    PartitionResult,
)
from compiler.partition.patterns import generate_grouped_partitions_from_list_of_nodes
from compiler.partition.reasons import note, operator_of
from compiler.partition.tags import PartitionError, data_of
from schema.etrecord.parts.verdicts import NodeOutcome

Node = torch.fx.Node


class PartitionerConfig(ABC):
    """The nodes of one operator that a backend supports.

    Attributes:
        target_name: the operator without its namespace, as in ``linear.default``
    """

    target_name: str

    @abstractmethod
    def check_constraints(self, node: Node, ep: ExportedProgram) -> bool:
        """Return whether a node of the operator can be delegated."""

    @abstractmethod
    def get_original_aten(self) -> Any | None:  # noqa: ANN401
        """Return the operator to preserve, None if it may be decomposed."""

    @abstractmethod
    def get_partition(self, node: Node, ep: ExportedProgram) -> list[Node]:
        """Return the nodes that must be in the partition of a node, itself included."""


class ConfigerationBasedPartitioner(Partitioner):
    """Partitions the nodes that configurations list; overlapping groups are merged."""

    def __init__(
        self, delegation_spec: DelegationSpec, partitioner_configs: Iterable[PartitionerConfig]
    ) -> None:
        """Create the partitioner from configurations.

        Args:
            delegation_spec: backend and settings
            partitioner_configs: one per operator

        Raises: PartitionError if two cover the same operator
        """
        super().__init__()
        self.delegation_spec = delegation_spec
        self.target_partitioner_configs: dict[str, PartitionerConfig] = {}
        for config in partitioner_configs:
            name = config.target_name
            if name in self.target_partitioner_configs:
                other = self.target_partitioner_configs[name]
                raise PartitionError(f"{config} and {other} have the same target_name: {name}")
            self.target_partitioner_configs[name] = config

    def ops_to_not_decompose(self, ep: ExportedProgram) -> tuple[list[Any], NodeFilter | None]:
        """Return the operators that configurations preserve, where their constraints hold."""
        configs = self.target_partitioner_configs.values()
        kept = [op for op in (config.get_original_aten() for config in configs) if op is not None]

        def requested(node: Node) -> bool:
            config = self._config_of(node)
            if config is None or config.get_original_aten() is None:
                return False
            return config.check_constraints(node, ep)

        return kept, requested

    def _config_of(self, node: Node) -> PartitionerConfig | None:
        if node.op != "call_function":
            return None
        name = operator_of(node).partition(".")[2]
        return self.target_partitioner_configs.get(name)

    def get_matched_nodes_from_configs(self, ep: ExportedProgram) -> list[list[Node]]:
        """Return the groups of nodes."""
        graphs: Any = networkx
        together = graphs.Graph()
        data = data_of(ep).specs
        for node in ep.graph.nodes:
            config = self._config_of(node)
            rule = type(config).__name__
            if node.op != "call_function":
                continue
            if config is None:
                text = f"no configuration covers {operator_of(node)}"
                note(node, type(self).__name__, NodeOutcome.NO_RULE, text)
            elif not config.check_constraints(node, ep):
                note(node, rule, NodeOutcome.REJECTED, f"{rule}.check_constraints refuses it")
            else:
                requested = config.get_partition(node, ep)
                nodes = [n for n in requested if not (n.name in data and n in together)]
                together.add_nodes_from(nodes)
                together.add_edges_from(itertools.pairwise(nodes))
        groups: Any = graphs.connected_components(together)
        return [list(group) for group in groups]

    def generate_partitions(self, ep: ExportedProgram) -> list[Partition]:
        """Return the partitions."""
        matched = self.get_matched_nodes_from_configs(ep)
        return generate_grouped_partitions_from_list_of_nodes(ep.graph_module, matched)

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        """Tag the nodes of each partition."""
        tags: dict[str, DelegationSpec] = {}
        for partition in self.generate_partitions(exported_program):
            tag = f"tag{partition.id}"
            tags[tag] = self.delegation_spec
            for node in partition.nodes:
                node.meta[TAG] = tag
        return PartitionResult(exported_program, tags)


class AllNodePartitioner(Partitioner):
    """Delegates every call and all weights as one partition."""

    def __init__(self, backend_id: str, compile_specs: list[CompileSpec]) -> None:
        """Create the partitioner of a backend.

        Args:
            backend_id: of the backend
            compile_specs: its settings
        """
        super().__init__()
        self.delegation_spec = DelegationSpec(backend_id, compile_specs)

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        """Tag all calls and weights."""
        data = data_of(exported_program).specs
        for node in exported_program.graph.nodes:
            if node.op == "call_function" or node.name in data:
                node.meta[TAG] = "tag0"
        return PartitionResult(exported_program, {"tag0": self.delegation_spec})
