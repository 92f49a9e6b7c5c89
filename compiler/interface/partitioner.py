"""The partitioner interface: it tags nodes and returns a delegation spec for each tag."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import torch
from torch.export import ExportedProgram

from compiler.interface.backend import CompileSpec

TAG = "delegation_tag"  # where a node's metadata holds its tag
NodeFilter = Callable[[torch.fx.Node], bool]


class DelegationSpec(NamedTuple):
    """Backend and settings for the nodes of a tag."""

    backend_id: str
    compile_specs: list[CompileSpec]


@dataclass
class PartitionResult:
    """The result of a partitioner.

    Attributes:
        tagged_exported_program: the given program, with tags on nodes
        partition_tags: delegation spec of each tag
    """

    tagged_exported_program: ExportedProgram
    partition_tags: dict[str, DelegationSpec]


class Partitioner(ABC):
    """Base of every partitioner: it may set tags in node metadata and change nothing else."""

    def __init__(self, spec: Mapping[Any, object] = MappingProxyType({})) -> None:
        self._spec = spec

    def __call__(self, exported_program: ExportedProgram) -> PartitionResult:
        """Return the result of ``partition``."""
        return self.partition(exported_program)

    @property
    def spec(self) -> Mapping[Any, object]:
        """Return the options it was created with."""
        return self._spec

    @abstractmethod
    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        """Tag the nodes to delegate.

        Args:
            exported_program: an edge program, a private copy

        Returns: the same program, and the delegation spec of each tag
        """

    def ops_to_not_decompose(self, ep: ExportedProgram) -> tuple[list[Any], NodeFilter | None]:
        """Return operators to preserve, and a filter of their nodes; None for all of them."""
        del ep
        return [], None

    def transform_for_pre_decomposition(self, exported_program: ExportedProgram) -> ExportedProgram:
        """Return the program to lower instead of the exported one."""
        return exported_program


def name_of(partitioner: object) -> str:
    """Return the name of a partitioner in verdicts."""
    given = getattr(partitioner, "verdict_name", None)
    return given if isinstance(given, str) else type(partitioner).__name__
