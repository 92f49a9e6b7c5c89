"""Edge programs that are kept, for compiles of one program again and again.

What an edge program is depends on the exported program, on how it is checked and changed, and on
which operators stay whole. Who decides the last is asked anew: only when all answers are the same
as before, the program is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch.export import ExportedProgram

from compiler.edge.functional import without_hard_writes
from compiler.edge.tracing import KeepsWhole


class Wanting(KeepsWhole, Protocol):
    """Decides which operators are preserved, and lists the candidates."""

    @property
    def ops(self) -> frozenset[Any]:
        """Return all operators that a partitioner wants preserved."""
        ...


Make = Callable[[KeepsWhole, Collection[Any]], tuple[ExportedProgram, ExportedProgram]]
_MOST = 6  # edge programs; their weights are shared


@dataclass
class _Asked:
    """Passes questions on and keeps the answers."""

    keeps: KeepsWhole
    kinds: list[tuple[torch.fx.Node, Any, str]] = field(
        default_factory=list[tuple[torch.fx.Node, Any, str]]
    )
    inside: list[tuple[Any, Any, Any, bool]] = field(
        default_factory=list[tuple[Any, Any, Any, bool]]
    )

    def kind(self, node: torch.fx.Node, op: Any) -> str:  # noqa: ANN401
        answer = self.keeps.kind(node, op)
        self.kinds.append((node, op, answer))
        return answer

    def keeps_inside(self, op: Any, args: Any, kwargs: Any) -> bool:  # noqa: ANN401
        answer = self.keeps.keeps_inside(op, args, kwargs)
        self.inside.append((op, args, kwargs, answer))
        return answer

    def is_answered_alike(self, keeps: KeepsWhole) -> bool:
        """Return whether another decider gives the same answers."""
        return all(keeps.kind(node, op) == known for node, op, known in self.kinds) and all(
            keeps.keeps_inside(op, args, kwargs) == known for op, args, kwargs, known in self.inside
        )


@dataclass(frozen=True)
class _Kept:
    source: ExportedProgram
    ops: frozenset[Any]
    asked: _Asked
    made: tuple[ExportedProgram, ExportedProgram]


class EdgeStore:
    """A cache of edge programs by their source, all with the same configuration and passes."""

    def __init__(self) -> None:
        self._kept: list[_Kept] = []
        self._sources: list[tuple[ExportedProgram, ExportedProgram]] = []

    def source(self, program: ExportedProgram) -> ExportedProgram:
        """Return a program without hard writes, the same one for the same program."""
        for given, made in self._sources:
            if given is program:
                return made
        made = without_hard_writes(program)
        self._sources = [*self._sources[-_MOST:], (program, made)]
        return made

    def lowered(
        self, source: ExportedProgram, wishes: Wanting, make: Make
    ) -> tuple[ExportedProgram, ExportedProgram]:
        """Return an edge program before and after passes.

        Args:
            source: as ``source`` returned it
            wishes: decides what is preserved
            make: lowers it
        """
        for kept in reversed(self._kept):
            if kept.source is not source or kept.ops != wishes.ops:
                continue
            if kept.asked.is_answered_alike(wishes):
                return kept.made
        asked = _Asked(wishes)
        made = make(asked, wishes.ops)
        self._kept = [*self._kept[-_MOST:], _Kept(source, wishes.ops, asked, made)]
        return made
