"""The pytree structure of a method's values, as a string in files."""

from __future__ import annotations

from typing import Any

from torch.utils import _pytree as pytree


def tree_spec_string(spec: Any) -> str:  # noqa: ANN401 - a TreeSpec of torch
    """Return a tree spec as a string; empty for None.

    Containers without a name in files, such as ``torch.return_types.topk`` or an unregistered named
    tuple, become plain tuples with the same values in the same order.
    """
    if spec is None:
        return ""
    try:
        return pytree.treespec_dumps(spec, 1)
    except (NotImplementedError, TypeError, AttributeError):
        return pytree.treespec_dumps(_nameable(spec), 1)


def _nameable(spec: Any) -> Any:  # noqa: ANN401
    if spec.is_leaf():
        return spec
    children = [_nameable(child) for child in spec.children()]
    if _has_name(spec):
        return pytree.TreeSpec(spec.type, spec.context, children)
    return pytree.TreeSpec(tuple, None, children)


def _has_name(spec: Any) -> bool:  # noqa: ANN401
    leaves: list[Any] = [pytree.treespec_leaf() for _ in spec.children()]
    try:
        pytree.treespec_dumps(pytree.TreeSpec(spec.type, spec.context, leaves), 1)
    except (NotImplementedError, TypeError, AttributeError):
        return False
    return True
