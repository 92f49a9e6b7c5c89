"""The calls of a fused run: a tensor of the value table is pointed at the kernel's result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from runtime.errors import ErrorCode, ExecutionError
from runtime.execution.binding import Call
from runtime.execution.fused.dataflow import TensorUse
from runtime.memory.slots import TensorShapeDynamism, TensorSlot
from runtime.program.values import Boxed, ValueTable

_EMPTY: dict[torch.dtype, torch.Tensor] = {}


def fitted(slot: TensorSlot, result: torch.Tensor) -> torch.Tensor:
    """Return a result with the dtype of its slot.

    Raises: ExecutionError, the same as storing it
    """
    slot.allow(result.shape)
    dtype = slot.tensor.dtype
    return result if result.dtype is dtype else _converted(result, dtype)


def keep(run: Callable[[], Any], tensors: Sequence[TensorUse], *, several: bool) -> Call:
    """Return the call that points tensors at the results of a kernel."""
    if not several:
        slot = tensors[0].slot
        shape = slot.tensor.shape if slot.dynamism == TensorShapeDynamism.STATIC else None
        return partial(keep_one, run, slot.tensor, shape, slot)
    requested = [(t.slot, t.slot.tensor, bool(t.reads or t.aliases)) for t in tensors]
    return partial(keep_several, run, requested)


def copied(run: Callable[[], torch.Tensor], target: torch.Tensor) -> Call:
    """Return the call that copies a result into planned memory."""
    return partial(_copy, run, target)


def _copy(run: Callable[[], torch.Tensor], target: torch.Tensor) -> None:
    target.copy_(run())


def keep_one(
    run: Callable[[], Any], tensor: torch.Tensor, shape: torch.Size | None, slot: TensorSlot
) -> None:
    """Point a tensor at the result of a kernel."""
    result = run()
    if result.shape != shape:
        slot.allow(result.shape)
    if result.dtype is not tensor.dtype:
        result = _converted(result, tensor.dtype)
    tensor.data = result


def keep_several(
    run: Callable[[], Any], requested: Sequence[tuple[TensorSlot, torch.Tensor, bool]]
) -> None:
    """Point tensors at the results of a kernel."""
    for tensor, result in results_of(run, requested):
        tensor.data = result


def results_of(
    run: Callable[[], Any], requested: Sequence[tuple[TensorSlot, torch.Tensor, bool]]
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return the tensors that are needed, each with its result."""
    results = run()
    if len(results) != len(requested):
        raise ExecutionError(
            ErrorCode.InvalidArgument, f"{len(results)} results for {len(requested)} out arguments"
        )
    return [
        (tensor, fitted(slot, result))
        for (slot, tensor, needed), result in zip(requested, results, strict=True)
        if needed
    ]


def _converted(result: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    if not torch.can_cast(result.dtype, dtype):
        raise ExecutionError(
            ErrorCode.InvalidArgument,
            f"the result is {result.dtype}, which cannot be cast to {dtype}",
        )
    return result.to(dtype)


def alias(owner: TensorSlot, other: TensorSlot) -> Call:
    """Return the call that points a tensor at the memory of another one, with its own sizes."""
    return partial(point_alias, owner.tensor, other.tensor, tuple(other.tensor.shape))


def point_alias(owner: torch.Tensor, other: torch.Tensor, shape: tuple[int, ...]) -> None:
    """Point a tensor at the memory of another one."""
    other.data = owner.reshape(shape)


def view(table: ValueTable, args: Sequence[int], out: TensorSlot) -> Call:
    """Return the call of `et_view` on a tensor that is not in its planned memory."""
    return partial(_view, table, args[0], args[1], out)


def _view(table: ValueTable, source: int, size: int, out: TensorSlot) -> None:
    sizes = table.resolve(table.items[size])
    viewed = table.items[source].reshape(sizes)
    if viewed.dtype is not out.tensor.dtype or viewed.dim() != len(out.dim_order):
        raise ExecutionError(
            ErrorCode.InvalidArgument, "dtype or rank of the view differ from its plan"
        )
    out.tensor.data = viewed


def view_in_memory(
    items: Sequence[Any],
    sizes: Boxed,
    tensors: tuple[torch.Tensor, torch.Tensor],
    otherwise: Call,
) -> Call:
    """Return the call of `et_view` of a tensor with its dimensions in order in memory.

    Args:
        items: the values
        sizes: of the view
        tensors: the tensor, and the view
        otherwise: the call that checks everything, for sizes that do not fit
    """
    return partial(point_view, items, sizes.items, *tensors, otherwise)


def point_view(
    items: Sequence[Any],
    indices: Sequence[int],
    source: torch.Tensor,
    view: torch.Tensor,
    otherwise: Call,
) -> None:
    """Point a tensor at the memory of another one, in other sizes."""
    try:
        view.data = source.view([items[index] for index in indices])
    except (RuntimeError, TypeError):
        otherwise()


def release(tensors: Sequence[torch.Tensor]) -> Call:
    """Return the call that frees results after their last use."""
    pairs = [(tensor, _empty(tensor.dtype)) for tensor in tensors]
    return partial(release_one, *pairs[0]) if len(pairs) == 1 else partial(release_all, pairs)


def release_one(tensor: torch.Tensor, empty: torch.Tensor) -> None:
    """Free a result."""
    tensor.data = empty


def release_all(pairs: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> None:
    """Free results."""
    for tensor, empty in pairs:
        tensor.data = empty


def _empty(dtype: torch.dtype) -> torch.Tensor:
    if dtype not in _EMPTY:
        _EMPTY[dtype] = torch.empty(0, dtype=dtype)
    return _EMPTY[dtype]
