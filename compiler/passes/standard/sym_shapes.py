"""Sources of upper bounds of dynamic sizes, in the form of passes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from compiler.dialect.templates import tensors_in
from compiler.errors import UnboundedShapeError
from compiler.memory.tensor_spec import TensorSpec
from compiler.passes.base import PassBase, PassResult
from compiler.untyped import SYMBOLIC, expression_of, largest


class ConstraintBasedSymShapeEvalPass(PassBase):
    """Sizes that change have the upper bounds of the ranges they were exported with."""

    def call(self, graph_module: Any) -> Any:  # noqa: ANN401 - as documented
        """Write the bounds into the specs of a graph; memory planning reads the choice itself.

        Raises: UnboundedShapeError for a size without a bound
        """
        return PassResult(graph_module, _evaluate(graph_module, _bound))


class HintBasedSymShapeEvalPass(PassBase):
    """Upper bounds of dynamic sizes are those of the example inputs, instead of their ranges.

    Larger inputs do not fit into the program then.
    """

    def call(self, graph_module: Any) -> Any:  # noqa: ANN401 - as documented
        """Write the sizes into the specs of a graph; memory planning reads the choice itself.

        Raises: UnboundedShapeError for a size without an example and without a bound
        """
        return PassResult(graph_module, _evaluate(graph_module, _hint))


def _evaluate(owner: torch.fx.GraphModule, evaluate: Callable[[Any], int]) -> bool:
    """Evaluate the sizes of all specs and return whether any of them is dynamic."""
    changed = False
    for module in owner.modules():
        nodes = module.graph.nodes if isinstance(module, torch.fx.GraphModule) else ()
        for node in nodes:
            for spec, shape in _described(node):
                sizes = list(shape)  # comparing symbols would bind them
                if any(isinstance(size, SYMBOLIC) for size in sizes):
                    spec.resize([evaluate(size) for size in sizes])
                    changed = True
    return changed


def _described(node: torch.fx.Node) -> Iterable[tuple[TensorSpec, Iterable[Any]]]:
    """Return the specs of a node, each with the sizes of its tensor before any was evaluated."""
    given: list[Any] = pytree.tree_leaves(node.meta.get("spec"))
    specs = [leaf for leaf in given if isinstance(leaf, TensorSpec)]
    tensors = tensors_in(node.meta.get("val"))
    if len(specs) != len(tensors):
        return [(spec, spec.shape) for spec in specs]
    return [(spec, tensor.shape) for spec, tensor in zip(specs, tensors, strict=True)]


def _bound(size: Any) -> int:  # noqa: ANN401
    if not isinstance(size, SYMBOLIC):
        return size
    symbol: Any = size
    found = largest(expression_of(symbol), symbol.node.shape_env.var_to_range)
    if found is None:
        raise UnboundedShapeError(f"{symbol} has no maximum; set a max for its Dim")
    return found


def _hint(size: Any) -> int:  # noqa: ANN401
    if isinstance(size, SYMBOLIC) and size.node.has_hint():
        return int(size.node.hint)
    return _bound(size)
