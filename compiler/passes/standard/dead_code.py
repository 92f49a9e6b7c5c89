"""Dead code elimination: unused nodes and unused weights."""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import ExportGraphSignature, InputKind

from compiler.dialect.copies import ProgramDraft
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
    if not _unused(exported_program.graph, exported_program.graph_signature):
        return exported_program
    draft = ProgramDraft.of(exported_program)
    drop_unused_weights(draft)
    return draft.built(exported_program)


def drop_unused_weights(draft: ProgramDraft) -> None:
    """Remove the weights and constants that no node of a draft reads or writes, with their data."""
    unused = _unused(draft.graph, draft.signature)
    if not unused:
        return
    inputs, outputs = draft.signature.input_specs, draft.signature.output_specs
    for node in list(draft.graph.nodes):
        if node.name in unused:
            draft.graph.erase_node(node)
    kept = [spec for spec in inputs if spec.arg.name not in unused]
    needed = {spec.target for spec in (*kept, *outputs)}
    gone = {spec.target for spec in inputs if spec.arg.name in unused} - needed
    draft.signature = ExportGraphSignature(kept, outputs)
    for data in (draft.state_dict, draft.constants):
        for name in gone & data.keys():
            del data[name]


def _unused(graph: torch.fx.Graph, signature: ExportGraphSignature) -> set[str]:
    written = {spec.target for spec in signature.output_specs if spec.target is not None}
    data = {
        spec.arg.name
        for spec in signature.input_specs
        if spec.kind in _DATA and spec.target not in written
    }
    return {
        node.name
        for node in graph.nodes
        if node.op == "placeholder" and node.name in data and not node.users
    }


def _is_fixed(node: torch.fx.Node) -> bool:
    return node.op in ("placeholder", "output")
