"""Whether an instruction moves the elements that a node does, by its constant arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from inspector.numerics.flat_graph import FlatNode
from schema.program import model as m
from schema.program import operator_name

# Arguments that say which elements an operator moves, at their places in its schema.
_MOVED_BY: Mapping[str, tuple[str, ...]] = {
    "aten::slice_copy": ("self", "dim", "start", "end", "step"),
    "aten::select_copy": ("self", "dim", "index"),
    "aten::permute_copy": ("self", "dims"),
    "aten::transpose_copy": ("self", "dim0", "dim1"),
}


def moves_alike(plan: m.ExecutionPlan, call: m.KernelCall, node: FlatNode) -> bool:
    """Return whether the indices of moved elements do not contradict a node."""
    names = _MOVED_BY.get(node.operator, ())
    for argument in node.node.args:
        if argument.values or argument.name not in names:
            continue
        found = _integers(plan, call.args, names.index(argument.name))
        requested = argument.literal
        requested = [requested] if isinstance(requested, int) else requested
        if found and isinstance(requested, (list, tuple)) and [*cast("Any", requested)] != found:
            return False
    return True


def moved_dims(plan: m.ExecutionPlan, call: m.KernelCall, rank: int) -> list[int]:
    """Return the order of dimensions that a permutation or transposition makes.

    Empty if its arguments are not constant, or do not permute that many dimensions.
    """
    if "transpose" in operator_name(plan, call):
        swapped = [*_integers(plan, call.args, 1), *_integers(plan, call.args, 2)]
        return _swapped(swapped, rank)
    return _in_order(_integers(plan, call.args, 1), rank)


def recorded_dims(node: FlatNode, rank: int) -> list[int]:
    """Return the order of dimensions that a recorded permutation or transposition makes."""
    given = {one.name: one.literal for one in node.node.args}
    if "transpose" in node.operator:
        pair = [given.get("dim0"), given.get("dim1")]
        return _swapped([one for one in pair if isinstance(one, int)], rank)
    found = given.get("dims")
    dims: Sequence[Any] = cast("Any", found) if isinstance(found, (list, tuple)) else ()
    return _in_order([one for one in dims if isinstance(one, int)], rank)


def _swapped(pair: Sequence[int], rank: int) -> list[int]:
    if len(pair) != 2 or not all(-rank <= dim < rank for dim in pair):
        return []
    dims = list(range(rank))
    dims[pair[0]], dims[pair[1]] = dims[pair[1]], dims[pair[0]]
    return dims


def _in_order(found: Sequence[int], rank: int) -> list[int]:
    dims = [dim % rank for dim in found] if rank else []
    return dims if sorted(dims) == list(range(rank)) else []


def _integers(plan: m.ExecutionPlan, args: Sequence[int], place: int) -> list[int]:
    """Return the integers of an argument of a kernel call, none if they are not constant."""
    index = args[place] if place < len(args) else -1
    value = plan.values[index].val if 0 <= index < len(plan.values) else None
    items = value.items if isinstance(value, m.IntList) else ()
    ints = [value] if isinstance(value, m.Int) else [plan.values[one].val for one in items]
    found = [one.int_val for one in ints if isinstance(one, m.Int)]
    return found if len(found) == len(ints) else []
