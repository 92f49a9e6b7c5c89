"""Helpers of `executorch.exir.sym_util`: symbolic sizes as integers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from compiler.errors import UnboundedShapeError
from compiler.untyped import expression_of, largest

Size = int | torch.SymInt


def eval_expr(symint: Size) -> int | None:
    """Return the size that a program was exported with, None if it depends on data."""
    if isinstance(symint, int):
        return symint
    size: Any = symint
    node = size.node
    return int(node.hint) if node.has_hint() else None


def eval_upper_bound(maybe_symint: Size) -> int:
    """Return the largest value of a size, or the size of the example if it is unbounded.

    Raises: UnboundedShapeError if neither is known
    """
    if isinstance(maybe_symint, int):
        return maybe_symint
    size: Any = maybe_symint
    expression = expression_of(size)
    bound = largest(expression, size.node.shape_env.var_to_range)
    found = eval_expr(maybe_symint) if bound is None else bound
    if found is None:
        raise UnboundedShapeError(f"{expression} has no maximum; set a max for its Dim")
    return found


def eval_shape(shape: Iterable[Size]) -> list[int | None]:
    """Return the sizes that a program was exported with, None for those that depend on data."""
    return [eval_expr(size) for size in shape]


def eval_shape_upper_bound(shape: Iterable[Size]) -> list[int]:
    """Return the largest value of each size.

    Raises: UnboundedShapeError for a size without a bound and without an example
    """
    return [eval_upper_bound(size) for size in shape]


def collect_free_symbols(shape: Iterable[Size]) -> set[Any]:
    """Return the symbols of sizes."""
    return {
        symbol
        for size in shape
        if isinstance(size, torch.SymInt)
        for symbol in expression_of(size).free_symbols
    }
