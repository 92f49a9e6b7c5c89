"""Calls without a schema: lowered modules (kept), control flow, and mutating operators."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.utils import _pytree as pytree

from compiler.dialect.delegate_call import executorch_call_delegate
from compiler.dialect.dim_order import TO_DIM_ORDER_COPY
from compiler.dialect.mutating_ops import is_write
from compiler.dialect.ops import edge_op
from compiler.edge.control_flow import lower_control_flow
from compiler.edge.graph_lowering import GraphLowering
from compiler.edge.write_lowering import lower_write
from compiler.errors import UnsupportedError


def lower_call(outer: GraphLowering, node: torch.fx.Node, args: Any) -> Any:  # noqa: ANN401
    """Create a call of a lowered module, of control flow, or of a mutating operator.

    Returns: the replacement of its results
    Raises: UnsupportedError for any other call
    """
    if is_write(node):
        return lower_write(outer, node)
    if node.target is not executorch_call_delegate:
        return lower_control_flow(outer, node, args)
    module = args[0]
    name = _name_of(outer, module)
    given = [_in_layout_of(outer, outer.node_of(leaf), want) for leaf, want in _pairs(module, args)]
    _check_flat(module, node.meta["val"])
    home = outer.graph.create_node("get_attr", name, name=name)
    # Backends read the handle of every node that is neither an input nor the output.
    home.meta["debug_handle"] = outer.current["debug_handle"]
    call = outer.call(node.target, (home, *given), {}, node.meta["val"])
    call.meta["composed"] = True
    if isinstance(node.meta["val"], torch.Tensor):
        return call
    return tuple(_taken(outer, call, place) for place, _ in enumerate(node.meta["val"]))


def _check_flat(module: Any, results: Any) -> None:  # noqa: ANN401
    form = pytree.tree_structure(results)
    if form.type is dict or not all(one.is_leaf() for one in form.children()):
        raise UnsupportedError(
            f"a module lowered to {module.backend_id} and called inside another returns a"
            " dictionary or nested containers; return a tensor, or one flat list or tuple of them"
        )


def _taken(outer: GraphLowering, call: torch.fx.Node, place: int) -> torch.fx.Node:
    return outer.call(operator.getitem, (call, place), {}, call.meta["val"][place])


def _name_of(outer: GraphLowering, module: Any) -> str:  # noqa: ANN401
    bodies: dict[str, Any] = outer.bodies
    for name, body in bodies.items():
        if body is module:
            return name
    name = f"lowered_module_{sum(n.startswith('lowered_module_') for n in bodies)}"
    bodies[name] = module
    return name


def _pairs(module: Any, args: Any) -> list[tuple[Any, Any]]:  # noqa: ANN401
    program = module.original_module
    values = {node.name: node.meta.get("val") for node in program.graph.nodes}
    requested = [values.get(name) for name in program.graph_signature.user_inputs]
    return list(zip(pytree.tree_leaves(list(args[1:])), requested, strict=True))


def _in_layout_of(outer: GraphLowering, node: Any, requested: Any) -> Any:  # noqa: ANN401
    """Return an input in the layout the module was lowered for."""
    if not isinstance(node, torch.fx.Node) or not isinstance(requested, torch.Tensor):
        return node
    value = node.meta["val"]
    if value.is_contiguous() or not requested.is_contiguous():
        return node
    order = {"dim_order": [*range(value.dim())]}
    return outer.call(edge_op(TO_DIM_ORDER_COPY), (node,), order, outer.plain(value))
