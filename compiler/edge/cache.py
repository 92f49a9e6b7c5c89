"""A cache of edge programs, for repeated compiles of one program.

An edge program depends on the exported program, the configuration and passes, and the operators
that are preserved. The decisions of the policy are recorded: a cached program is returned if the
policy
decides everything as before.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch.export import ExportedProgram

from compiler.edge.functional import without_hard_writes
from compiler.edge.tracing import PreservationPolicy


class OpsPolicy(PreservationPolicy, Protocol):
    """Decides which operators are preserved, and lists the candidates."""

    @property
    def ops(self) -> frozenset[Any]:
        """Return all operators that a partitioner requests to preserve."""
        ...


Make = Callable[[PreservationPolicy, Collection[Any]], tuple[ExportedProgram, ExportedProgram]]
_MOST = 6  # edge programs; their weights are shared


@dataclass
class _RecordedPolicy:
    """Forwards queries and records the answers."""

    keeps: PreservationPolicy
    kinds: list[tuple[torch.fx.Node, Any, str]] = field(
        default_factory=list[tuple[torch.fx.Node, Any, str]]
    )
    inside: list[tuple[Any, Any, Any, bool]] = field(
        default_factory=list[tuple[Any, Any, Any, bool]]
    )
    parts: list[tuple[torch.fx.Node, bool]] = field(
        default_factory=list[tuple[torch.fx.Node, bool]]
    )

    def kind(self, node: torch.fx.Node, op: Any) -> str:  # noqa: ANN401
        answer = self.keeps.kind(node, op)
        self.kinds.append((node, op, answer))
        return answer

    def preserves_inside(self, op: Any, args: Any, kwargs: Any) -> bool:  # noqa: ANN401
        answer = self.keeps.preserves_inside(op, args, kwargs)
        self.inside.append((op, args, kwargs, answer))
        return answer

    def as_package(self, node: torch.fx.Node) -> bool:
        answer = self.keeps.as_package(node)
        self.parts.append((node, answer))
        return answer

    def has_same_answers(self, keeps: PreservationPolicy) -> bool:
        """Return whether another decider gives the same answers."""
        return (
            all(keeps.kind(node, op) == known for node, op, known in self.kinds)
            and all(keeps.as_package(node) == known for node, known in self.parts)
            and all(
                keeps.preserves_inside(op, args, kwargs) == known
                for op, args, kwargs, known in self.inside
            )
        )


@dataclass(frozen=True)
class _CachedPrograms:
    source: ExportedProgram
    ops: frozenset[Any]
    recorded: _RecordedPolicy
    built: tuple[ExportedProgram, ExportedProgram]


class EdgeCache:
    """A cache of edge programs by their source, all with the same configuration and passes."""

    def __init__(self) -> None:
        self._kept: list[_CachedPrograms] = []
        self._sources: list[tuple[ExportedProgram, ExportedProgram]] = []

    def source(self, program: ExportedProgram) -> ExportedProgram:
        """Return a program without hard writes, the same one for the same program."""
        for given, built in self._sources:
            if given is program:
                return built
        built = without_hard_writes(program)
        self._sources = [*self._sources[-_MOST:], (program, built)]
        return built

    def lowered(
        self, source: ExportedProgram, policy: OpsPolicy, make: Make
    ) -> tuple[ExportedProgram, ExportedProgram]:
        """Return an edge program before and after passes.

        Args:
            source: as ``source`` returned it
            policy: decides which operators are preserved
            make: lowers it
        """
        for kept in reversed(self._kept):
            if kept.source is not source or kept.ops != policy.ops:
                continue
            if kept.recorded.has_same_answers(policy):
                return kept.built
        recorded = _RecordedPolicy(policy)
        built = make(recorded, policy.ops)
        self._kept = [*self._kept[-_MOST:], _CachedPrograms(source, policy.ops, recorded, built)]
        return built
