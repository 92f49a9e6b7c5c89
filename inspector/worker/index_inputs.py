"""Inputs of a method that are rows of a table or positions in a cache, and their valid values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from runtime.memory.slots import dtype_of
from schema.program import model as m

_TABLE_AND_INDICES: Mapping[str, tuple[int, int]] = {
    "aten::embedding": (0, 1),
    "quantized_decomposed::embedding_": (0, 5),
}
"""Operators that read rows: arguments of the table and of the indices."""
_ALONG_DIM: Mapping[str, int] = {
    "aten::gather": 2,
    "aten::index_select": 2,
    "aten::scatter": 2,
}
"""Operators whose second argument is a dimension of the first one: argument of the indices."""
_BY_LIST = ("aten::index.Tensor_out", "aten::index_put")
"""Operators with a list of indices, one tensor for each dimension."""
_POSITIONS: Mapping[str, tuple[int, ...]] = {
    "aten::narrow_copy": (2,),
    "aten::select_copy": (2,),
    "aten::select_scatter": (3,),
    "aten::slice_copy": (2, 3),
    "aten::slice_scatter": (3, 4),
    "llama::custom_quantized_sdpa": (3,),
    "llama::custom_sdpa": (3,),
    "llama::sdpa_with_kv_cache": (5,),
    "llama::update_cache": (2,),
}
"""Operators with scalars that are positions in a tensor: their arguments."""
_UNCHANGED = (
    *(f"aten::{name}_copy" for name in ("alias", "detach", "expand", "permute", "select", "slice")),
    *(f"aten::{name}_copy" for name in ("squeeze", "t", "transpose", "unsqueeze", "view")),
    *("aten::clone", "aten::_to_copy", "dim_order_ops::", "executorch_prim::et_view"),
)
"""Operators whose result has the values of their first argument."""
_OF_SIZES = ("aten::sym_size", "aten::sym_numel", "aten::full_like")
"""Operators whose result depends on the sizes of their argument alone."""


@dataclass(slots=True)
class _Sources:
    """Inputs that a value comes from: those whose values it has, and those it is computed from."""

    same: set[int] = field(default_factory=set[int])
    computed: set[int] = field(default_factory=set[int])


def index_limits(plan: m.ExecutionPlan) -> dict[int, int]:
    """Return the number of valid values, counted from 0, of each input that is used as an index.

    It is 1 where the program computes the index from the input: the first position is valid for
    every length of the other inputs.

    Args:
        plan: the method
    """
    sources = {index: _Sources(same={index}) for index in plan.inputs}
    for index, origin in _views(plan):
        sources[index] = sources[origin]
    limits: dict[int, int] = {}
    for name, args in _calls(plan):
        for index, rows in _indices(plan, name, args):
            found = sources.get(index, _Sources())
            for origin in found.same:
                limits[origin] = max(1, min(rows, limits.get(origin, rows)))
            limits.update(dict.fromkeys(found.computed, 1))
        _follow(plan, name, args, sources)
    return limits


def _views(plan: m.ExecutionPlan) -> Iterator[tuple[int, int]]:
    """Yield values over the memory of an input that no instruction writes, with the input."""
    written = {args[-1] for _, args in _calls(plan) if args}
    inputs = {_memory(plan, index): index for index in plan.inputs}
    inputs.pop(None, None)
    for index in range(len(plan.values)):
        origin = inputs.get(_memory(plan, index))
        if origin is not None and index not in written and index not in plan.inputs:
            yield index, origin


def _memory(plan: m.ExecutionPlan, index: int) -> tuple[int, ...] | None:
    """Return planned memory and dtype of a value, None for one without."""
    value = plan.values[index].val
    place = value.allocation_info if isinstance(value, m.Tensor) else None
    if place is None or not isinstance(value, m.Tensor):
        return None
    return place.memory_id, place.offset, value.scalar_type


def _calls(plan: m.ExecutionPlan) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the operator and the values of each call of a kernel, of those that can be bound."""
    every = range(len(plan.values))
    for chain in plan.chains:
        for instruction in chain.instructions:
            call = instruction.instr_args
            if not isinstance(call, m.KernelCall) or not 0 <= call.op_index < len(plan.operators):
                continue
            if all(index in every for index in call.args):
                yield plan.operators[call.op_index].full_name, tuple(call.args)


def _follow(
    plan: m.ExecutionPlan, name: str, args: Sequence[int], sources: dict[int, _Sources]
) -> None:
    """Note which inputs the result of a call comes from."""
    if not args:
        return
    given = [sources[index] for index in _flat(plan, args[:-1]) if index in sources]
    first = sources.get(args[0])
    if name.startswith(_UNCHANGED) and first is not None:
        sources[args[-1]] = first
    elif given and not name.startswith(_OF_SIZES) and _is_integral(plan, args[-1]):
        every = set[int]().union(*(one.same | one.computed for one in given))
        sources[args[-1]] = _Sources(computed=every)


def _is_integral(plan: m.ExecutionPlan, index: int) -> bool:
    """Return whether a value can be an index; booleans are masks."""
    value = plan.values[index].val
    if not isinstance(value, m.Tensor):
        return isinstance(value, m.Int)
    dtype = dtype_of(value.scalar_type)
    return not (dtype.is_floating_point or dtype.is_complex) and dtype.itemsize > 1


def _flat(plan: m.ExecutionPlan, indices: Iterable[int]) -> Iterator[int]:
    for index in indices:
        value = plan.values[index].val
        if isinstance(value, m.IntList | m.TensorList | m.OptionalTensorList):
            yield from value.items
        else:
            yield index


def _indices(plan: m.ExecutionPlan, name: str, args: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the values that a call uses as indices, each with the number of valid ones."""
    for start, (table, indices) in _TABLE_AND_INDICES.items():
        if name.startswith(start) and len(args) > indices:
            yield args[indices], _size(plan, args[table], 0)
    for start, indices in _ALONG_DIM.items():
        if name.startswith(start) and len(args) > indices:
            dim = plan.values[args[1]].val
            yield args[indices], _size(plan, args[0], dim.int_val if isinstance(dim, m.Int) else 0)
    for start, places in _POSITIONS.items():
        if name.startswith(start):
            yield from ((args[place], 1) for place in places if place < len(args))
    if name.startswith(_BY_LIST) and len(args) > 1:
        for dim, index in enumerate(_flat(plan, args[1:2])):
            yield index, _size(plan, args[0], dim)


def _size(plan: m.ExecutionPlan, index: int, dim: int) -> int:
    value = plan.values[index].val
    sizes = value.sizes if isinstance(value, m.Tensor) else ()
    return sizes[dim] if -len(sizes) <= dim < len(sizes) else 1


def remedy_of_random(plan: m.ExecutionPlan) -> str:
    """Return a hint for methods that refuse random integers, empty if it has no such input."""
    names: list[str] = []
    for place, index in enumerate(plan.inputs):
        value = plan.values[index].val
        if isinstance(value, m.Tensor) and _is_integral(plan, index):
            dtype = str(dtype_of(value.scalar_type)).removeprefix("torch.")
            names.append(f"{place} ({dtype} {list(value.sizes)})")
    if not names:
        return ""
    which = f"Input {names[0]}" if len(names) == 1 else f"Inputs {', '.join(names)}"
    verb = "is" if len(names) == 1 else "are"
    return (
        f"{which} {verb} random: where the program uses an integer as an index, give it a valid "
        "value by a file of tensors (--inputs FILE.pt), or use --inputs zeros."
    )
