"""Writes into each node what a program file will say about its tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.export import ExportedProgram

from compiler.edge.templates import walk
from compiler.errors import CompileError, at
from compiler.memory.specs import spec_of
from compiler.memory.tensor_spec import TensorSpec
from compiler.passes.base import ExportedProgramPassBase, ExportedProgramPassResult
from compiler.untyped import ranges_of


class SpecPropPass(ExportedProgramPassBase):
    """Sets ``spec`` in the metadata of every node: type, upper bounds, dim order and dynamism."""

    def call(self, exported_program: ExportedProgram) -> ExportedProgramPassResult:
        """Change the metadata of a program.

        Raises: CompileError naming a node whose tensor no file can describe
        """
        ranges = ranges_of(exported_program)
        for module in exported_program.graph_module.modules():
            if isinstance(module, torch.fx.GraphModule):
                for node in module.graph.nodes:
                    _describe(node, ranges)
        _mark_constants(exported_program)
        return ExportedProgramPassResult(exported_program, True)


def _spec(tensor: torch.Tensor, ranges: Mapping[Any, Any]) -> TensorSpec:
    known = spec_of(tensor, ranges)
    made = TensorSpec(tensor.dtype, known.sizes)
    made.dim_order, made.shape_dynamism = known.dim_order, known.dynamism
    return made


def _describe(node: torch.fx.Node, ranges: Mapping[Any, Any]) -> None:
    def spec(leaf: Any) -> Any:  # noqa: ANN401
        if isinstance(leaf, torch.fx.Node):
            return leaf.meta.get("spec")
        if isinstance(leaf, torch.Tensor):
            return _spec(leaf, ranges)
        return leaf if isinstance(leaf, (bool, int, float)) else None

    value: Any = node.args[0] if node.op == "output" else node.meta.get("val")
    try:
        node.meta["spec"] = walk(spec, value)
    except CompileError as error:
        raise type(error)(f"{error}: {at(node)}") from error


def _mark_constants(program: ExportedProgram) -> None:
    signature = program.graph_signature
    written = {spec.target for spec in signature.output_specs}
    data = {s.arg.name for s in signature.input_specs if s.target and s.target not in written}
    for node in program.graph.nodes:
        if node.op == "placeholder" and node.name in data:
            node.meta["spec"].const = True
