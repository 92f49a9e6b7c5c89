"""Partitioners by method, and the order in which they run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch.export import ExportedProgram

from compiler.delegate.to_backend import DryRun, Tagged
from compiler.edge.decompositions import PACKAGE_DECOMPOSES
from compiler.partition.preserved_ops import PreservedOps, preserved_nodes, preserved_ops_of
from compiler.partition.run_partitioner import is_of_package
from compiler.partition.tags import PartitionError, tag_of

Partitioners = Mapping[str, Sequence[Any]]
_ROUNDS = 8


def partitioners_by_method(given: Any, methods: Iterable[str]) -> dict[str, list[Any]]:  # noqa: ANN401
    """Return the partitioners of each method that has some, in order.

    Those with a larger ``rules.priority`` come first; equal priorities keep the given order.

    Args:
        given: None, one partitioner, several, or a dictionary of them by method
        methods: names of the methods

    Raises: PartitionError if an object is not a partitioner, or a method is unknown
    """
    names = list(methods)
    if given is None:
        return {}
    table: dict[str, Any] = dict.fromkeys(names, given)
    if isinstance(given, Mapping):
        table = dict(given)  # pyright: ignore[reportUnknownArgumentType]
    unknown = sorted(map(str, table.keys() - set(names)))
    if unknown:
        there = ", ".join(names)
        raise PartitionError(
            f"unknown method {', '.join(unknown)} to partition; available: {there}"
        )
    found = {name: _listed(value) for name, value in table.items()}
    return {name: partitioners for name, partitioners in found.items() if partitioners}


def _listed(value: Any) -> list[Any]:  # noqa: ANN401
    several: Any = value if isinstance(value, (list, tuple)) else [value]  # pyright: ignore[reportUnknownVariableType]
    given: list[Any] = [one for one in several if one is not None]
    for partitioner in given:
        has_one = callable(getattr(partitioner, "partition", None))
        # str has a method partition too
        if not has_one or isinstance(partitioner, (str, bytes, type)):
            raise PartitionError(f"expected a Partitioner, found {type(partitioner).__name__}")
    return sorted(given, key=lambda p: -_priority(p))


def _priority(partitioner: Any) -> int:  # noqa: ANN401
    return int(getattr(getattr(partitioner, "rules", None), "priority", 0))


def in_rounds(partitioners: Partitioners) -> list[dict[str, Any]]:
    """Return the first partitioner of each method, then the second ones, and so on."""
    most = max(map(len, partitioners.values()), default=0)
    return [
        {name: found[place] for name, found in partitioners.items() if place < len(found)}
        for place in range(most)
    ]


def before_decomposition(program: ExportedProgram, partitioners: Sequence[Any]) -> ExportedProgram:
    """Return an exported program transformed by its partitioners before decomposition.

    Raises: PartitionError if one returns something else
    """
    for partitioner in partitioners:
        change = getattr(partitioner, "transform_for_pre_decomposition", None)
        changed: Any = program if change is None else change(program)
        if not isinstance(changed, ExportedProgram):
            raise PartitionError(
                f"transform_for_pre_decomposition of {type(partitioner).__name__} returned "
                f"{type(changed).__name__}, not an ExportedProgram"
            )
        program = changed
    return program


Lower = Callable[[PreservedOps], ExportedProgram]


def _take_apart(preserved: PreservedOps, partitioners: Sequence[Any], lower: Lower) -> None:
    """Let vendors have the parts of operators that the package decomposes.

    An operator that one takes as it is, or whose result none takes, stays one kernel: of the parts
    vendors may have wrong values where they have the operator right.
    """
    edge = lower(preserved)
    if not preserved_nodes(edge, PACKAGE_DECOMPOSES):
        return
    whole = DryRun(edge).rounds(partitioners)[-1]
    left = [
        node
        for node in preserved_nodes(whole.program, PACKAGE_DECOMPOSES - preserved.ops)
        if tag_of(node) not in whole.tags
    ]
    preserved.in_parts = {name for node in left if (name := _exported_name(node))}
    if not preserved.in_parts:
        return
    edge = lower(preserved)
    last = DryRun(edge).rounds(partitioners)[-1]
    others = {node.name for node in last.program.graph.nodes if tag_of(node) not in last.tags}
    results = {
        _exported_name(node): node.name for node in edge.graph.nodes
    }  # the last part of each
    preserved.in_parts = {
        name for name in preserved.in_parts if results.get(name, "") not in others
    }


def _exported_name(node: Any) -> str:  # noqa: ANN401
    source = node.meta.get("from_node") or ()
    return source[0].name if source else ""


@dataclass(frozen=True)
class LoweredWithPreservedOps:
    """An edge program in which a partitioner takes every preserved operator.

    Attributes:
        program: the edge program
        preserved: operators that partitioners requested to preserve, and those preserved
        rounds: results of each partitioner; None if not requested
    """

    program: ExportedProgram
    preserved: PreservedOps
    rounds: list[Tagged] | None


def lowered_with_preserved_ops(
    program: ExportedProgram, partitioners: Sequence[Any], lower: Lower
) -> LoweredWithPreservedOps:
    """Return an edge program in which a partitioner takes every preserved operator.

    A preserved operator that no partitioner takes is decomposed in another round, and partitioners
    run again: they
    may take the resulting operators.

    Args:
        program: as exported
        partitioners: of the method, in order
        lower: returns the edge program for the operators to preserve

    Raises: PartitionError if it does not converge
    """
    preserved = preserved_ops_of(partitioners, program)
    if any(map(is_of_package, partitioners)):
        _take_apart(preserved, partitioners, lower)
    names = ", ".join(request.partitioner for request in preserved.requests)
    for _ in range(_ROUNDS):
        preserved.answered.clear()
        edge = lower(preserved)
        if not preserved_nodes(edge, preserved.ops):
            return LoweredWithPreservedOps(edge, preserved, None)
        rounds = DryRun(edge).rounds(partitioners)
        last = rounds[-1]
        left = [
            n for n in preserved_nodes(last.program, preserved.ops) if tag_of(n) not in last.tags
        ]
        # one that was refused and is still there has no decomposition
        rejected = {node.meta["from_node"][0].name for node in left} - set(preserved.refused)
        if not rejected:
            return LoweredWithPreservedOps(edge, preserved, rounds)
        words = f"{names} requested to preserve it, but no partitioner took it"
        preserved.refused |= dict.fromkeys(rejected, words)
    raise PartitionError(f"{names} keeps preserving operators that no partitioner takes")
