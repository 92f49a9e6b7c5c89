"""Factory and copy kernels, which fill the out argument directly.

The out argument is resized first, so that no program can request more than its plan has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from runtime.kernels.rule import Rule, fills, in_place
from runtime.memory.slots import TensorSlot
from runtime.untyped import aten

Scalar = int | float | bool
_COPY_SCHEMA = (
    "(Tensor self, *, bool non_blocking=False, int[]? dim_order=None, Tensor(a!) out) -> Tensor(a!)"
)
_MOVE_SCHEMA = "(Tensor self, *, Tensor(a!) out) -> Tensor(a!)"


def _cast(tensor: torch.Tensor, out: TensorSlot) -> None:
    out.resize(tensor.shape)
    out.tensor.copy_(tensor)


def _to_copy(
    tensor: torch.Tensor,
    out: TensorSlot,
    *,
    non_blocking: bool = False,
    memory_format: torch.memory_format | None = None,
) -> None:
    del non_blocking, memory_format  # the plan has the layout
    _cast(tensor, out)


def _clone(
    tensor: torch.Tensor, out: TensorSlot, *, memory_format: torch.memory_format | None = None
) -> None:
    del memory_format  # the plan has the layout
    out.store(tensor)


def _dim_order_copy(
    tensor: torch.Tensor,
    out: TensorSlot,
    *,
    non_blocking: bool = False,
    dim_order: Sequence[int] | None = None,
) -> None:
    del non_blocking, dim_order  # the plan has the layout
    _cast(tensor, out)


def _copy(tensor: torch.Tensor, source: torch.Tensor, non_blocking: bool, out: TensorSlot) -> None:
    del non_blocking
    out.resize(tensor.shape)
    out.tensor.copy_(source)


def _move(tensor: torch.Tensor, out: TensorSlot) -> None:
    out.store(tensor)


def _empty(
    size: Sequence[int],
    out: TensorSlot,
    *,
    memory_format: torch.memory_format | None = None,
    dim_order: Sequence[int] | None = None,
) -> None:
    del memory_format, dim_order  # the plan has the layout
    out.resize(size)


def _full(size: Sequence[int], value: Scalar, out: TensorSlot) -> None:
    out.resize(size)
    out.tensor.fill_(value)


def _ones(size: Sequence[int], out: TensorSlot) -> None:
    _full(size, 1, out)


def _zeros(size: Sequence[int], out: TensorSlot) -> None:
    _full(size, 0, out)


def _full_like(
    tensor: torch.Tensor,
    value: Scalar,
    out: TensorSlot,
    *,
    memory_format: torch.memory_format | None = None,
) -> None:
    del memory_format
    _full(tensor.shape, value, out)


def _scalar_tensor(value: Scalar, out: TensorSlot) -> None:
    _full((), value, out)


def _fill(tensor: torch.Tensor, value: Scalar | torch.Tensor, out: TensorSlot) -> None:
    out.resize(tensor.shape)
    if isinstance(value, torch.Tensor):
        value = value.item()
    out.tensor.fill_(value)


def _arange(start: Scalar, end: Scalar, step: Scalar, out: TensorSlot) -> None:
    if not step or not all(map(math.isfinite, (start, end, step))):
        raise ValueError(f"invalid range from {start} to {end} in steps of {step}")
    out.resize((max(0, math.ceil((end - start) / step)),))
    torch.arange(start, end, step, out=out.tensor)


def _arange_to(end: Scalar, out: TensorSlot) -> None:
    _arange(0, end, 1, out)


def _rand(size: Sequence[int], out: TensorSlot) -> None:
    out.resize(size)
    out.tensor.uniform_()


def _randn(size: Sequence[int], out: TensorSlot) -> None:
    out.resize(size)
    out.tensor.normal_()


def _randperm(count: int, out: TensorSlot) -> None:
    out.resize((count,))
    torch.randperm(count, out=out.tensor)


def _empty_strided(size: Sequence[int], stride: Sequence[int], out: TensorSlot) -> None:
    del stride  # the plan has the layout
    out.resize(size)


def _resize(
    tensor: torch.Tensor,
    size: Sequence[int],
    out: TensorSlot,
    *,
    memory_format: torch.memory_format | None = None,
) -> None:
    """Reinterpret the elements in a new shape; elements that are added have no defined value."""
    del memory_format  # the plan has the layout
    out.resize(size)
    kept = min(tensor.numel(), out.tensor.numel())
    flat = torch.zeros(out.tensor.numel(), dtype=out.tensor.dtype)
    flat[:kept] = tensor.flatten()[:kept]
    out.tensor.copy_(flat.view(tuple(size)))


TABLE: dict[str, Rule] = {
    "aten::_to_copy.out": fills(_to_copy),
    "aten::arange.out": fills(_arange_to),
    "aten::arange.start_out": fills(_arange),
    "aten::clone.out": fills(_clone),
    "aten::copy.out": fills(_copy),
    "aten::copy_": in_place(aten.copy_.default),
    "aten::empty.out": fills(_empty),
    "aten::empty_strided.out": fills(_empty_strided),
    "aten::fill.Scalar_out": fills(_fill),
    "aten::fill.Tensor_out": fills(_fill),
    "aten::full.out": fills(_full),
    "aten::full_like.out": fills(_full_like),
    "aten::index_put_": in_place(aten.index_put_.default),
    "aten::ones.out": fills(_ones),
    "aten::rand.out": fills(_rand),
    "aten::randn.out": fills(_randn),
    "aten::randperm.out": fills(_randperm),
    "aten::resize.out": fills(_resize),
    "aten::scalar_tensor.out": fills(_scalar_tensor),
    "aten::zeros.out": fills(_zeros),
    "dim_order_ops::_clone_dim_order.out": fills(_dim_order_copy, _COPY_SCHEMA),
    "dim_order_ops::_empty_dim_order.out": fills(
        _empty, "(int[] size, *, int[]? dim_order=None, Tensor(a!) out) -> Tensor(a!)"
    ),
    "dim_order_ops::_to_dim_order_copy.out": fills(_dim_order_copy, _COPY_SCHEMA),
    "et_copy::_d2h_copy.out": fills(_move, _MOVE_SCHEMA),
    "et_copy::_h2d_copy.out": fills(_move, _MOVE_SCHEMA),
}
