"""Functionalization of in-place edge operators that passes of users insert."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)

from compiler.dialect.copies import copied_graph, copied_root, rebuilt
from compiler.dialect.memory_ops import IN_PLACE_OF
from compiler.dialect.ops import EdgeOp, edge_op
from compiler.errors import UnsupportedError, at
from compiler.passes.signature import argument_of

Node = torch.fx.Node
_WRITTEN = {
    InputKind.BUFFER: OutputKind.BUFFER_MUTATION,
    InputKind.USER_INPUT: OutputKind.USER_INPUT_MUTATION,
}


def has_writes(program: ExportedProgram) -> bool:
    """Return whether a program has operators that write in place."""
    return any(functional_of(node) is not None for node in program.graph.nodes)


def without_writes(program: ExportedProgram, verifiers: list[Any] | None = None) -> ExportedProgram:
    """Return a program in which operators such as `index_put_` are functional.

    Later readers of the argument read the result, which is marked to reuse its memory; for a
    buffer or a user input it is written back. A program without such operators is returned
    unchanged, and the given one is never modified.

    Args:
        program: with the values of all nodes
        verifiers: of the result; None for those of the program

    Raises: UnsupportedError for an operator that writes into a weight or a constant
    """
    if not has_writes(program):
        return program
    root, graph = copied_root(program.graph_module), copied_graph(program.graph)
    signature = program.graph_signature
    specs = {spec.arg.name: spec for spec in signature.input_specs}
    outputs = [*signature.output_specs]
    last: Any = graph.output_node()
    for node in [one for one in graph.nodes if functional_of(one) is not None]:
        base = node.args[0]
        _return_what_is_written(node, base)
        spec = specs.get(base.name) if base.op == "placeholder" else None
        if spec is not None:
            built = _write_back(spec, node, outputs)
            if built is not None:
                outputs.insert(0, built)
                last.args = ((node, *last.args[0]),)
    values: Any = last.args[0]
    pairs = zip(outputs, values, strict=True)
    outputs = [OutputSpec(spec.kind, argument_of(value), spec.target) for spec, value in pairs]
    whole = ExportGraphSignature([*signature.input_specs], outputs)
    return rebuilt(program, root, graph, signature=whole, verifiers=verifiers)


def _return_what_is_written(node: Node, base: Node) -> None:
    before = {base}
    for one in node.graph.nodes:
        before.add(one)
        if one is node:
            break
    base.replace_all_uses_with(node, delete_user_cb=lambda user: user not in before)
    node.target = edge_op(functional_of(node))
    node.meta[IN_PLACE_OF] = 0


def _write_back(spec: InputSpec, node: Node, outputs: Sequence[OutputSpec]) -> OutputSpec | None:
    """Return the result that an input is written by, None if the program already has one."""
    target = spec.target or spec.arg.name
    if any(one.target == target and one.kind in _WRITTEN.values() for one in outputs):
        return None
    if spec.kind not in _WRITTEN:
        raise UnsupportedError(f"{node.name} writes into a weight or constant: {at(node)}")
    return OutputSpec(_WRITTEN[spec.kind], TensorArgument(name=node.name), target)


def functional_of(node: Node) -> Any:  # noqa: ANN401 - an operator overload of torch
    """Return the functional variant of an in-place node, None if it is not in place."""
    target = node.target
    if node.op != "call_function" or not isinstance(target, EdgeOp):
        return None
    schema = target.op._schema
    namespace, name = str(schema.name).split("::")
    first = schema.arguments[0] if schema.arguments else None
    written = first is not None and first.alias_info is not None and first.alias_info.is_write
    if not written or not name.endswith("_") or name.endswith("__"):
        return None
    packet = getattr(getattr(torch.ops, namespace), name[:-1], None)
    return getattr(packet, target.op._overloadname, None)
