"""Adds the TensorSpecs of program files to the metadata of each node."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import torch
from torch.export import ExportedProgram

from compiler.dialect.templates import tensors_in, walk
from compiler.errors import CompileError, at
from compiler.memory.specs import is_static, spec_of
from compiler.memory.tensor_spec import TensorSpec
from compiler.passes.base import ExportedProgramPassBase, ExportedProgramPassResult, PassResult
from compiler.untyped import expression_of, largest, ranges_of


class SpecPropPass(ExportedProgramPassBase):
    """Sets ``spec`` in the metadata of every node: type, upper bounds, dim order and dynamism."""

    def __call__(self, given: ExportedProgram | torch.fx.GraphModule) -> Any:  # noqa: ANN401
        """Change the metadata of a program or of a graph module.

        Raises: CompileError naming a node whose tensor no file can describe
        """
        if isinstance(given, ExportedProgram):
            return super().__call__(given)
        ranges = _ranges_of_values(given)
        _describe_all(given, ranges)
        return PassResult(given, True)

    def call(self, exported_program: ExportedProgram) -> ExportedProgramPassResult:
        """Change the metadata of a program.

        Raises: CompileError naming a node whose tensor no file can describe
        """
        _describe_all(exported_program.graph_module, ranges_of(exported_program))
        self.update_placeholder_tensor_specs(exported_program, exported_program.graph_module)
        return ExportedProgramPassResult(exported_program, True)

    def update_placeholder_tensor_specs(
        self, exported_program: ExportedProgram, graph_module: torch.fx.GraphModule
    ) -> None:
        """Mark the specs of weights and constants that are never written."""
        signature = exported_program.graph_signature
        written = {spec.target for spec in signature.output_specs}
        data = {s.arg.name for s in signature.input_specs if s.target and s.target not in written}
        for node in graph_module.graph.nodes:
            if node.op == "placeholder" and node.name in data:
                node.meta["spec"].const = True


def _describe_all(owner: torch.fx.GraphModule, ranges: Mapping[Any, Any]) -> None:
    for module in owner.modules():
        if isinstance(module, torch.fx.GraphModule):
            for node in module.graph.nodes:
                _describe(node, ranges)


def _ranges_of_values(module: torch.fx.GraphModule) -> dict[Any, Any]:
    """Return the ranges of symbols, as recorded in the sizes of values."""
    found: dict[Any, Any] = {}
    for node in module.graph.nodes:
        for tensor in tensors_in(node.meta.get("val")):
            sizes: Any = tensor.shape
            for size in sizes:
                if not isinstance(size, int):
                    return dict(size.node.shape_env.var_to_range)
    return found


def _spec(tensor: torch.Tensor, ranges: Mapping[Any, Any]) -> TensorSpec:
    if not is_static(tensor) and any(largest(n, ranges) is None for n in _symbols(tensor)):
        return TensorSpec.from_tensor(tensor)  # a later pass may bound it
    known = spec_of(tensor, ranges)
    built = TensorSpec(tensor.dtype, known.sizes)
    built.dim_order, built.shape_dynamism = known.dim_order, known.dynamism
    return built


def _symbols(tensor: torch.Tensor) -> list[Any]:
    sizes: Any = tensor.shape
    return [expression_of(size) for size in sizes if not isinstance(size, int)]


def _of_source(node: torch.fx.Node) -> Any:  # noqa: ANN401
    source, place = node.args
    assert isinstance(source, torch.fx.Node)
    assert isinstance(place, int)
    return source.meta["spec"][place]


def _describe(node: torch.fx.Node, ranges: Mapping[Any, Any]) -> None:
    def spec(leaf: Any) -> Any:  # noqa: ANN401
        if isinstance(leaf, torch.fx.Node):
            return leaf.meta.get("spec")
        if isinstance(leaf, torch.Tensor):
            return _spec(leaf, ranges)
        return leaf if isinstance(leaf, (bool, int, float)) else None

    if node.target is operator.getitem:
        node.meta["spec"] = _of_source(node)
        return
    value: Any = node.args[0] if node.op == "output" else node.meta.get("val")
    try:
        node.meta["spec"] = walk(spec, value)
    except CompileError as error:
        raise type(error)(f"{error}: {at(node)}") from error
