"""Dim orders: operators with a dim order, and its computation.

The stock compiler registers operators of these names under ``dim_order_ops``, a namespace that
can exist only once in a process. Ours are in a separate namespace and are renamed on writing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from compiler.dialect.own_library import OwnLibrary
from compiler.untyped import expression_of

NAMESPACE = "etscope_dim_order"
_library = OwnLibrary(
    NAMESPACE,
    "_to_dim_order_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, "
    "Device? device=None, bool? pin_memory=None, bool non_blocking=False, "
    "int[]? dim_order=None) -> Tensor",
    "_to_dim_order_copy.out(Tensor self, *, bool non_blocking=False, int[]? dim_order=None, "
    "Tensor(a!) out) -> Tensor(a!)",
    "_clone_dim_order(Tensor self, *, bool non_blocking=False, int[]? dim_order=None) -> Tensor",
    "_clone_dim_order.out(Tensor self, *, bool non_blocking=False, int[]? dim_order=None, "
    "Tensor(a!) out) -> Tensor(a!)",
    "_empty_dim_order(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, "
    "Device? device=None, bool? pin_memory=None, int[]? dim_order=None) -> Tensor",
    "_empty_dim_order.out(SymInt[] size, *, int[]? dim_order=None, Tensor(a!) out) -> Tensor(a!)",
)


def is_contiguous(tensor: torch.Tensor) -> bool:
    """Return whether the last dimension is innermost in memory, and so on.

    Unlike torch's question this one has an answer for sizes that depend on data.
    """
    sizes: tuple[Any, ...] = tuple(tensor.shape)
    if all(isinstance(size, int) for size in sizes):
        return tensor.is_contiguous()
    if any(str(size) == "0" for size in sizes):
        return True  # without elements, as torch has it
    step: Any = 1
    for size, stride in zip(reversed(sizes), reversed(tensor.stride()), strict=True):
        if str(size) != "1" and not _is_same(stride, step):
            return False
        step = step * size
    return True


def _is_same(one: Any, other: Any) -> bool:  # noqa: ANN401 - numbers or symbols
    """Return whether two strides are the same expression; strides of empty tensors do not matter.

    Where torch cannot rule out that a size is zero (`s - 1` of a cut) its strides contain
    `Max(1, s - 1)`. Comparing two symbols would specialize them.
    """
    return str(one) == str(other) or _written(one) == _written(other)


def _written(number: Any) -> str:  # noqa: ANN401
    if not isinstance(number, torch.SymInt):
        return str(number)
    expression = expression_of(number)
    return str(expression.replace(_is_at_least_one, _the_rest).expand())


def _is_at_least_one(expression: Any) -> bool:  # noqa: ANN401
    return type(expression).__name__ == "Max" and len(expression.args) == 2 and 1 in expression.args


def _the_rest(expression: Any) -> Any:  # noqa: ANN401
    return next(part for part in expression.args if part != 1)


def dim_order_of(tensor: torch.Tensor) -> tuple[int, ...]:
    """Return the dimensions of a dense tensor, outermost in memory first."""
    if is_contiguous(tensor):
        return tuple(range(tensor.dim()))
    strides = tensor.stride()
    return tuple(sorted(range(tensor.dim()), key=lambda i: -strides[i]))


def is_dense(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is dense in some order of its dimensions: no gaps, no overlap."""
    if tensor.numel() == 0:
        return True
    sizes, strides = tuple(tensor.shape), tensor.stride()
    step = 1
    for dimension in reversed(dim_order_of(tensor)):  # floating point: permuting a fake is slow
        if sizes[dimension] == 1:
            continue
        if strides[dimension] != step:
            return False
        step *= sizes[dimension]
    return True


def is_stored_as_it_is(tensor: torch.Tensor) -> bool:
    """Return whether a constant keeps its layout in the program: contiguous or channels last.

    Delegates and most kernels take no other layout, a transposed weight for example; storing it
    contiguous saves the copy that each run would make. So it is with quantized weights in channels
    last: scales by channel are applied to contiguous ones only.
    """
    if not tensor.is_floating_point():
        return is_contiguous(tensor)
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    last = formats.get(tensor.dim())
    return is_contiguous(tensor) or (last is not None and tensor.is_contiguous(memory_format=last))


def in_dim_order(tensor: torch.Tensor, order: Sequence[int] | None) -> torch.Tensor:
    """Return a copy with this dim order; None keeps that of the tensor."""
    order = dim_order_of(tensor) if order is None else order
    back = sorted(range(len(order)), key=lambda i: order[i])
    laid_out = tensor.permute(tuple(order)).clone(memory_format=torch.contiguous_format)
    return laid_out.permute(back)


def _to_dim_order_copy(
    self: torch.Tensor,
    *,
    dtype: torch.dtype | None = None,
    dim_order: Sequence[int] | None = None,
    **_options: Any,  # noqa: ANN401
) -> torch.Tensor:
    return in_dim_order(self if dtype is None else self.to(dtype), dim_order)


def _clone_dim_order(
    self: torch.Tensor, *, non_blocking: bool = False, dim_order: Sequence[int] | None = None
) -> torch.Tensor:
    del non_blocking  # only one device is supported
    return in_dim_order(self, dim_order)


def _empty_dim_order(
    size: Sequence[int],
    *,
    dtype: torch.dtype | None = None,
    dim_order: Sequence[int] | None = None,
    **_options: Any,  # noqa: ANN401
) -> torch.Tensor:
    return in_dim_order(torch.empty(tuple(size), dtype=dtype), dim_order)


def _into(function: Any) -> Any:  # noqa: ANN401
    """Return the form of an operator that writes into given memory, as planned graphs call it."""

    def run(*args: Any, out: torch.Tensor, **options: Any) -> torch.Tensor:  # noqa: ANN401
        found = function(*args, dtype=out.dtype, **options)
        return out.resize_(found.shape).copy_(found)

    return run


def _clone_as(self: torch.Tensor, *, dtype: torch.dtype, **options: Any) -> torch.Tensor:  # noqa: ANN401
    del dtype  # of the memory, which is that of the tensor
    return _clone_dim_order(self, **options)


for _name, _function in (
    ("_to_dim_order_copy", _to_dim_order_copy),
    ("_clone_dim_order", _clone_as),
    ("_empty_dim_order", _empty_dim_order),
):
    _library.impl(f"{_name}.out", _into(_function), "CompositeExplicitAutograd")
_library.impl("_to_dim_order_copy", _to_dim_order_copy, "CompositeExplicitAutograd")
_library.impl("_clone_dim_order", _clone_dim_order, "CompositeExplicitAutograd")
_library.impl("_empty_dim_order", _empty_dim_order, "CompositeExplicitAutograd")

_own: Any = getattr(torch.ops, NAMESPACE)
TO_DIM_ORDER_COPY: Any = _own._to_dim_order_copy.default
CLONE_DIM_ORDER: Any = _own._clone_dim_order.default
EMPTY_DIM_ORDER: Any = _own._empty_dim_order.default
