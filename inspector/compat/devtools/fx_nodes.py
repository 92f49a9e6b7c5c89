"""Properties of nodes of a live torch.fx graph, without importing torch or executorch."""

from __future__ import annotations

from typing import Any, cast

_LOWERED = "lowered_module_"
Fx = Any


def is_lowered(node: Fx) -> bool:
    """Return whether a node is the attribute that holds a lowered module."""
    return node.op == "get_attr" and node.name.startswith(_LOWERED)


def lowered_module(module: Fx, node: Fx) -> Fx:
    """Return the lowered module a node names.

    Raises: AttributeError if the graph module has none of that name
    """
    return getattr(module, node.name)


def lowered_graph(lowered: Fx) -> Fx:
    """Return the graph that was lowered to a module."""
    return lowered.original_module.graph


_PLANNERS = (".exir.memory", ".dialect.memory_ops")  # of the package, and ours


def is_memory(node: Fx, name: str) -> bool:
    """Return whether a node calls a function of the memory planner: alloc, view or free."""
    target = node.target
    own = getattr(target, "__name__", "") == name
    return own and str(getattr(target, "__module__", "")).endswith(_PLANNERS)


def innermost_module(node: Fx) -> str:
    """Return the path of the innermost module a node came from, empty when unknown."""
    stack = node.meta.get("nn_module_stack")
    return list(stack.values())[-1][0] if stack else ""


def tensor_specs(node: Fx) -> list[Fx]:
    """Return the memory plans of a node's results; none for results that are not tensors."""
    given: Fx = node.meta.get("spec")
    listed = isinstance(given, (list, tuple))
    specs: list[Fx] = list(cast("list[Fx]", given)) if listed else [given]
    return [spec for spec in specs if hasattr(spec, "mem_id") and hasattr(spec, "lifetime")]
