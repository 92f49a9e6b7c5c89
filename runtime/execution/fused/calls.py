"""The calls a lean run is made of: results are kept by the tensors that stand for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from runtime.errors import ErrorCode, ExecutionError
from runtime.execution.binding import Call
from runtime.execution.fused.dataflow import Tensor
from runtime.memory.slots import Slot, TensorShapeDynamism
from runtime.program.values import ValueTable

_NOTHING: dict[torch.dtype, torch.Tensor] = {}


def fitted(slot: Slot, result: torch.Tensor) -> torch.Tensor:
    """Return a result as its slot would hold it.

    Raises: ExecutionError, the same that storing it would raise
    """
    slot.allow(result.shape)
    dtype = slot.tensor.dtype
    return result if result.dtype is dtype else _converted(result, dtype)


def keep(run: Callable[[], Any], tensors: Sequence[Tensor], *, several: bool) -> Call:
    """Return the call that lets tensors be the results of a kernel."""
    if not several:
        slot = tensors[0].slot
        shape = slot.tensor.shape if slot.dynamism == TensorShapeDynamism.STATIC else None
        return partial(_keep_one, run, slot.tensor, shape, slot)
    wanted = [(t.slot, t.slot.tensor, bool(t.reads or t.names)) for t in tensors]
    return partial(_keep_several, run, wanted)


def copied(run: Callable[[], torch.Tensor], target: torch.Tensor) -> Call:
    """Return the call that copies a result to where it must lie."""
    return partial(_copy, run, target)


def _copy(run: Callable[[], torch.Tensor], target: torch.Tensor) -> None:
    target.copy_(run())


def _keep_one(
    run: Callable[[], Any], tensor: torch.Tensor, shape: torch.Size | None, slot: Slot
) -> None:
    result = run()
    if result.shape != shape:
        slot.allow(result.shape)
    if result.dtype is not tensor.dtype:
        result = _converted(result, tensor.dtype)
    tensor.data = result


def _keep_several(
    run: Callable[[], Any], wanted: Sequence[tuple[Slot, torch.Tensor, bool]]
) -> None:
    results = run()
    if len(results) != len(wanted):
        raise ExecutionError(
            ErrorCode.InvalidArgument, f"{len(results)} results for {len(wanted)} out arguments"
        )
    for (slot, tensor, needed), result in zip(wanted, results, strict=True):
        if needed:
            tensor.data = fitted(slot, result)


def _converted(result: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    if not torch.can_cast(result.dtype, dtype):
        raise ExecutionError(
            ErrorCode.InvalidArgument, f"the result is {result.dtype}, it cannot become {dtype}"
        )
    return result.to(dtype)


def rename(owner: Slot, name: Slot) -> Call:
    """Return the call that lets a tensor show another one's memory in its own sizes."""
    return partial(_rename, owner.tensor, name.tensor, tuple(name.tensor.shape))


def _rename(owner: torch.Tensor, name: torch.Tensor, shape: tuple[int, ...]) -> None:
    name.data = owner.reshape(shape)


def view(table: ValueTable, args: Sequence[int], out: Slot) -> Call:
    """Return the call of `et_view` on a tensor that is not in its slot."""
    return partial(_view, table, args[0], args[1], out)


def _view(table: ValueTable, source: int, size: int, out: Slot) -> None:
    sizes = table.resolve(table.items[size])
    shown = table.items[source].reshape(sizes)
    if shown.dtype is not out.tensor.dtype or shown.dim() != len(out.dim_order):
        raise ExecutionError(
            ErrorCode.InvalidArgument, "the view has another element type or rank than its plan"
        )
    out.tensor.data = shown


def drop(tensors: Sequence[torch.Tensor]) -> Call:
    """Return the call that lets go of results which nobody reads any more."""
    pairs = [(tensor, _nothing(tensor.dtype)) for tensor in tensors]
    return partial(_drop_one, *pairs[0]) if len(pairs) == 1 else partial(_drop, pairs)


def _drop_one(tensor: torch.Tensor, nothing: torch.Tensor) -> None:
    tensor.data = nothing


def _drop(pairs: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> None:
    for tensor, nothing in pairs:
        tensor.data = nothing


def _nothing(dtype: torch.dtype) -> torch.Tensor:
    if dtype not in _NOTHING:
        _NOTHING[dtype] = torch.empty(0, dtype=dtype)
    return _NOTHING[dtype]
