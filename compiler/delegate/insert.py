"""Replacement of regions by calls of their lowered modules."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import ExportGraphSignature, OutputSpec

from compiler.delegate.calling_program import argument_of
from compiler.delegate.extract import DelegateRegion
from compiler.dialect.copies import copied_root, rebuilt
from compiler.dialect.delegate_call import NAME, executorch_call_delegate
from compiler.dialect.outputs import is_user_output
from compiler.interface.partitioner import TAG
from compiler.partition.regions import contracted

Node = torch.fx.Node
Lowered = tuple[DelegateRegion, torch.nn.Module]


def body_with_delegates(
    body: torch.fx.GraphModule, lowered: Sequence[Lowered], bodies: Mapping[str, torch.nn.Module]
) -> torch.fx.GraphModule:
    """Return a body of control flow in which regions are replaced by delegate calls.

    Args:
        body: with the nodes of the regions; not changed
        lowered: regions and their modules
        bodies: new bodies of the control flow inside it
    """
    root = _root(body, bodies)
    given: Any = body.graph.output_node().args[0]
    several = isinstance(given, (list, tuple))
    results: list[Any] = [*given] if several else [given]
    graph, _ = delegated_graph(body.graph, root, lowered, results)
    if not several:
        last = graph.output_node()
        shown: Any = last.args[0]
        last.args = (shown[0],)
    built = torch.fx.GraphModule(root, graph)
    built.meta = dict(body.meta)
    return built


def _root(module: torch.fx.GraphModule, bodies: Mapping[str, torch.nn.Module]) -> torch.nn.Module:
    root = copied_root(module)
    for name, body in bodies.items():
        setattr(root, name, body)
    return root


def with_delegates(
    program: ExportedProgram,
    lowered: Sequence[Lowered],
    bodies: Mapping[str, torch.nn.Module],
) -> ExportedProgram:
    """Return a program in which regions are replaced by delegate calls.

    Args:
        program: with the nodes of the regions; not changed
        lowered: regions and their modules
        bodies: new bodies of its control flow
    """
    root = _root(program.graph_module, bodies)
    shown = _results(program, {name for region, _ in lowered for name in region.updates})
    graph, built = delegated_graph(program.graph, root, lowered, [value for value, _ in shown])
    owned = {name for region, _ in lowered for name in region.owned}
    unread = {n.name for n in graph.nodes if n.op == "placeholder" and not n.users} & owned
    signature = _signature(program, built, shown, unread)
    for node in list(graph.nodes):
        if node.op == "placeholder" and node.name in unread:
            graph.erase_node(node)
    kept = {spec.target for spec in signature.input_specs if spec.target}
    taken = {s.target for s in program.graph_signature.input_specs if s.arg.name in unread} - kept
    source: Any = program
    return rebuilt(
        program,
        root,
        graph,
        signature=signature,
        state_dict={k: v for k, v in source.state_dict.items() if k not in taken},
        constants={k: v for k, v in source.constants.items() if k not in taken},
    )


def delegated_graph(
    graph: torch.fx.Graph,
    root: torch.nn.Module,
    lowered: Sequence[Lowered],
    results: Sequence[Any],
) -> tuple[torch.fx.Graph, dict[Node, Node]]:
    """Return a new graph with the calls, and a map from old to new nodes.

    Args:
        graph: the old one
        root: is given the lowered modules
        lowered: regions and their modules
        results: values of the old graph the new one returns
    """
    keys = {f"region {place}": pair for place, pair in enumerate(lowered)}
    group_of = {node: key for key, (region, _) in keys.items() for node in region.nodes}
    order, _ = contracted(graph, group_of)
    building = _Building(root, {node.name for node in graph.nodes})
    for key in order:
        if isinstance(key, str):
            building.call(*keys[key])
        elif isinstance(key, Node) and key.op != "output" and not _goes_inside(key, group_of):
            building.copy(key)
    building.output(graph.output_node(), results)
    return building.graph, building.built


def _goes_inside(node: Node, group_of: Mapping[Node, str]) -> bool:
    """Return whether a node names a body that only regions run."""
    return node.op == "get_attr" and all(user in group_of for user in node.users)


class _Building:
    def __init__(self, root: torch.nn.Module, taken: set[str]) -> None:
        self.graph = torch.fx.Graph()
        self.root = root
        self.built: dict[Node, Node] = {}
        self._taken = taken
        self._next: dict[str, int] = {}
        self._lowered = 0

    def copy(self, node: Node) -> None:
        copied = self.graph.node_copy(node, self.built.__getitem__)
        copied.name = node.name
        copied.meta.pop(TAG, None)
        self.built[node] = copied

    def call(self, region: DelegateRegion, module: torch.nn.Module) -> None:
        name = self._lowered_name(module)
        home = self._add("get_attr", name, (), name)
        args = (home, *(self.built[node] for node in region.inputs))
        call = self._add("call_function", executorch_call_delegate, args, NAME)
        call.meta = {"val": [node.meta["val"] for node in region.results], "debug_handle": 0}
        for place, node in enumerate(region.results):
            result = self._add("call_function", operator.getitem, (call, place), "getitem")
            result.meta = {k: v for k, v in node.meta.items() if k not in _NOT_OF_RESULTS}
            self.built[node] = result

    def _lowered_name(self, module: torch.nn.Module) -> str:
        while hasattr(self.root, f"lowered_module_{self._lowered}"):
            self._lowered += 1
        self.root.add_module(f"lowered_module_{self._lowered}", module)
        return f"lowered_module_{self._lowered}"

    def _add(self, op: str, target: Any, args: tuple[Any, ...], name: str) -> Node:  # noqa: ANN401
        """Return a new node whose name no node of the old graph has."""
        free = name
        while free in self._taken:
            self._next[name] = self._next.get(name, 0) + 1
            free = f"{name}_{self._next[name]}"
        self._taken.add(free)
        node = self.graph.create_node(op, target, args, name=free)
        node.name = free
        return node

    def output(self, node: Node, results: Sequence[Any]) -> None:
        built = self.graph.output(tuple(self._new(value) for value in results))
        built.meta = dict(node.meta)

    def _new(self, value: Any) -> Any:  # noqa: ANN401
        return self.built[value] if isinstance(value, Node) else value


_NOT_OF_RESULTS = (TAG, "nn_module_stack", "source_fn_stack", "debug_handle")


def _results(program: ExportedProgram, gone: set[str]) -> list[tuple[Any, OutputSpec]]:
    """Return results and their specs without the mutations that happen inside a delegate."""
    signature = program.graph_signature
    buffers = {spec.target: spec.arg.name for spec in signature.input_specs if spec.target}
    results: Any = program.graph.output_node().args[0]
    return [
        (value, spec)
        for value, spec in zip(results, signature.output_specs, strict=True)
        if is_user_output(spec) or buffers.get(spec.target or "") not in gone
    ]


def _signature(
    program: ExportedProgram,
    built: Mapping[Node, Node],
    shown: Sequence[tuple[Any, OutputSpec]],
    unread: set[str],
) -> ExportGraphSignature:
    outputs = [
        OutputSpec(
            spec.kind,
            argument_of(built[value]) if isinstance(value, Node) else spec.arg,
            spec.target,
        )
        for value, spec in shown
    ]
    specs = program.graph_signature.input_specs
    return ExportGraphSignature([s for s in specs if s.arg.name not in unread], outputs)
