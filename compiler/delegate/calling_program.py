"""Programs that consist of one delegate call."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    OutputKind,
    OutputSpec,
    SymIntArgument,
    TensorArgument,
)

from compiler.dialect.copies import rebuilt
from compiler.dialect.delegate_call import executorch_call_delegate, get_lowered_module_name


def calling_program(module: Any) -> ExportedProgram:  # noqa: ANN401 - a LoweredBackendModule
    """Return the program with the inputs and results of a lowered module's original one."""
    original: ExportedProgram = module.original_module
    root, graph = torch.nn.Module(), torch.fx.Graph()
    inputs = [s for s in original.graph_signature.input_specs if s.kind == InputKind.USER_INPUT]
    outputs = original.graph_signature.output_specs
    named = {node.name: node for node in original.graph.nodes}
    given: list[torch.fx.Node] = []
    for spec in inputs:
        node = graph.placeholder(spec.arg.name)
        node.name = spec.arg.name
        node.meta = dict(named[spec.arg.name].meta)
        given.append(node)
    home = graph.get_attr(get_lowered_module_name(root, module))
    call = graph.call_function(executorch_call_delegate, (home, *given))
    results = [named[s.arg.name] for s in outputs if s.kind == OutputKind.USER_OUTPUT]
    call.meta = {"val": [result.meta["val"] for result in results], "debug_handle": 1}
    built = [_result(graph, call, place) for place, _ in enumerate(results)]
    graph.output(tuple(built))
    specs = [OutputSpec(OutputKind.USER_OUTPUT, argument_of(node), None) for node in built]
    signature = ExportGraphSignature(inputs, specs)
    return rebuilt(original, root, graph, signature=signature, state_dict={}, constants={})


def _result(graph: torch.fx.Graph, call: torch.fx.Node, place: int) -> torch.fx.Node:
    node = graph.call_function(operator.getitem, (call, place))
    node.meta = {"val": call.meta["val"][place]}
    return node


def argument_of(node: torch.fx.Node) -> TensorArgument | SymIntArgument:
    """Return the name of a node in a signature."""
    if isinstance(node.meta.get("val"), (torch.SymInt, int)):
        return SymIntArgument(name=node.name)
    return TensorArgument(name=node.name)
