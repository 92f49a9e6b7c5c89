"""Lowering and delegation of all methods."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch.export import ExportedProgram

from compiler.delegate.rounds import (
    Partitioners,
    before_decomposition,
    in_rounds,
    lowered_with_preserved_ops,
)
from compiler.delegate.to_backend import Tagged, lower_methods
from compiler.edge.cache import EdgeCache, Make
from compiler.edge.config import EdgeCompileConfig
from compiler.edge.program import edge_program
from compiler.edge.tracing import PreservationPolicy
from compiler.edge.written_buffers import mark_written_elsewhere, written_by_others
from compiler.emit.config import ExecutorchBackendConfig
from compiler.partition.preserved_ops import PreservedOps
from compiler.partition.verdicts import attach_verdicts
from compiler.passes.pipeline import passes_by_method, transform_methods
from compiler.passes.standard.constant_prop import with_quantized_constants
from compiler.passes.table import standard_pass
from compiler.stages import Stages

Programs = Mapping[str, ExportedProgram]
Transform = Callable[[dict[str, ExportedProgram], EdgeCompileConfig], Programs]


@dataclass(frozen=True)
class Lowered:
    """Edge programs by method, before delegation.

    Attributes:
        recorded: as lowered
        programs: after passes
        config: with the preserved operators as exceptions of the verifier
        rounds: by method, the results of each partitioner, if requested
    """

    recorded: dict[str, ExportedProgram]
    programs: dict[str, ExportedProgram]
    config: EdgeCompileConfig
    rounds: dict[str, list[Tagged]]


def transforming(passes: Any, programs: Programs, stages: Stages) -> Transform:  # noqa: ANN401
    """Return a function that runs passes over edge programs.

    Args:
        passes: one pass, a list or a manager, for all methods, or a dictionary by method; or None
        programs: by method
        stages: times and reports the work

    Raises: KeyError if passes are given for an unknown method
    """
    by_method = passes_by_method(passes, programs)

    def transform(edge: dict[str, ExportedProgram], allowing: EdgeCompileConfig) -> Programs:
        mine = {name: found for name, found in by_method.items() if name in edge}
        return transform_methods(edge, mine, allowing, stages)

    return transform


def edge_of(
    program: ExportedProgram,
    config: EdgeCompileConfig,
    keeps: PreservationPolicy | None = None,
    *,
    expressions: bool = False,
    state: frozenset[str] = frozenset(),
) -> ExportedProgram:
    """Return the edge program of an exported one, with quantized weights folded to integers.

    Args:
        program: as exported; it is not changed
        config: dim order, verifier, operators to preserve
        keeps: decides for each node whether it is decomposed
        expressions: fold expressions of weights alone too
        state: buffers that other methods write, which are not constants here

    Raises: CompileError if a node cannot be lowered
    """
    edge = edge_program(program, config, keeps)
    mark_written_elsewhere(edge, state)
    return with_quantized_constants(edge, expressions=expressions)


def lower_for(
    programs: Programs,
    partitioners: Partitioners,
    config: EdgeCompileConfig,
    transform: Transform,
    stages: Stages,
    kept: EdgeCache | None = None,
) -> Lowered:
    """Lower exported programs, preserving the operators that their partitioners request.

    Args:
        programs: as exported
        partitioners: of each method
        config: dim order, verifier, operators to keep
        transform: runs passes over edge programs by method, verified by a configuration
        stages: times and reports the work
        kept: edge programs of earlier lowerings, which are reused if nothing differs

    Raises: CompileError if a node cannot be lowered or a partitioner breaks a rule
    """
    store = EdgeCache() if kept is None else kept
    recorded: dict[str, ExportedProgram] = {}
    found: dict[str, ExportedProgram] = {}
    rounds: dict[str, list[Tagged]] = {}
    requested: set[Any] = set()
    state, fold = written_by_others(programs), config.folds_constants
    for name, program in programs.items():
        mine = partitioners.get(name, ())
        source = store.source(before_decomposition(program, mine))

        def make(
            keeps: PreservationPolicy,
            ops: Collection[Any],
            name: str = name,
            source: ExportedProgram = source,
        ) -> tuple[ExportedProgram, ExportedProgram]:
            with stages.stage("edge", name) as result:
                allowing = config.with_exceptions(ops)
                edge = edge_of(source, allowing, keeps, expressions=fold, state=state[name])
                result.nodes = calls_of(edge)
                result.modules = {name: edge.graph_module}
            return edge, transform({name: edge}, allowing)[name]

        def lower(
            preserved: PreservedOps,
            name: str = name,
            source: ExportedProgram = source,
            make: Make = make,
        ) -> ExportedProgram:
            requested.update(preserved.ops)
            recorded[name], changed = store.lowered(source, preserved, make)
            return changed

        lowered = lowered_with_preserved_ops(source, mine, lower)
        attach_verdicts(lowered.program, lowered.preserved.verdicts(recorded[name]))
        found[name] = lowered.program
        if lowered.rounds is not None:
            rounds[name] = lowered.rounds
    return Lowered(recorded, found, config.with_exceptions(requested), rounds)


def delegate(
    programs: Programs,
    partitioners: Mapping[str, Sequence[Any]],
    stages: Stages,
    rounds: Mapping[str, Sequence[Tagged]] | None = None,
) -> dict[str, ExportedProgram]:
    """Return programs whose partitions are lowered to backends, partitioner by partitioner.

    Args:
        programs: edge programs by method
        partitioners: of each method, in order
        stages: times and reports the work
        rounds: results of the partitioners on these programs as far as they are known; the first
            one of a method is used instead of asking its partitioner again

    Raises: CompileError if a partitioner breaks a rule or a backend fails
    """
    built = dict(programs)
    known = {name: found[0] for name, found in (rounds or {}).items() if found}
    for turn in in_rounds(partitioners):
        with stages.stage("delegate", ", ".join(sorted(turn))) as result:
            built, known = lower_methods(built, turn, known), {}
            result.nodes = sum(calls_of(program) for program in built.values())
            result.modules = {name: built[name].graph_module for name in sorted(turn)}
    return built


def passes_before_planning(config: ExecutorchBackendConfig) -> list[Any]:
    """Return the passes of a configuration that run before memory planning, in groups, in order."""
    groups: list[Any] = []
    if config.do_quant_fusion_and_const_prop:
        names = ("quant_fusion", "shared_weights", "constant_folding")
        groups.append([standard_pass(name) for name in names])
    if config.passes:
        groups.append(config.passes)
    if config.run_reinplace_pass:
        groups.append([standard_pass("reinplace", more=config.reinplace_extra_ops or ())])
    return groups


def calls_of(program: ExportedProgram) -> int:
    """Return the number of calls in the graph of a program."""
    return sum(node.op == "call_function" for node in program.graph.nodes)
