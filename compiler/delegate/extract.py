"""Extraction of a set of nodes as an edge program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.exported_program import ModuleCallEntry, ModuleCallSignature
from torch.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
)
from torch.utils import _pytree as pytree

from compiler.delegate.calling_program import argument_of
from compiler.dialect.copies import copied_root
from compiler.dialect.outputs import is_user_output
from compiler.dialect.templates import nodes_in
from compiler.interface.partitioner import TAG, DelegationSpec
from compiler.partition.tags import Data, PartitionError, tag_of
from compiler.untyped import ranges_of

Node = torch.fx.Node
_ORDER = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


@dataclass(frozen=True, slots=True)
class DelegateRegion:
    """Nodes of a program that become one delegate.

    Attributes:
        tag: of the partitioner
        spec: backend and settings
        nodes: its calls, in order
        inputs: arguments of the delegate call, nodes of the program
        owned: names of weights and state stored inside the delegate
        results: results of the delegate, nodes of the program
        updates: mutated buffers inside the delegate and their new values
        program: the nodes as a program
    """

    tag: str
    spec: DelegationSpec
    nodes: tuple[Node, ...]
    inputs: tuple[Node, ...]
    owned: frozenset[str]
    results: tuple[Node, ...]
    updates: Mapping[str, Node]
    program: ExportedProgram


@dataclass(frozen=True, slots=True)
class Owner:
    """The graph that regions are extracted from.

    Attributes:
        program: the program
        data: its weights, buffers and constants; empty for a branch
        updates: names of the values written back, by the name of the buffer
        ends: nodes among the user outputs
    """

    program: ExportedProgram
    data: Data
    updates: Mapping[str, str]
    ends: frozenset[Node]


def owner_of(program: ExportedProgram, data: Data) -> Owner:
    """Return the extraction context of the outermost graph."""
    signature = program.graph_signature
    buffers = {s.target: name for name, s in data.specs.items()}
    updates: dict[str, str] = {}
    ends: set[Node] = set()
    results: Any = program.graph.output_node().args[0]
    for value, spec in zip(results, signature.output_specs, strict=True):
        if is_user_output(spec):
            ends |= {value} if isinstance(value, Node) else set()
        elif spec.target in buffers:
            updates[buffers[spec.target]] = spec.arg.name
        elif isinstance(value, Node):
            ends.add(value)
    return Owner(program, data, updates, frozenset(ends))


def owner_of_body(program: ExportedProgram, body: torch.fx.Graph) -> Owner:
    """Return the extraction context of a body of control flow, whose values are all inputs."""
    given: Any = body.output_node().args[0]
    ends = frozenset(nodes_in(given))
    return Owner(program, Data({}, frozenset()), {}, ends)


def extract(owner: Owner, tag: str, spec: DelegationSpec, nodes: Sequence[Node]) -> DelegateRegion:
    """Return the region of given calls; their graph is not changed.

    Args:
        owner: the graph of the calls
        tag: name of the partition
        spec: backend and settings
        nodes: calls in order, each ``getitem`` together with its source
    """
    inside = set(nodes)
    read = dict.fromkeys(n for node in nodes for n in node.all_input_nodes if n not in inside)
    homes = [n for n in read if n.op == "get_attr"]  # bodies of its control flow are included
    read = [n for n in read if n.op != "get_attr"]
    owned = [n for n in read if _is_owned(owner, n)]
    owned.sort(key=lambda n: _ORDER.index(owner.data.specs[n.name].kind))
    inputs = [n for n in read if n not in owned]
    updates = _kept_updates(owner, owned, inside, tag)
    results = [n for n in nodes if _leaves(owner, n, inside, updates)]
    return DelegateRegion(
        tag,
        spec,
        tuple(nodes),
        tuple(inputs),
        frozenset(n.name for n in owned),
        tuple(results),
        updates,
        _program(owner, (owned, inputs), [*homes, *nodes], (updates, results)),
    )


def _is_owned(owner: Owner, node: Node) -> bool:
    # A tagged constant with several readers is given to each: every reader's payload has it.
    return node.name in owner.data.specs and bool(node.meta.get(TAG))


def read_outside(region: DelegateRegion) -> list[str]:
    """Return the constants of a region that nodes outside of all partitions read too."""
    read = (n for node in region.nodes for n in node.all_input_nodes if n.name in region.owned)
    return [n.name for n in dict.fromkeys(read) if any(tag_of(user) is None for user in n.users)]


def _kept_updates(
    owner: Owner, owned: Sequence[Node], inside: set[Node], tag: str
) -> dict[str, Node]:
    named = {node.name: node for node in inside}
    updates: dict[str, Node] = {}
    for node in owned:
        value = owner.updates.get(node.name)
        if value is None:
            continue
        if value not in named:
            raise PartitionError(
                f"buffer {node.name} is tagged with {tag}, but its new value {value} is computed "
                "outside of that partition"
            )
        updates[node.name] = named[value]
    return updates


def _leaves(owner: Owner, node: Node, inside: set[Node], updates: Mapping[str, Node]) -> bool:
    if isinstance(node.meta.get("val"), (list, tuple)):
        return False  # its single results are the outputs
    if node in owner.ends:
        return True
    if node in updates.values():
        return any(user not in inside and user.op != "output" for user in node.users)
    return any(user not in inside for user in node.users)


def _free_name(name: str, taken: set[str]) -> str:
    return next(free for free in (f"{name}_{i}" for i in count(1)) if free not in taken)


def _program(
    owner: Owner,
    given: tuple[Sequence[Node], Sequence[Node]],
    nodes: Sequence[Node],
    built: tuple[Mapping[str, Node], Sequence[Node]],
) -> ExportedProgram:
    owned, inputs = given
    updates, results = built
    graph = torch.fx.Graph()
    new: dict[Node, Node] = {}
    taken = {node.name for node in (*owned, *inputs, *nodes)}
    for node in (*owned, *inputs):
        copied = graph.placeholder(node.name)
        if copied.name != node.name and node not in owned:
            # fx renames builtins such as "input", each time that a pass of a vendor copies them
            copied.name = copied.target = _free_name(node.name, taken)
        else:
            copied.name = node.name
        copied.meta = dict(node.meta)
        new[node] = copied
    for node in nodes:
        new[node] = graph.node_copy(node, new.__getitem__)
        new[node].name = node.name
    graph.output(tuple(new[node] for node in (*updates.values(), *results)))
    specs = owner.data.specs
    signature = ExportGraphSignature(
        [specs[node.name] for node in owned] + [_input(new[node]) for node in inputs],
        [_update(new[value], specs[name]) for name, value in updates.items()]
        + [OutputSpec(OutputKind.USER_OUTPUT, argument_of(new[n]), None) for n in results],
    )
    targets = [specs[node.name].target for node in owned]
    source: Any = owner.program
    return ExportedProgram(
        root=_root(nodes),
        graph=graph,
        graph_signature=signature,
        state_dict={t: source.state_dict[t] for t in targets if t in source.state_dict},
        range_constraints=ranges_of(owner.program),
        module_call_graph=[ModuleCallEntry("", _call(len(inputs), len(results)))],
        constants={t: source.constants[t] for t in targets if t in source.constants},
        verifiers=list(source.verifiers),
    )


def _root(nodes: Sequence[Node]) -> torch.nn.Module:
    """Return a module with copies of the bodies that nodes name."""
    root = torch.nn.Module()
    for node in nodes:
        if node.op == "get_attr":
            setattr(root, str(node.target), getattr(copied_root(_owner(node)), str(node.target)))
    return root


def _owner(node: Node) -> torch.nn.Module:
    owner = node.graph.owning_module
    assert owner is not None  # graphs of programs and of their bodies belong to a module
    return owner


def _input(node: Node) -> InputSpec:
    return InputSpec(InputKind.USER_INPUT, argument_of(node), None)


def _update(value: Node, spec: Any) -> OutputSpec:  # noqa: ANN401
    return OutputSpec(OutputKind.BUFFER_MUTATION, argument_of(value), spec.target)


def _call(inputs: int, results: int) -> ModuleCallSignature:
    zeros: Any = [0] * inputs
    _, given = pytree.tree_flatten((tuple(zeros), {}))
    _, built = pytree.tree_flatten([0] * results)
    return ModuleCallSignature(inputs=[], outputs=[], in_spec=given, out_spec=built)
