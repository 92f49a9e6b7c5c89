"""Core operators whose stock kernels reject rare arguments, or abort the process on them.

They are decomposed for these arguments only and kept otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from compiler.untyped import aten


def _padded(x: Any, pad: Sequence[Any], value: Any = 0) -> Any:  # noqa: ANN401
    """Replace negative padding by slices: the kernel does not support it."""
    if not any(_is_negative(each) for each in pad):
        return NotImplemented
    for place, (before, after) in enumerate(zip(pad[::2], pad[1::2], strict=True)):
        start = -before if _is_negative(before) else 0
        end = after if _is_negative(after) else None
        if start or end is not None:
            x = aten.slice.Tensor(x, x.dim() - 1 - place, start, end)
    left = [0 if _is_negative(each) else each for each in pad]
    return aten.constant_pad_nd.default(x, left, value) if any(left) else x


def _is_negative(number: Any) -> bool:  # noqa: ANN401 - a number or a symbol
    return isinstance(number, int) and number < 0


def _sum(
    x: Any,  # noqa: ANN401
    dim: Sequence[int] | None,
    keepdim: bool = False,
    *,
    dtype: Any = None,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    """Pass no dimension for a tensor without dimensions: the kernel aborts the process."""
    if x.dim() or not dim:
        return NotImplemented
    return aten.sum.dim_IntList(x, [], keepdim, dtype=dtype)


def _cumulated(x: Any, dim: int, *, dtype: Any = None) -> Any:  # noqa: ANN401
    """Copy a tensor without dimensions: the kernel refuses it."""
    del dim
    if x.dim():
        return NotImplemented
    if dtype is None:
        dtype = x.dtype if x.is_floating_point() or x.is_complex() else torch.int64
    return aten.clone.default(x) if dtype == x.dtype else aten._to_copy.default(x, dtype=dtype)


def _log_softmax(x: Any, dim: int, half_to_float: bool) -> Any:  # noqa: ANN401
    """Return the empty result, as the kernel divides by the number of elements."""
    del dim
    dtype = torch.float32 if half_to_float else x.dtype
    return _nothing([*x.shape], dtype) if _is_empty(x) else NotImplemented


def _extreme(x: Any, dim: Sequence[int] = (), keepdim: bool = False) -> Any:  # noqa: ANN401
    """Return the empty result: the kernel aborts on empty input."""
    if not _is_empty(x):
        return NotImplemented
    gone = {place % x.dim() for place in dim}
    sizes = [1 if place in gone else size for place, size in enumerate(x.shape)]
    kept = [size for place, size in enumerate(sizes) if keepdim or place not in gone]
    return _nothing(kept, x.dtype)


def _selected(x: Any, dim: int, index: Any) -> Any:  # noqa: ANN401
    """Return the empty result: the kernel does not support empty tensors."""
    if not _is_empty(x):
        return NotImplemented
    sizes = [*x.shape]
    sizes[dim] = index.numel()
    return _nothing(sizes, x.dtype)


def _is_empty(x: torch.Tensor) -> bool:
    """Return whether a tensor is always empty, without a guard on dynamic sizes."""
    sizes: Any = tuple(x.shape)
    return any(isinstance(size, int) and size == 0 for size in sizes)


def _nothing(sizes: Sequence[Any], dtype: torch.dtype) -> Any:  # noqa: ANN401
    return aten.full.default([*sizes], False if dtype == torch.bool else 0, dtype=dtype)


RULES: dict[Any, Callable[..., Any]] = {
    aten._log_softmax.default: _log_softmax,
    aten.amax.default: _extreme,
    aten.amin.default: _extreme,
    aten.constant_pad_nd.default: _padded,
    aten.cumsum.default: _cumulated,
    aten.index_select.default: _selected,
    aten.sum.dim_IntList: _sum,
}
