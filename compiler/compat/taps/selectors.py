"""Which nodes of an exported program are tapped."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable
from typing import Any, cast

import torch

Node = torch.fx.Node
NodeSelector = Callable[[Node], bool]


def select_all_call_function(exclude: tuple[str, ...] = ("getitem",)) -> NodeSelector:
    """Select every call but those of operators or functions with an excluded name."""

    def chosen(node: Node) -> bool:
        names = {getattr(node.target, "__name__", ""), str(node.target)}
        return node.op == "call_function" and names.isdisjoint(exclude)

    return chosen


def select_by_op_type(*op_targets: str) -> NodeSelector:
    """Select calls of operators whose name has one of these suffixes, as ``aten.linear.default``.

    Raises: ValueError without a name
    """
    if not op_targets:
        raise ValueError("select_by_op_type needs at least one operator name")
    return lambda node: node.op == "call_function" and str(node.target).endswith(op_targets)


def select_by_module_path(*patterns: str, output_only: bool = True) -> NodeSelector:
    """Select nodes inside modules by shell patterns of their path, as ``layers.*``.

    Args:
        patterns: of paths
        output_only: only nodes whose value leaves the module

    Raises: ValueError without a pattern
    """
    if not patterns:
        raise ValueError("select_by_module_path needs at least one pattern")
    return _by_module(
        lambda path, _: any(fnmatch.fnmatchcase(path, one) for one in patterns), output_only
    )


def select_by_module_class(*class_names: str, output_only: bool = True) -> NodeSelector:
    """Select nodes inside modules of a class, by its name without the package.

    Args:
        class_names: as ``Linear``
        output_only: only nodes whose value leaves the module

    Raises: ValueError without a name
    """
    if not class_names:
        raise ValueError("select_by_module_class needs at least one class name")
    return _by_module(lambda _, name: name in class_names, output_only)


def _by_module(fits: Callable[[str, str], bool], output_only: bool) -> NodeSelector:
    def around(node: Node) -> set[str]:
        return {key for key, path, name in module_stack(node) if fits(path, name)}

    def chosen(node: Node) -> bool:
        inside = around(node)
        if not inside or not output_only:
            return bool(inside)
        return all(inside.isdisjoint(around(user)) for user in node.users)

    return chosen


def module_stack(node: Node) -> list[tuple[str, str, str]]:
    """Return (key, path, class name) of the modules around a node, outermost first."""
    found: list[tuple[str, str, str]] = []
    stack: dict[str, Any] = node.meta.get("nn_module_stack") or {}
    for key, entry in stack.items():
        parts = cast("tuple[Any, Any]", entry if isinstance(entry, tuple) else (entry, ""))
        name: str = parts[1] if isinstance(parts[1], str) else parts[1].__name__
        found.append((str(key), str(parts[0]), name.rpartition(".")[2]))
    return found


def select_any(*selectors: NodeSelector) -> NodeSelector:
    """Select nodes that any of these selects."""
    return lambda node: any(one(node) for one in selectors)


def select_all(*selectors: NodeSelector) -> NodeSelector:
    """Select nodes that all of these select."""
    return lambda node: all(one(node) for one in selectors)


def select_not(selector: NodeSelector) -> NodeSelector:
    """Select nodes that this does not select."""
    return lambda node: not selector(node)
