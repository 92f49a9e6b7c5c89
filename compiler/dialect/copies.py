"""Copies of edge programs, node by node: fake results are shared, all other data is copied."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch.export import ExportedProgram

from compiler.dialect.templates import describe_output
from compiler.untyped import ranges_of


def copied_graph(graph: torch.fx.Graph) -> torch.fx.Graph:
    """Return a copy of a graph: the nodes have the same names and their own metadata."""
    new = torch.fx.Graph()
    built: dict[torch.fx.Node, torch.fx.Node] = {}
    for node in graph.nodes:
        copied = new.node_copy(node, built.__getitem__)
        copied.name = node.name  # fx renames builtins such as "input"
        built[node] = copied
    describe_output(new)
    return new


def copied_root(module: torch.nn.Module) -> torch.nn.Module:
    """Return a module with the attributes of a graph module; branches and bodies are copied."""
    root = torch.nn.Module()
    for name, child in module.named_children():
        inner: Any = child
        if isinstance(child, torch.fx.GraphModule):
            inner = torch.fx.GraphModule(copied_root(child), copied_graph(child.graph))
            inner.meta = dict(child.meta)
        root.add_module(name, inner)
    for name, tensor in (*module.named_parameters(recurse=False),):
        root.register_parameter(name, tensor)
    for name, tensor in (*module.named_buffers(recurse=False),):
        root.register_buffer(name, tensor)
    return root


def copied_program(program: ExportedProgram) -> ExportedProgram:
    """Return a program with a copied graph and the same tensors."""
    return rebuilt(program, copied_root(program.graph_module), copied_graph(program.graph))


@dataclass
class ProgramDraft:
    """A copied graph and the data of a program, to be changed before one program is built of them.

    Building a program takes longer than copying its graph: its code is generated, its nodes are
    verified.

    Attributes:
        root: the attributes of the graph module; bodies of control flow are copies
        graph: a copy
        signature: replaced, not changed
        state_dict: weights and buffers by name
        constants: by name
    """

    root: torch.nn.Module
    graph: torch.fx.Graph
    signature: Any
    state_dict: dict[str, Any]
    constants: dict[str, Any]

    @classmethod
    def of(cls, program: ExportedProgram) -> ProgramDraft:
        """Return a draft of a program, which is not changed."""
        return cls(
            copied_root(program.graph_module),
            copied_graph(program.graph),
            copy.deepcopy(program.graph_signature),
            dict(program.state_dict),
            dict(program.constants),
        )

    def built(self, program: ExportedProgram) -> ExportedProgram:
        """Return the program of the draft; all else is that of the program it was made of."""
        return rebuilt(
            program,
            self.root,
            self.graph,
            signature=self.signature,
            state_dict=self.state_dict,
            constants=self.constants,
        )


def isolated_copy(program: ExportedProgram) -> ExportedProgram:
    """Return a deep copy of a program, weights included."""
    kept: dict[int, Any] = {}

    def own(tensor: Any) -> Any:  # noqa: ANN401
        if id(tensor) not in kept:
            kept[id(tensor)] = _cloned(tensor)
        return kept[id(tensor)]

    return rebuilt(
        program,
        copied_root(program.graph_module),
        copied_graph(program.graph),
        state_dict={name: own(value) for name, value in program.state_dict.items()},
        constants={name: own(value) for name, value in program.constants.items()},
    )


def _cloned(value: Any) -> Any:  # noqa: ANN401
    if not isinstance(value, torch.Tensor):
        return copy.deepcopy(value)
    cloned = value.detach().clone()
    if isinstance(value, torch.nn.Parameter):
        return torch.nn.Parameter(cloned, requires_grad=value.requires_grad)
    return cloned


def rebuilt(  # noqa: PLR0913 - a program has that many parts
    program: ExportedProgram,
    root: torch.nn.Module,
    graph: torch.fx.Graph,
    *,
    signature: Any = None,  # noqa: ANN401 - torch's, which is not exported under one name
    state_dict: dict[str, Any] | None = None,
    constants: dict[str, Any] | None = None,
    verifiers: list[Any] | None = None,
) -> ExportedProgram:
    """Return a program with another graph; omitted arguments are taken from the program."""
    source: Any = program
    built = ExportedProgram(
        root=root,
        graph=graph,
        graph_signature=copy.deepcopy(program.graph_signature) if signature is None else signature,
        state_dict=dict(program.state_dict) if state_dict is None else state_dict,
        range_constraints=ranges_of(program),
        module_call_graph=list(program.module_call_graph),
        example_inputs=program.example_inputs,
        constants=dict(program.constants) if constants is None else constants,
        verifiers=list(source.verifiers) if verifiers is None else verifiers,
    )
    cast("Any", built).graph_module.meta.update(source.graph_module.meta)
    return built
