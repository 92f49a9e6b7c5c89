"""Products with a table that is read otherwise too, as the output layer of a tied embedding.

A product reads the transposition of its weight, which constant folding would store beside the
table. A linear layer reads the table as it is.
"""

from __future__ import annotations

from collections.abc import Collection

import torch
from torch.export import ExportedProgram

from compiler.dialect.copies import ProgramDraft
from compiler.dialect.ops import edge_op
from compiler.passes.base import ExportedProgramPassBase, ExportedProgramPassResult
from compiler.passes.lineage import inherit
from compiler.passes.signature import constant_values, updated_signature
from compiler.passes.standard.quant_linear import is_transposition, operands_of
from compiler.untyped import aten

Node = torch.fx.Node
_LINEAR = edge_op(aten.linear.default)


class SharedWeightsPass(ExportedProgramPassBase):
    """Makes linear layers of products with weights that stay in the file as they are."""

    def call(self, exported_program: ExportedProgram) -> ExportedProgramPassResult:
        """Return a program that needs no transposition of such weights."""
        signature, values = exported_program.graph_signature, exported_program.constants
        weights = {*constant_values(signature, {**values, **exported_program.state_dict})}
        if not any(_is_shared(node, weights) for node in exported_program.graph.nodes):
            return ExportedProgramPassResult(exported_program, False)
        draft = ProgramDraft.of(exported_program)
        for node in [*draft.graph.nodes]:
            if _is_shared(node, weights):
                _read_directly(draft.graph, node)
        draft.signature = updated_signature(draft.signature, draft.graph, "shared_weights")
        return ExportedProgramPassResult(draft.built(exported_program), True)


def _is_shared(node: Node, weights: Collection[str]) -> bool:
    """Return whether a node transposes a weight for products, and others need it as it is."""
    if not is_transposition(node) or not node.users:
        return False
    (weight,) = node.all_input_nodes
    if weight.name not in weights or any(operands_of(user, node) is None for user in node.users):
        return False
    return any(len(user.all_input_nodes) > 1 for user in weight.users)


def _read_directly(graph: torch.fx.Graph, transposed: Node) -> None:
    (weight,) = transposed.all_input_nodes
    for user in [*transposed.users]:
        x, bias = operands_of(user, transposed) or (None, None)
        with graph.inserting_before(user):
            made = graph.call_function(_LINEAR, (x, weight) if bias is None else (x, weight, bias))
        inherit(made, user.meta)
        made.meta["val"] = user.meta["val"]
        user.replace_all_uses_with(made)
        graph.erase_node(user)
    graph.erase_node(transposed)
