"""Rules of tags, and the tagging of weights and state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind

from compiler.dialect.delegate_call import executorch_call_delegate
from compiler.edge.written_buffers import WRITTEN_ELSEWHERE
from compiler.errors import CompileError, at
from compiler.interface.partitioner import TAG
from compiler.partition.regions import find_cycle, results_taken, unit_of

Node = torch.fx.Node
_DATA = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)
_SHOWN = 12  # nodes of a cycle that an error lists


class PartitionError(CompileError):
    """A partitioner, or the tags it set, broke a rule."""


class PartitionContractError(PartitionError, AssertionError):
    """A partitioner changed the graph or returned no tags; documented as a failed assertion."""


class PartitionCycleError(PartitionError):
    """Partitions would depend on each other in a cycle.

    Attributes:
        cycle: names of nodes along the cycle, in the order of the data
    """

    def __init__(self, message: str, cycle: tuple[str, ...]) -> None:
        self.cycle = cycle
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Data:
    """The placeholders of a program that are not inputs of the user.

    Attributes:
        specs: input spec of each, by name
        written: names of those that are written back at the end, or by another method
    """

    specs: Mapping[str, Any]
    written: frozenset[str]


def data_of(program: ExportedProgram) -> Data:
    """Return the weights, buffers and constants of a program."""
    signature = program.graph_signature
    specs = {s.arg.name: s for s in signature.input_specs if s.kind in _DATA}
    targets = {s.target for s in signature.output_specs if s.kind != OutputKind.USER_OUTPUT}
    elsewhere = {n.name for n in program.graph.nodes if WRITTEN_ELSEWHERE in n.meta}
    return Data(
        specs,
        frozenset(n for n, s in specs.items() if s.target in targets or n in elsewhere),
    )


def tag_of(node: Node) -> str | None:
    """Return the tag of a node; a ``getitem`` has that of its source.

    Delegate calls have none: nodes of one backend are not delegated again.
    """
    unit = unit_of(node)
    tag = unit.meta.get(TAG)
    return tag if tag and unit.target is not executorch_call_delegate else None


def check_tags(graph: torch.fx.Graph, data: Data) -> None:
    """Check tagged nodes that are not calls.

    Args:
        graph: of a program, or a body of its control flow
        data: the weights, buffers and constants of the program; a body has none

    Raises: PartitionError naming the node, its tag and the user that breaks the rule
    """
    check_tagged_kinds(graph, data)
    for node in graph.nodes:
        tag = node.meta.get(TAG)
        if not tag or node.op != "placeholder":
            continue
        if node.meta.get("no_copy") or node.name in data.written:
            _check_users(node, tag)


def check_tagged_kinds(graph: torch.fx.Graph, data: Data) -> None:
    """Check that only calls, weights, buffers and constants are tagged.

    Raises: PartitionError naming the node and its tag
    """
    for node in graph.nodes:
        tag = node.meta.get(TAG)
        if not tag:
            continue
        if node.op == "output":
            raise PartitionError(f"output node {node.name} should not be tagged (with {tag})")
        if node.op == "placeholder" and node.name not in data.specs:
            raise PartitionError(
                "placeholder node for non-params, non-buffer, and non-tensor constants should "
                f"not be tagged: {node.name} has the tag {tag}"
            )


def _check_users(node: Node, tag: str) -> None:
    for user in node.users:
        if user.op != "output" and tag_of(user) != tag:
            raise PartitionError(
                f"constant data node ({node.name}) is tagged with ({tag}) but has user "
                f"({user.name}) which has tag ({tag_of(user)})"
            )


def check_cycles(graph: torch.fx.Graph, group_of: Mapping[Node, str]) -> None:
    """Check that each group can become one call.

    Raises: PartitionCycleError showing the cycle
    """
    cycle = find_cycle(graph, group_of)
    if not cycle:
        return
    steps = [f"{n.name} ({group_of.get(n) or _outside(n)})" for n in cycle]
    shown = [*steps[:_SHOWN], *(["…"] if len(steps) > _SHOWN else []), steps[0]]
    tags = ", ".join(sorted({group_of[n] for n in cycle if n in group_of}))
    raise PartitionCycleError(
        f"partition {tags} would form a dependency cycle: {' -> '.join(shown)}; split it, for "
        f"instance at {at(cycle[0])}",
        tuple(node.name for node in cycle),
    )


def _outside(node: Node) -> str:
    """Return why a node is in no partition."""
    taken = unit_of(node).target is executorch_call_delegate
    return "delegated already" if taken else "not delegated"


def tag_constant_data(edge_program: ExportedProgram) -> None:
    """Tag weights, buffers and constants that are read inside partitions; call it last.

    Data that several partitions read gets the first tag; each of them gets a copy, unless its
    metadata has ``no_copy``. Buffers that are written are not changed.
    """
    _tag_data(edge_program, lambda name, written: name not in written)


def tag_mutated_buffer(edge_program: ExportedProgram) -> None:
    """Tag the buffers that are written by the program and read inside partitions; call it last."""
    _tag_data(edge_program, lambda name, written: name in written)


def _tag_data(program: ExportedProgram, requested: Callable[[str, frozenset[str]], bool]) -> None:
    data = data_of(program)
    for node in program.graph.nodes:
        if node.op != "placeholder" or node.name not in data.specs:
            continue
        tags = {tag_of(user) for user in node.users} - {None}
        if tags and requested(node.name, data.written):
            node.meta[TAG] = min(str(tag) for tag in tags)


def clear_data_tags(program: ExportedProgram) -> None:
    """Remove the tags of weights, buffers and constants."""
    for node in program.graph.nodes:
        if node.op == "placeholder":
            node.meta.pop(TAG, None)


def set_tag(node: Node, tag: str | None) -> None:
    """Tag a node and the ``getitem`` nodes that read it, or remove their tag."""
    for each in (node, *results_taken(node)):
        if tag is None:
            each.meta.pop(TAG, None)
        else:
            each.meta[TAG] = tag
