"""Options of the two halves of a compile, under their documented names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from compiler.memory.options import MemoryPlanningPass


def _no_operators() -> list[Any]:
    return []


@dataclass(frozen=True)
class EdgeCompileConfig:
    """How a program becomes an edge program.

    Attributes:
        _check_ir_validity: run the verifier on the result
        _skip_dim_order: keep ``aten`` copies instead of the operators that carry a dim order
        _core_aten_ops_exception_list: operators outside the core set that are let through
        preserve_ops: operators that are not decomposed, even if there is a decomposition
    """

    _check_ir_validity: bool = True
    _skip_dim_order: bool = False
    _core_aten_ops_exception_list: Sequence[Any] = field(default_factory=_no_operators)
    preserve_ops: Sequence[Any] = field(default_factory=_no_operators)

    @property
    def check_ir_validity(self) -> bool:
        """Return whether the verifier runs."""
        return self._check_ir_validity

    @property
    def skip_dim_order(self) -> bool:
        """Return whether copies keep a memory format."""
        return self._skip_dim_order

    @property
    def exceptions(self) -> frozenset[Any]:
        """Return the operators that are let through the verifier."""
        return frozenset((*self._core_aten_ops_exception_list, *self.preserve_ops))

    def letting_through(self, ops: Iterable[Any]) -> EdgeCompileConfig:
        """Return a configuration whose verifier lets further operators through."""
        more = sorted(ops, key=str)
        if not more:
            return self
        listed = [*self._core_aten_ops_exception_list, *more]
        return replace(self, _core_aten_ops_exception_list=listed)


@dataclass(frozen=True)
class ExecutorchBackendConfig:
    """How an edge program becomes a file.

    Attributes:
        memory_planning_pass: the planner, or one a method
        emit_stacktrace: write the source lines of each instruction into the program
        segment_alignment: bytes; where a segment may start in the file
        constant_tensor_alignment: bytes; where a constant may start in its segment
        extract_delegate_segments: store payloads in segments, which can be mapped, instead of in
            the tables
        delegate_alignment: bytes; where a payload may start, None for as segments
    """

    memory_planning_pass: MemoryPlanningPass | Mapping[str, MemoryPlanningPass] = field(
        default_factory=MemoryPlanningPass
    )
    emit_stacktrace: bool = False
    segment_alignment: int = 128
    constant_tensor_alignment: int = 16
    extract_delegate_segments: bool = True
    delegate_alignment: int | None = None

    def planning_of(self, method: str) -> MemoryPlanningPass:
        """Return the memory options of a method."""
        planning = self.memory_planning_pass
        if isinstance(planning, MemoryPlanningPass):
            return planning
        return planning.get(method) or planning.get("default") or MemoryPlanningPass()
