"""Lowering to backends: an entire program, its tagged partitions, or those of several methods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.export import ExportedProgram

from compiler.delegate.extract import DelegateRegion, extract, owner_of, owner_of_body
from compiler.delegate.insert import body_with_delegates, with_delegates
from compiler.delegate.lowered_module import LoweredBackendModule, lowered_module
from compiler.delegate.preprocess import prepare, preprocess_all, preprocess_each, preprocess_one
from compiler.dialect.copies import copied_program
from compiler.interface.backend import (
    CompileSpec,
    PreprocessResult,
    copied_specs,
)
from compiler.interface.partitioner import (
    DelegationSpec,
    Partitioner,
)
from compiler.interface.stock_objects import backend_called
from compiler.partition.check_unchanged import check_unchanged
from compiler.partition.inferred_sizes import let_infer
from compiler.partition.real_results import leave_once
from compiler.partition.reasons import collecting
from compiler.partition.run_partitioner import answer_of
from compiler.partition.tags import (
    Data,
    PartitionError,
    check_cycles,
    check_tags,
    data_of,
    tag_of,
)
from compiler.partition.verdicts import attach_verdicts, judge, verdicts_of


@dataclass
class MethodProgramsPartitionerSpec:
    """Edge programs by method, and partitioners by method."""

    method_to_edge_program: Mapping[str, ExportedProgram]
    method_to_partitioner: Mapping[str, Partitioner]


def to_backend(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - three documented forms
    """Lower to backends; the arguments are not changed.

    ``to_backend(backend_id, edge_program, compile_specs)`` lowers a whole program and returns a
    ``LoweredBackendModule``. ``to_backend(edge_program, partitioner)`` lowers the parts that a
    partitioner tags and returns an edge program. ``to_backend(MethodProgramsPartitionerSpec)``
    does so for several methods, whose partitions a backend may process together, and returns
    programs by
    method.

    Raises:
        NotImplementedError: unknown backend
        PartitionError: the partitioner or its tags break a rule
        BackendError: the backend raised, or returned an invalid result
    """
    return _FORMS[_form_of(args)](*args, **kwargs)


def _form_of(args: tuple[Any, ...]) -> type:
    for kind in _FORMS:
        if args and isinstance(args[0], kind):
            return kind
    found = type(args[0]).__name__ if args else "nothing"
    raise TypeError(
        "to_backend expects a backend id, an ExportedProgram or a MethodProgramsPartitionerSpec "
        f"as the first argument, found {found}"
    )


def _lower_whole(
    backend_id: str, edge_program: ExportedProgram, compile_specs: Sequence[CompileSpec] = ()
) -> LoweredBackendModule:
    specs = copied_specs(compile_specs)
    result = preprocess_one(backend_called(backend_id), edge_program, specs, "the entire program")
    return lowered_module(copied_program(edge_program), backend_id, specs, result)


def _lower_parts(edge_program: ExportedProgram, partitioner_instance: Partitioner) -> Any:  # noqa: ANN401
    parted = part(edge_program, partitioner_instance)
    prepare(parted.regions)
    results = preprocess_each(parted.regions)
    modules = [
        _module(region, result) for region, result in zip(parted.regions, results, strict=True)
    ]
    return finished(parted, modules)


def _lower_methods(given: MethodProgramsPartitionerSpec) -> dict[str, ExportedProgram]:
    return lower_methods(given.method_to_edge_program, given.method_to_partitioner)


def lower_methods(
    programs: Mapping[str, ExportedProgram],
    partitioners: Mapping[str, Partitioner],
    known: Mapping[str, Tagged] | None = None,
) -> dict[str, ExportedProgram]:
    """Return programs by method, with their tagged partitions lowered to backends.

    Args:
        programs: edge programs by method
        partitioners: of the methods to lower
        known: results of these partitioners on these programs, where there are any

    Raises: as ``to_backend``
    """
    unknown = sorted(partitioners.keys() - programs.keys())
    if unknown:
        there = ", ".join(sorted(programs))
        raise PartitionError(
            f"unknown method {', '.join(unknown)} to partition; available: {there}"
        )
    found = known or {}
    parted = {
        name: parted_by(
            found[name].beside(programs[name])
            if name in found
            else tagged(programs[name], partitioner)
        )
        for name, partitioner in partitioners.items()
    }
    regions = {name: each.regions for name, each in parted.items()}
    results = preprocess_all(regions)
    built = {
        name: finished(each, [_module(r, results[name][at]) for at, r in enumerate(each.regions)])
        for name, each in parted.items()
    }
    return {name: built.get(name, program) for name, program in programs.items()}


@dataclass(frozen=True)
class PartedGraph:
    """A graph, or a control flow body, with its regions.

    Attributes:
        module: tagged
        own: its regions, in order
        bodies: of its control flow, by name
    """

    module: torch.fx.GraphModule
    own: tuple[DelegateRegion, ...]
    bodies: Mapping[str, PartedGraph]

    @property
    def regions(self) -> tuple[DelegateRegion, ...]:
        """Return all regions, those of bodies last."""
        inner = (region for body in self.bodies.values() for region in body.regions)
        return (*self.own, *inner)


@dataclass(frozen=True)
class Parted:
    """A program and its regions.

    Attributes:
        program: a copy of the edge program, tagged
        graph: its graph with the regions
        verdicts: all that led here
    """

    program: ExportedProgram
    graph: PartedGraph
    verdicts: tuple[Any, ...]

    @property
    def regions(self) -> tuple[DelegateRegion, ...]:
        """Return all regions, those of bodies of control flow last."""
        return self.graph.regions


@dataclass(frozen=True)
class Tagged:
    """A program tagged by a partitioner, before any partition is lowered.

    Attributes:
        program: a copy of the edge program, tagged
        tags: delegation spec of each tag
        earlier: verdicts that the edge program had
        own: verdicts of this partitioner
    """

    program: ExportedProgram
    tags: Mapping[str, DelegationSpec]
    earlier: tuple[Any, ...]
    own: tuple[Any, ...]

    @property
    def verdicts(self) -> tuple[Any, ...]:
        """Return the verdicts of all partitioners so far."""
        return (*self.earlier, *self.own)

    def beside(self, program: ExportedProgram) -> Tagged:
        """Return this result with the verdicts that the edge program has by now."""
        return replace(self, earlier=verdicts_of(program))


def tagged(program: ExportedProgram, partitioner: Partitioner) -> Tagged:
    """Return a copy of a program, tagged by a partitioner.

    Raises: PartitionError if the partitioner breaks a rule
    """
    copied = copied_program(program)
    with collecting() as reasons:
        result = answer_of(partitioner, copied)
    built = result.tagged_exported_program
    check_unchanged(partitioner, program, built)
    let_infer(built)
    verdicts = judge(built, partitioner, result.partition_tags, reasons)
    leave_once(built.graph_module, result.partition_tags)
    return Tagged(built, result.partition_tags, verdicts_of(program), verdicts)


def part(program: ExportedProgram, partitioner: Partitioner) -> Parted:
    """Return a copy of a program, tagged by a partitioner, with its regions.

    Raises: PartitionError if the partitioner or its tags break a rule
    """
    return parted_by(tagged(program, partitioner))


def parted_by(found: Tagged) -> Parted:
    """Return the regions of a tagged program.

    Raises: PartitionError if its tags break a rule
    """
    graph = _parted(found.program, found.program.graph_module, found.tags, outermost=True)
    return Parted(found.program, graph, found.verdicts)


def _parted(
    program: ExportedProgram,
    module: torch.fx.GraphModule,
    tags: Mapping[str, DelegationSpec],
    *,
    outermost: bool,
) -> PartedGraph:
    data = data_of(program) if outermost else Data({}, frozenset())
    check_tags(module.graph, data)
    calls = [node for node in module.graph.nodes if node.op == "call_function"]
    group_of = {n: tag_of(n) for n in calls}
    tagged = {n: tag for n, tag in group_of.items() if tag is not None and tag in tags}
    check_cycles(module.graph, tagged)
    groups: dict[str, list[torch.fx.Node]] = {}
    for node, tag in tagged.items():
        groups.setdefault(tag, []).append(node)
    owner = owner_of(program, data) if outermost else owner_of_body(program, module.graph)
    bodies = {
        name: _parted(program, child, tags, outermost=False)
        for name, child in module.named_children()
        if isinstance(child, torch.fx.GraphModule)
    }
    regions = [extract(owner, tag, tags[tag], nodes) for tag, nodes in groups.items()]
    return PartedGraph(module, tuple(regions), bodies)


def _module(region: DelegateRegion, result: Any) -> LoweredBackendModule:  # noqa: ANN401
    specs = copied_specs(region.spec.compile_specs)
    return lowered_module(region.program, region.spec.backend_id, specs, result)


def finished(parted: Parted, modules: Sequence[LoweredBackendModule]) -> ExportedProgram:
    """Return the program that calls the lowered modules."""
    left = iter(modules)
    own = [(region, next(left)) for region in parted.graph.own]
    bodies = {name: _finished_body(body, left) for name, body in parted.graph.bodies.items()}
    built = with_delegates(parted.program, own, bodies)
    attach_verdicts(built, parted.verdicts)
    return built


def _finished_body(body: PartedGraph, left: Iterator[LoweredBackendModule]) -> torch.fx.GraphModule:
    own = [(region, next(left)) for region in body.own]
    bodies = {name: _finished_body(inner, left) for name, inner in body.bodies.items()}
    return body_with_delegates(body.module, own, bodies)


@dataclass(frozen=True)
class DryRun:
    """Partitioning without backends: payloads are empty.

    Attributes:
        program: an edge program
    """

    program: ExportedProgram

    def rounds(self, partitioners: Sequence[Partitioner]) -> list[Tagged]:
        """Return the result of each partitioner on the nodes that earlier ones did not take."""
        found: list[Tagged] = []
        for partitioner in partitioners:
            program = _emptied(found[-1]) if found else self.program
            found.append(tagged(program, partitioner))
        return found


def _emptied(found: Tagged) -> ExportedProgram:
    parted = parted_by(found)
    return finished(parted, [_module(region, PreprocessResult()) for region in parted.regions])


_FORMS: dict[type, Any] = {
    str: _lower_whole,
    ExportedProgram: _lower_parts,
    MethodProgramsPartitionerSpec: _lower_methods,
}
