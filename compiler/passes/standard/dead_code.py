"""Dead code elimination: unused nodes and unused weights."""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import ExportGraphSignature, InputKind

from compiler.dialect.copies import copied_program, rebuilt
from compiler.passes.base import (
    ExportedProgramPassBase,
    ExportedProgramPassResult,
    PassBase,
    PassResult,
)

_DATA = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


class DeadCodePass(PassBase):
    """Removes unused calls, also in bodies of control flow."""

    def call(self, graph_module: torch.fx.GraphModule) -> Any:  # noqa: ANN401
        """Change a graph module in place."""
        modified = False
        for module in graph_module.modules():
            if isinstance(module, torch.fx.GraphModule):
                modified = module.graph.eliminate_dead_code(is_impure_node=_is_fixed) or modified
        return PassResult(graph_module, modified)


class RemoveUnusedParametersPass(ExportedProgramPassBase):
    """Removes unused weights and constants with their data."""

    def call(self, exported_program: ExportedProgram) -> ExportedProgramPassResult:
        """Return a program with the weights it reads."""
        built = remove_unused_parameters_pass(exported_program)
        return ExportedProgramPassResult(built, built is not exported_program)


def remove_unused_parameters_pass(exported_program: ExportedProgram) -> ExportedProgram:
    """Return a program without weights that no node reads; the given one is not changed.

    Returns: the given program if all are read
    """
    if not _unused(exported_program):
        return exported_program
    return without_unused_weights(copied_program(exported_program))


def without_unused_weights(program: ExportedProgram) -> ExportedProgram:
    """Return a program without unused weights; its graph is changed."""
    unused = _unused(program)
    if not unused:
        return program
    signature = program.graph_signature
    gone = [spec for spec in signature.input_specs if spec.arg.name in unused]
    for node in list(program.graph.nodes):
        if node.name in unused:
            program.graph.erase_node(node)
    kept = [spec for spec in signature.input_specs if spec.arg.name not in unused]
    needed = {spec.target for spec in kept} | {spec.target for spec in signature.output_specs}
    targets = {spec.target for spec in gone} - needed
    return rebuilt(
        program,
        program.graph_module,
        program.graph,
        signature=ExportGraphSignature(kept, signature.output_specs),
        state_dict={n: value for n, value in program.state_dict.items() if n not in targets},
        constants={n: value for n, value in program.constants.items() if n not in targets},
    )


def _unused(program: ExportedProgram) -> set[str]:
    data = {s.arg.name for s in program.graph_signature.input_specs if s.kind in _DATA}
    return {
        node.name
        for node in program.graph.nodes
        if node.op == "placeholder" and node.name in data and not node.users
    }


def _is_fixed(node: torch.fx.Node) -> bool:
    return node.op in ("placeholder", "output")
