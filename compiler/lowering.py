"""Lowering and delegation in one go, method by method."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch.export import ExportedProgram

from compiler.config import EdgeCompileConfig
from compiler.delegate.api import lower_methods
from compiler.edge.functional import without_hard_writes
from compiler.edge.program import edge_program
from compiler.partition.flows import (
    Partitioners,
    before_decomposition,
    in_rounds,
    lowered_with_wishes,
)
from compiler.partition.verdicts import give_verdicts
from compiler.partition.wishes import Wishes
from compiler.stages import Stages

Programs = Mapping[str, ExportedProgram]
Transform = Callable[[dict[str, ExportedProgram], EdgeCompileConfig], Programs]


@dataclass(frozen=True)
class Lowered:
    """Edge programs by method, before delegation.

    Attributes:
        recorded: as they were lowered
        programs: as passes left them
        config: with the operators that partitioners wanted whole let through
    """

    recorded: dict[str, ExportedProgram]
    programs: dict[str, ExportedProgram]
    config: EdgeCompileConfig


def lower_for(
    programs: Programs,
    partitioners: Partitioners,
    config: EdgeCompileConfig,
    transform: Transform,
    stages: Stages,
) -> Lowered:
    """Lower exported programs, with what their partitioners want whole.

    Args:
        programs: as exported
        partitioners: of each method
        config: dim order, verifier, operators to keep
        transform: runs passes over edge programs by method, verified by a configuration
        stages: told of the work

    Raises: CompileError if something cannot be lowered or a partitioner breaks a rule
    """
    recorded: dict[str, ExportedProgram] = {}
    found: dict[str, ExportedProgram] = {}
    wanted: set[Any] = set()
    for name, program in programs.items():
        mine = partitioners.get(name, ())
        source = without_hard_writes(before_decomposition(program, mine))

        def lower(
            wishes: Wishes, name: str = name, source: ExportedProgram = source
        ) -> ExportedProgram:
            wanted.update(wishes.ops)
            with stages.stage("edge", name) as result:
                allowing = config.letting_through(wishes.ops)
                edge = edge_program(source, allowing, wishes)
                result.nodes = calls_of(edge)
            recorded[name] = edge
            return transform({name: edge}, allowing)[name]

        edge, wishes = lowered_with_wishes(source, mine, lower)
        verdicts = wishes.verdicts(recorded[name])
        if verdicts:
            give_verdicts(edge, verdicts)
        found[name] = edge
    return Lowered(recorded, found, config.letting_through(wanted))


def delegate(
    programs: Programs, partitioners: Mapping[str, Sequence[Any]], stages: Stages
) -> dict[str, ExportedProgram]:
    """Return programs with the parts that their partitioners take, in order, lowered to backends.

    Raises: CompileError if a partitioner breaks a rule or a backend fails
    """
    made = dict(programs)
    for turn in in_rounds(partitioners):
        with stages.stage("delegate", ", ".join(sorted(turn))) as result:
            made = lower_methods(made, turn)
            result.nodes = sum(calls_of(program) for program in made.values())
    return made


def calls_of(program: ExportedProgram) -> int:
    """Return how many calls the graph of a program has."""
    return sum(node.op == "call_function" for node in program.graph.nodes)
