"""Whether an instruction moves the elements that a node does, by its constant arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from inspector.numerics.flat_graph import FlatNode
from schema.program import model as m

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


def _integers(plan: m.ExecutionPlan, args: Sequence[int], place: int) -> list[int]:
    """Return the integers of an argument of a kernel call, none if they are not constant."""
    index = args[place] if place < len(args) else -1
    value = plan.values[index].val if 0 <= index < len(plan.values) else None
    items = value.items if isinstance(value, m.IntList) else ()
    ints = [value] if isinstance(value, m.Int) else [plan.values[one].val for one in items]
    found = [one.int_val for one in ints if isinstance(one, m.Int)]
    return found if len(found) == len(ints) else []
