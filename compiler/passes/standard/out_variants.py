"""Rewrites a program to out variants, which write into memory allocated before."""

from __future__ import annotations

from typing import Any

import torch

from compiler.dialect import memory_ops as memory
from compiler.dialect.checked_variants import check_out_variants
from compiler.dialect.ops import EdgeOp
from compiler.dialect.out_variants import find_out_variant
from compiler.passes.base import PassBase, PassResult
from compiler.passes.lineage import inherit
from compiler.untyped import aten

Node = torch.fx.Node


class ToOutVarPass(PassBase):
    """Replaces each edge operator by its out variant and an allocation for each result.

    The file is emitted from the edge program itself; this form is for reading only.
    """

    def __init__(self, ignore_to_out_var_failure: bool = False) -> None:
        """Set whether operators without an out variant are an error.

        Args:
            ignore_to_out_var_failure: keep such an operator unchanged
        """
        self._ignore = ignore_to_out_var_failure

    def call(self, graph_module: torch.fx.GraphModule) -> Any:  # noqa: ANN401
        """Change a graph module in place.

        Raises: MissingOutVariantsError naming all operators without one
        """
        for module in graph_module.modules():
            if isinstance(module, torch.fx.GraphModule):
                if not self._ignore:
                    check_out_variants(module.graph.nodes)
                for node in list(module.graph.nodes):
                    _replace(module.graph, node)
                module.recompile()
        return PassResult(graph_module, True)


def _replace(graph: torch.fx.Graph, node: Node) -> None:
    if node.op != "call_function" or not isinstance(node.target, EdgeOp):
        return
    variant = find_out_variant(node.target.op)
    if variant is None:
        return
    if node.target.op is aten.view_copy.default:
        _as_view(node)
        return
    names = [argument.name for argument in node.target.op._schema.arguments]
    given = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
    value: Any = node.meta["val"]
    results: list[Any] = [value] if isinstance(value, torch.Tensor) else list(value)
    known = node.meta.get("spec")
    specs: list[Any] = [*known] if isinstance(known, (list, tuple)) else [known] * len(results)
    with graph.inserting_before(node):
        places = [
            None if result is None else _allocation(graph, node, result, spec)
            for result, spec in zip(results, specs, strict=True)
        ]
    outs = iter(places)
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for formal in variant.arguments:
        if formal.is_out:
            kwargs[formal.name] = places if "List" in formal.kind else next(outs)
        elif formal.name in given and formal.name in names[: len(node.args)]:
            args.append(given[formal.name])
        elif formal.name in given:
            kwargs[formal.name] = given[formal.name]
    node.target = variant.op
    node.args, node.kwargs = tuple(args), kwargs


def _allocation(graph: torch.fx.Graph, node: Node, value: Any, spec: Any) -> Node:  # noqa: ANN401
    shape = tuple(value.shape) if spec is None else tuple(spec.shape)
    dtype = value.dtype
    new = graph.call_function(memory.alloc, ((shape, dtype),))
    inherit(new, node.meta)
    new.meta["val"] = value
    if spec is not None:  # the call returns its argument
        new.meta["spec"] = spec
    return new


def _as_view(node: Node) -> None:
    node.target = memory.view
