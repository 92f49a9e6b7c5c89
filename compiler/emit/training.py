"""Programs with a backward pass: trainable weights, and the methods that list them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ExportGraphSignature,
    OutputKind,
    OutputSpec,
    TensorArgument,
)

from compiler.dialect.copies import copied_graph, copied_root, rebuilt
from compiler.dialect.outputs import GRADIENT, TRAINED, is_user_output

_PREFIX = "__et_training_"


def with_trained_weights(program: ExportedProgram) -> ExportedProgram:
    """Return a program with the weights it has gradients of as further outputs, in that order.

    A program without gradients is returned as it is.
    """
    signature = program.graph_signature
    learned = [spec.target for spec in signature.output_specs if spec.kind == GRADIENT]
    if not learned:
        return program
    inputs = {spec.target: spec.arg.name for spec in signature.input_specs}
    names = [inputs[target] for target in learned]
    root, graph = copied_root(program.graph_module), copied_graph(program.graph)
    nodes = {node.name: node for node in graph.nodes}
    last = graph.output_node()
    given: Any = last.args[0]
    last.args = ((*given, *(nodes[name] for name in names)),)
    plain = OutputKind.USER_OUTPUT
    reported = [OutputSpec(spec.kind, spec.arg, spec.target) for spec in signature.output_specs]
    weights = [OutputSpec(TRAINED, TensorArgument(name=name), None) for name in names]
    kinds = [spec.kind for spec in (*reported, *weights)]
    for spec in (*reported, *weights):  # torch would refuse these kinds in this order
        spec.kind = plain if is_user_output(spec) else spec.kind
    whole = ExportGraphSignature(signature.input_specs, [*reported, *weights])
    built = rebuilt(program, root, graph, signature=whole)
    for spec, kind in zip((*reported, *weights), kinds, strict=True):
        spec.kind = kind
    return built


def training_methods(programs: Mapping[str, ExportedProgram]) -> dict[str, Any]:
    """Return the constant methods of trainable methods, by name.

    These return the output index of the first gradient and of the first weight, and the
    names of the weights.
    """
    found: dict[str, Any] = {}
    for name in sorted(programs):
        given = programs[name].graph_signature.output_specs
        specs = [s for s in given if is_user_output(s) and s.kind != TRAINED]
        learned = [place for place, spec in enumerate(specs) if spec.kind == GRADIENT]
        if learned:
            found[f"{_PREFIX}gradients_index_{name}"] = learned[0]
            found[f"{_PREFIX}parameters_index_{name}"] = len(specs)
            found[f"{_PREFIX}fqn_{name}"] = [specs[place].target for place in learned]
    return found
