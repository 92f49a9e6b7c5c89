"""The documented tensor helpers: tensors that can be resized within limits.

A `TensorPtr` holds a torch tensor over memory of its own or of the caller; methods accept it in
place of a tensor.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from runtime.errors import invalid_argument
from runtime.memory.slots import CODE_OF, TensorShapeDynamism, TensorSlot, check_shape, strides_of
from runtime.untyped import from_buffer
from schema.dtypes.scalar_type import numel

Deleter = Callable[[Any], None]
BOUND = TensorShapeDynamism.DYNAMIC_BOUND


class TensorPtr:
    """A tensor that can be resized up to its original number of elements.

    Args:
        tensor: a dense tensor
        dynamism: whether it may be resized
    """

    def __init__(
        self, tensor: torch.Tensor, dynamism: TensorShapeDynamism = TensorShapeDynamism.STATIC
    ) -> None:
        order = sorted(range(tensor.dim()), key=lambda dim: (-tensor.stride(dim), dim))
        self._slot = TensorSlot(
            tensor.detach(),
            -1,
            CODE_OF[tensor.dtype],
            tuple(order),
            dynamism,
            tensor.numel(),
            None,
            constant=False,
            planned=False,
        )

    @property
    def tensor(self) -> torch.Tensor:
        """Return the tensor in its current sizes."""
        return self._slot.tensor

    @property
    def dynamism(self) -> TensorShapeDynamism:
        """Return whether it may be resized."""
        return TensorShapeDynamism(self._slot.dynamism)

    def sizes(self) -> tuple[int, ...]:
        """Return the current sizes."""
        return tuple(self.tensor.shape)

    def numel(self) -> int:
        """Return the current number of elements."""
        return self.tensor.numel()

    def resize(self, sizes: Sequence[int]) -> None:
        """Change the sizes.

        Raises: ExecutionError NotSupported for another rank or more elements than the original
        """
        self._slot.resize(sizes)

    def __repr__(self) -> str:
        return f"TensorPtr({self.tensor!r}, dynamism={self.dynamism.name})"


@dataclass(frozen=True)
class BlobBuilder:
    """Describes a tensor in memory of the caller; `make_tensor_ptr` creates it."""

    data: Any
    sizes: Sequence[int]
    type: torch.dtype = torch.float32
    order: Sequence[int] = ()
    steps: Sequence[int] = ()
    how: TensorShapeDynamism = BOUND
    on_free: Deleter | None = None

    def dim_order(self, dim_order: Sequence[int]) -> BlobBuilder:
        """Set the dim order."""
        return replace(self, order=dim_order)

    def strides(self, strides: Sequence[int]) -> BlobBuilder:
        """Set the strides, in elements."""
        return replace(self, steps=strides)

    def dynamism(self, dynamism: TensorShapeDynamism) -> BlobBuilder:
        """Set whether it may be resized."""
        return replace(self, how=dynamism)

    def deleter(self, deleter: Deleter) -> BlobBuilder:
        """Set the function called with the memory when the tensor is freed."""
        return replace(self, on_free=deleter)

    def make_tensor_ptr(self) -> TensorPtr:
        """Return the tensor, a view of the memory.

        Raises: ExecutionError InvalidArgument for strides that are not dense or too little memory
        """
        order = tuple(self.order) or _order_of(self.sizes, self.steps)
        check_shape(tuple(self.sizes), order)
        strides = strides_of(self.sizes, order)
        if self.steps and tuple(self.steps) != strides:
            raise invalid_argument(f"strides {list(self.steps)} are not those of a dense tensor")
        count = numel(tuple(self.sizes))
        flat = torch.empty(0, dtype=self.type)
        if count:
            flat = _flat(self.data, self.type, count)
        result = TensorPtr(flat.as_strided(tuple(self.sizes), strides), self.how)
        if self.on_free is not None:
            weakref.finalize(result, self.on_free, self.data)
        return result


def _order_of(sizes: Sequence[int], steps: Sequence[int]) -> tuple[int, ...]:
    if not steps:
        return tuple(range(len(sizes)))
    if len(steps) != len(sizes):
        raise invalid_argument(f"{len(steps)} strides for {len(sizes)} dimensions")
    return tuple(sorted(range(len(sizes)), key=lambda dim: (-steps[dim], dim)))


def _flat(data: Any, dtype: torch.dtype, count: int) -> torch.Tensor:  # noqa: ANN401 - memory
    if isinstance(data, torch.Tensor):
        if data.dtype is not dtype or data.numel() < count or not data.is_contiguous():
            raise invalid_argument(
                f"the tensor is not contiguous memory of {count} elements of {dtype}"
            )
        return data.detach().reshape(-1)
    try:
        return from_buffer(data, dtype, count)
    except (ValueError, TypeError) as error:
        raise invalid_argument(f"{count} elements of {dtype} do not fit: {error}") from None


def for_blob(
    data: Any,  # noqa: ANN401 - anything with memory
    sizes: Sequence[int],
    type: torch.dtype = torch.float32,
) -> BlobBuilder:
    """Return a builder of a tensor over memory of the caller, which must outlive it."""
    return BlobBuilder(data, sizes, type)


def from_blob(
    data: Any,  # noqa: ANN401 - anything with memory
    sizes: Sequence[int],
    strides: Sequence[int] = (),
    type: torch.dtype = torch.float32,
    deleter: Deleter | None = None,
    dynamism: TensorShapeDynamism = BOUND,
) -> TensorPtr:
    """Return a tensor over memory of the caller, which must outlive it."""
    return BlobBuilder(data, sizes, type, (), strides, dynamism, deleter).make_tensor_ptr()


def make_tensor_ptr(
    data: TensorPtr | torch.Tensor | Sequence[Any] | float,
    sizes: Sequence[int] | None = None,
    type: torch.dtype | None = None,
    dynamism: TensorShapeDynamism = BOUND,
) -> TensorPtr:
    """Return a tensor: a view of another one, or one of given scalars.

    Args:
        data: a tensor, or scalars, nested or flat
        sizes: other sizes with as many elements
        type: dtype; by default that of the data
        dynamism: whether it may be resized

    Raises: ExecutionError InvalidArgument for casts from floats to integers, and to bool
    """
    if isinstance(data, TensorPtr | torch.Tensor):
        held = data.tensor if isinstance(data, TensorPtr) else data
        if type is not None:
            _check_cast(held.dtype, type)
            held = held.to(type)
    else:
        held = torch.tensor(data)
        if type is not None:
            _check_cast(held.dtype, type)
            held = held.to(type)
    if sizes is not None:
        if numel(tuple(sizes)) != held.numel():
            raise invalid_argument(f"{held.numel()} elements do not fit the sizes {list(sizes)}")
        held = held.reshape(tuple(sizes))
    return TensorPtr(held, dynamism)


def clone_tensor_ptr(
    tensor: TensorPtr | torch.Tensor,
    type: torch.dtype | None = None,
) -> TensorPtr:
    """Return a copy with memory of its own.

    Raises: ExecutionError InvalidArgument for casts from floats to integers, and to bool
    """
    held = tensor.tensor if isinstance(tensor, TensorPtr) else tensor
    dynamism = tensor.dynamism if isinstance(tensor, TensorPtr) else BOUND
    if type is not None:
        _check_cast(held.dtype, type)
    return TensorPtr(held.to(type or held.dtype, copy=True), dynamism)


def resize_tensor_ptr(tensor: TensorPtr, sizes: Sequence[int]) -> None:
    """Change the sizes of a tensor.

    Raises: ExecutionError NotSupported for another rank or more elements than the original
    """
    tensor.resize(sizes)


def _check_cast(source: torch.dtype, target: torch.dtype) -> None:
    if source is target:
        return
    if target is torch.bool:
        raise invalid_argument(f"{source} cannot be cast to bool")
    if source.is_floating_point and not target.is_floating_point:
        raise invalid_argument(f"{source} cannot be cast to {target}")


def _maker(name: str, leading: int) -> Callable[..., TensorPtr]:
    function: Callable[..., torch.Tensor] = getattr(torch, name)

    def make(
        *arguments: Any,  # noqa: ANN401 - torch's own
        type: torch.dtype = torch.float32,
        dynamism: TensorShapeDynamism = BOUND,
    ) -> TensorPtr:
        given = [
            entry.tensor if isinstance(entry, TensorPtr) else entry for entry in arguments[:leading]
        ]
        return TensorPtr(function(*given, *arguments[leading:], dtype=type), dynamism)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"""Return the result of ``torch.{name}`` as a tensor that can be resized."""
    return make


empty, empty_like = _maker("empty", 0), _maker("empty_like", 1)
full, full_like = _maker("full", 0), _maker("full_like", 1)
zeros, zeros_like = _maker("zeros", 0), _maker("zeros_like", 1)
ones, ones_like = _maker("ones", 0), _maker("ones_like", 1)
rand, rand_like = _maker("rand", 0), _maker("rand_like", 1)
randn, randn_like = _maker("randn", 0), _maker("randn_like", 1)
randint, randint_like = _maker("randint", 0), _maker("randint_like", 1)
empty_strided = _maker("empty_strided", 0)


def full_strided(
    sizes: Sequence[int],
    strides: Sequence[int],
    fill_value: float,
    type: torch.dtype = torch.float32,
    dynamism: TensorShapeDynamism = BOUND,
) -> TensorPtr:
    """Return a tensor filled with one scalar, with given strides."""
    result = torch.empty_strided(tuple(sizes), tuple(strides), dtype=type)
    return TensorPtr(result.fill_(fill_value), dynamism)


def scalar_tensor(
    value: float,
    type: torch.dtype = torch.float32,
) -> TensorPtr:
    """Return a tensor without dimensions."""
    return TensorPtr(torch.tensor(value, dtype=type))
