"""Tensors of a method: dtypes, layouts, and how they may be resized."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from math import prod
from typing import Any

import torch

from runtime.errors import OF_SIZES, ErrorCode, ExecutionError, invalid_program
from runtime.untyped import dtype_named
from schema.dtypes.scalar_type import BY_CODE, numel, scalar_type

MAX_RANK = 16  # kTensorDimensionLimit
_SMALL_COPIES = 4096  # bytes, which torch copies in this thread in less time
_ONE_THREAD_COPIES = 8 << 20  # bytes; larger ones are worth several threads
_MOST_ELEMENTS = 1 << 58  # strides and bytes of any dtype stay within 64 bits

# torch aborts the process for tensors of its packed and quantized dtypes over bytes.
_PACKED = ("qint", "quint", "bits")
_BY_CODE = {
    code: None if kind.name.startswith(_PACKED) else dtype_named(kind.name)
    for code, kind in BY_CODE.items()
}
CODE_OF: dict[torch.dtype, int] = {
    dtype: code for code, dtype in _BY_CODE.items() if dtype is not None
}


class TensorShapeDynamism(IntEnum):
    """Whether a tensor may change its sizes."""

    STATIC = 0
    DYNAMIC_BOUND = 1
    DYNAMIC_UNBOUND = 2


def dtype_of(code: int) -> torch.dtype:
    """Return the torch dtype of a scalar type code.

    Raises: ExecutionError InvalidType for a code without torch dtype
    """
    dtype = _BY_CODE.get(code)
    if dtype is None:
        name = scalar_type(code).name
        raise ExecutionError(ErrorCode.InvalidType, f"unknown scalar type {code} ({name})")
    return dtype


def strides_of(sizes: Sequence[int], dim_order: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a dense tensor, in elements.

    Args:
        sizes: size of each dimension
        dim_order: dimensions, outermost first
    """
    strides = [0] * len(sizes)
    step = 1
    for dim in reversed(dim_order):
        strides[dim] = step
        step *= max(sizes[dim], 1)
    return tuple(strides)


def dim_order_of(tensor: torch.Tensor) -> tuple[int, ...]:
    """Return the dimensions of a dense tensor, outermost first."""
    strides = tensor.stride()
    if tensor.is_contiguous():
        return tuple(range(len(strides)))
    return tuple(sorted(range(len(strides)), key=lambda dim: (-strides[dim], dim)))


def check_shape(sizes: Sequence[int], dim_order: Sequence[int]) -> None:
    """Reject invalid shapes.

    Raises: ExecutionError InvalidProgram, MemoryAllocationFailed
    """
    if len(sizes) > MAX_RANK:
        raise invalid_program(f"a tensor has {len(sizes)} dimensions, more than {MAX_RANK}")
    if min(sizes, default=0) < 0:
        raise invalid_program(f"a tensor has the negative sizes {list(sizes)}")
    if numel(tuple(max(size, 1) for size in sizes)) > _MOST_ELEMENTS:
        raise ExecutionError(
            ErrorCode.MemoryAllocationFailed, f"a tensor has the sizes {list(sizes)}"
        )
    if sorted(dim_order) != list(range(len(sizes))):
        raise invalid_program(
            f"dim_order {list(dim_order)} is not a permutation of the dimensions of {list(sizes)}"
        )


def fill(target: torch.Tensor, source: torch.Tensor) -> None:
    """Copy elements, in this thread alone where possible.

    torch's copies wake worker threads, which spin and compete with the threads of backends.
    """
    if target.nbytes > _SMALL_COPIES and (
        source.stride() == target.stride()
        and source.shape == target.shape
        and source.dtype is target.dtype
        and source.is_cpu
        and target.nbytes <= _ONE_THREAD_COPIES
        and not (source.is_neg() or source.is_conj())
    ):
        ctypes.memmove(target.data_ptr(), source.data_ptr(), target.nbytes)
    else:
        target.copy_(source)


def as_bytes(tensor: torch.Tensor) -> memoryview:
    """Return the bytes of a dense tensor in storage order."""
    flat = tensor.detach().as_strided((tensor.numel(),), (1,))
    raw: Any = flat.contiguous().view(torch.uint8)
    return memoryview(raw.numpy())


@dataclass(slots=True, eq=False)
class TensorSlot:
    """A tensor value: the tensor that all users hold, and how it may change.

    Attributes:
        tensor: one object for the life of the method; resizing changes it in place
        index: in the plan's value table
        code: scalar type code
        dim_order: dimensions, outermost first; kept by every resize
        dynamism: whether it may be resized
        capacity: largest number of elements
        base: its planned memory as a flat tensor, None if not planned
        constant: whether it is read-only
        planned: whether its memory comes from the plan
        viewed: the slot that it is a view of, None if it owns its memory
        sizes: planned sizes
        in_order: whether its dimensions are in order in memory
    """

    tensor: torch.Tensor
    index: int
    code: int
    dim_order: tuple[int, ...]
    dynamism: int
    capacity: int
    base: torch.Tensor | None
    constant: bool
    planned: bool
    viewed: TensorSlot | None = None
    sizes: tuple[int, ...] = ()
    in_order: bool = True
    _is_static: bool = False
    _is_bounded: bool = False
    _grows: bool = False  # within its planned memory, in the order of its dimensions

    def __post_init__(self) -> None:
        self._is_static = self.dynamism == TensorShapeDynamism.STATIC
        self._is_bounded = self.dynamism == TensorShapeDynamism.DYNAMIC_BOUND or self.planned
        self.sizes = tuple(self.tensor.shape)
        self.in_order = tuple(self.dim_order) == tuple(range(len(self.dim_order)))
        self._grows = self.planned and self.in_order and not self._is_static

    @property
    def read_only(self) -> bool:
        """Return whether its memory is a constant's."""
        return self.constant or (self.viewed is not None and self.viewed.constant)

    def resize(self, sizes: Sequence[int]) -> None:
        """Change the sizes within the limits of the plan.

        Raises: ExecutionError NotSupported with the documented messages
        """
        sizes = tuple(sizes)
        if sizes == self.tensor.shape:
            return
        if self._grows and len(sizes) == len(self.dim_order) and prod(sizes) <= self.capacity:
            self.tensor.resize_(sizes)
        else:
            self._reshape(sizes, self.allow(sizes))

    def allow(self, sizes: tuple[int, ...]) -> int:
        """Check that the plan allows these sizes; return their number of elements.

        Raises: ExecutionError NotSupported with the documented messages
        """
        if len(sizes) != len(self.dim_order):
            raise _refused(
                "Attempted to change the tensor rank which is immutable: "
                f"old={len(self.dim_order)}, new={len(sizes)}"
            )
        if self._is_static and sizes != self.sizes:
            raise _refused(
                "Attempted to resize a static tensor. "
                f"Expected shape {list(self.sizes)}, but received {list(sizes)}."
            )
        requested = prod(sizes)
        if requested > self.capacity and self._is_bounded:
            raise _refused(
                f"Attempted to resize a bounded tensor with a maximum capacity of {self.capacity} "
                f"elements to {requested} elements."
            )
        return requested

    def _reshape(self, sizes: tuple[int, ...], requested: int) -> None:
        if self.planned and self.in_order:
            self.tensor.resize_(sizes)  # within its memory, which cannot grow
            return
        strides = strides_of(sizes, self.dim_order)
        if not self._is_bounded and requested > self.tensor.untyped_storage().nbytes() // max(
            self.tensor.element_size(), 1
        ):
            fresh = torch.empty(requested, dtype=self.tensor.dtype)
            self.tensor.set_(fresh.untyped_storage(), 0, sizes, strides)
        else:
            self.tensor.as_strided_(sizes, strides)

    def store(self, result: torch.Tensor) -> None:
        """Write a kernel's result into this tensor, resized to it.

        Raises: ExecutionError where the shape or the dtype does not fit
        """
        tensor = self.tensor
        if result.shape != tensor.shape:
            self.resize(result.shape)
        if result.dtype is not tensor.dtype and not torch.can_cast(result.dtype, tensor.dtype):
            raise ExecutionError(
                ErrorCode.InvalidArgument,
                f"the result is {result.dtype}, which cannot be stored as {tensor.dtype}",
            )
        tensor.copy_(result)

    def share(self, source: torch.Tensor) -> None:
        """Point this tensor at the memory of another slot of the same layout."""
        self.tensor.set_(
            source.untyped_storage(), source.storage_offset(), source.shape, source.stride()
        )

    def place(self, base: torch.Tensor) -> None:
        """Point a tensor without planned memory at a flat tensor of at least its capacity."""
        sizes = tuple(self.tensor.shape)
        strides = strides_of(sizes, self.dim_order)
        self.tensor.set_(base.untyped_storage(), base.storage_offset(), sizes, strides)

    def free(self) -> None:
        """Free the memory of a tensor that is not planned."""
        if not self.planned and not self.constant:
            self.tensor.set_(torch.empty(0, dtype=self.tensor.dtype).untyped_storage())


def do_not_overlap(slot: TensorSlot, out: TensorSlot) -> bool:
    """Return whether two tensors share no byte in any run."""
    if slot.base is None or out.base is None or slot.viewed is not None:
        return False
    if slot.constant:
        return True
    if not (slot.planned and out.planned):
        return False  # the caller's memory may be anywhere
    start, begin = slot.base.data_ptr(), out.base.data_ptr()
    return start + slot.base.nbytes <= begin or begin + out.base.nbytes <= start


def _refused(reason: str) -> ExecutionError:
    return ExecutionError(ErrorCode.NotSupported, reason, remedy=OF_SIZES)
