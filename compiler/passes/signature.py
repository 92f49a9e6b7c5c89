"""The signature of a program after a pass: inputs and results by their new names."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, cast

import torch
from torch.export.graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputSpec,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
    TensorArgument,
)

from compiler.passes.base import PassError

Node = torch.fx.Node
_DATA = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)
_SYMBOLIC: dict[type[Any], type[Any]] = {
    torch.SymInt: SymIntArgument,
    torch.SymFloat: SymFloatArgument,
    torch.SymBool: SymBoolArgument,
}


def argument_of(value: Any) -> Any:  # noqa: ANN401
    """Return the name of a value in a signature."""
    if not isinstance(value, Node):
        return ConstantArgument(name="", value=value)
    symbolic = [
        kind for known, kind in _SYMBOLIC.items() if isinstance(value.meta.get("val"), known)
    ]
    return (symbolic[0] if symbolic else TensorArgument)(name=value.name)


def constant_values(
    signature: ExportGraphSignature, held: Mapping[str, Any]
) -> dict[str, torch.Tensor]:
    """Return the tensors of weights and constants that are never written, by placeholder."""
    written = {spec.target for spec in signature.output_specs}
    return {
        spec.arg.name: held[spec.target or ""]
        for spec in signature.input_specs
        if spec.kind in _DATA and spec.target not in written
        if isinstance(held.get(spec.target or ""), torch.Tensor)
    }


def updated_signature(
    signature: ExportGraphSignature, graph: torch.fx.Graph, name: str
) -> ExportGraphSignature:
    """Return the signature of a transformed graph; the given one is not changed.

    Weights whose placeholder was removed are dropped.

    Raises: PassError if the pass changed the user's inputs or the number of results
    """
    return ExportGraphSignature(_inputs(signature, graph, name), _outputs(signature, graph, name))


def _inputs(signature: ExportGraphSignature, graph: torch.fx.Graph, name: str) -> list[InputSpec]:
    nodes = [node for node in graph.nodes if node.op == "placeholder"]
    specs = signature.input_specs
    by_name = {spec.arg.name: spec for spec in specs}
    unknown = [node.name for node in nodes if node.name not in by_name]
    if unknown and len(nodes) == len(specs):  # renamed
        return [_input(spec, node) for spec, node in zip(specs, nodes, strict=True)]
    if unknown:
        raise PassError(
            name,
            f"the pass {name} added the placeholders {', '.join(unknown)}, which have no input",
        )
    names = {node.name for node in nodes}
    for spec in specs:
        if spec.kind == InputKind.USER_INPUT and spec.arg.name not in names:
            raise PassError(name, f"the pass {name} removed the user's input {spec.arg.name}")
    return [_input(by_name[node.name], node) for node in nodes]


def _input(spec: InputSpec, node: Node) -> InputSpec:
    if spec.arg.name == node.name:
        return spec
    built = copy.copy(spec)
    built.arg = copy.copy(spec.arg)
    built.arg.name = node.name
    return built


def _outputs(signature: ExportGraphSignature, graph: torch.fx.Graph, name: str) -> list[OutputSpec]:
    last = next(iter(reversed(list(graph.nodes))))
    if last.op != "output":
        raise PassError(name, f"the pass {name} produced a graph without an output")
    results: Any = last.args[0]
    specs = signature.output_specs
    if not isinstance(results, (list, tuple)) or len(cast("Any", results)) != len(specs):
        raise PassError(
            name, f"the pass {name} produced results {results}, the program has {len(specs)}"
        )
    values: list[Any] = [*cast("Any", results)]
    pairs = zip(specs, values, strict=True)
    return [OutputSpec(spec.kind, argument_of(value), spec.target) for spec, value in pairs]
