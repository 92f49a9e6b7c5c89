"""The documented TensorSpec, which planning passes and algorithms of users read and write."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from enum import IntEnum
from typing import Any, cast

import torch
from torch.fx.experimental import symbolic_shapes

from compiler.errors import PlanError
from compiler.memory.specs import DYNAMIC_BOUND, STATIC

ALIGNMENT = 16
_symbols = cast("Any", symbolic_shapes)


class DeviceType(IntEnum):
    """The device of a tensor, with the codes of program files."""

    CPU = 0
    CUDA = 1


class TensorSpec:
    """A tensor to be planned; equal only to itself.

    Attributes:
        scalar_type: dtype of the elements
        shape: upper bounds of the sizes
        dim_order: dimensions, outermost in memory first
        shape_dynamism: 0 for static sizes, 1 for bounded ones, 2 for unbounded ones
        const: whether its bytes are in the program
        storage: the bytes of a constant
        alignment: of its offset, in bytes
        lifetime: first and last instruction, both inclusive
        mem_id: number of its planned buffer, None before planning
        mem_obj_id: number of the object it shares with others
        mem_offset: bytes from the start of its planned buffer, None before planning
        storage_base: the spec whose memory it aliases, None if it aliases none
        storage_base_offset: bytes from the start of that memory
        extra_tensor_info: name and location of data outside the program
        device: kind of its device
        device_index: number of the device
    """

    def __init__(  # noqa: PLR0913 - as documented
        self,
        dtype: torch.dtype,
        shape: Sequence[int],
        layout: torch.layout = torch.strided,
        is_sparse: bool = False,
        const: bool = False,
        requires_grad: bool = False,
        extra_tensor_info: Any = None,  # noqa: ANN401 - of the program's tables
    ) -> None:
        self.scalar_type = dtype
        self.shape: list[Any] = list(shape)
        self.const = const
        self.storage: torch.UntypedStorage | None = None
        self.dim_order: tuple[int, ...] = tuple(range(len(self.shape)))
        self._stride: tuple[int, ...] | None = None
        self.shape_dynamism: int = STATIC if all(map(_is_number, self.shape)) else DYNAMIC_BOUND
        self.alignment = ALIGNMENT
        self.layout = layout
        self.is_sparse = is_sparse
        self.requires_grad = requires_grad
        self.extra_tensor_info = extra_tensor_info
        self.device = DeviceType.CPU
        self.device_index = 0
        self.init_mem_planning_fields()

    @classmethod
    def from_tensor(cls, tensor: torch.Tensor, const: bool = False) -> TensorSpec:
        """Return the spec of a tensor.

        Args:
            tensor: real or fake
            const: whether its bytes are stored in the program, contiguous and without surrounding
                storage
        """
        if const:
            tensor = tensor.contiguous()
            if tensor.nbytes != tensor.untyped_storage().nbytes():
                tensor = tensor.clone()
        spec = cls(tensor.dtype, tensor.shape, tensor.layout, tensor.is_sparse, const)
        spec.stride = tuple(tensor.stride())
        spec.requires_grad = tensor.requires_grad
        spec.storage = tensor.untyped_storage() if const else None
        return spec

    def init_mem_planning_fields(self) -> None:
        """Reset the results of planning."""
        self.lifetime: list[int | None] = [None, None]
        self.mem_id: int | None = None
        self.mem_obj_id: int | None = None
        self.mem_offset: int | None = None
        self.storage_base: TensorSpec | None = None
        self.storage_base_offset = 0

    @property
    def inplace_base(self) -> TensorSpec | None:
        """Return the spec whose memory this one begins with.

        Raises: PlanError if it begins later; ``storage_base`` is for that
        """
        self._require_no_offset()
        return self.storage_base

    @inplace_base.setter
    def inplace_base(self, base: TensorSpec | None) -> None:
        self._require_no_offset()
        self.storage_base = base

    def _require_no_offset(self) -> None:
        if self.storage_base_offset:
            raise PlanError(
                "inplace_base is the storage_base with offset 0 and can be set when "
                f"storage_base_offset is 0, found offset {self.storage_base_offset}"
            )

    @property
    def dtype(self) -> torch.dtype:
        """Return the dtype of the elements."""
        return self.scalar_type

    @property
    def stride(self) -> tuple[int, ...]:
        """Return the strides, in elements: those that were set, or those of the dim order."""
        if self._stride is not None:
            return self._stride
        strides: list[Any] = [0] * len(self.shape)
        step = 1
        for dimension in reversed(self.dim_order):
            strides[dimension] = step
            size = self.shape[dimension]
            step *= 1 if _is_number(size) and size == 0 else size
        return tuple(strides)

    @stride.setter
    def stride(self, stride: Sequence[int]) -> None:
        self._stride = tuple(stride)
        self.dim_order = dim_order_from_stride(self._stride)

    @property
    def allocated_memory(self) -> int:
        """Return its bytes, rounded up to its alignment."""
        return -(-self.nbytes() // self.alignment) * self.alignment

    @property
    def is_static_shape_tensor(self) -> bool:
        """Return whether its sizes never change."""
        return self.shape_dynamism == STATIC

    @property
    def is_dynamic_shape_tensor(self) -> bool:
        """Return whether its sizes may change."""
        return self.shape_dynamism != STATIC

    @property
    def is_upper_bound_tensor(self) -> bool:
        """Return whether its sizes may change below bounds."""
        return self.shape_dynamism == DYNAMIC_BOUND

    @property
    def is_dynamic_unbound_tensor(self) -> bool:
        """Return whether its sizes may change without bounds."""
        return self.is_dynamic_shape_tensor and not self.is_upper_bound_tensor

    def resize(self, sizes: Sequence[int]) -> None:
        """Replace the sizes; the dim order is kept."""
        self.shape, self._stride = list(sizes), None

    def realign(self, new_alignment: int) -> int:
        """Set the alignment and return the aligned size in bytes."""
        self.alignment = new_alignment
        return self.allocated_memory

    def nbytes(self) -> int:
        """Return the bytes of the elements."""
        return num_bytes_from_shape_and_dtype(self.shape, self.dtype)

    def debug(self) -> str:
        """Return one line with all planning facts."""
        return (
            f"TensorSpec(id={id(self)}, const={self.const}, scalar_type={self.scalar_type}, "
            f"allocated_memory={self.allocated_memory}, mem_id={self.mem_id}, "
            f"mem_offset={self.mem_offset}, lifetime={self.lifetime}, "
            f"shape_dynamism={self.shape_dynamism}, shape={self.shape})"
        )

    def __repr__(self) -> str:
        return (
            f"TensorSpec(dtype={self.scalar_type}, shape={self.shape}, layout={self.layout}, "
            f"is_sparse={self.is_sparse}, shape_dynamism={self.shape_dynamism}, "
            f"const={self.const}, requires_grad={self.requires_grad}, "
            f"device={self.device.name}:{self.device_index})"
        )


def _is_number(size: Any) -> bool:  # noqa: ANN401
    return isinstance(size, int)


def num_bytes_from_shape_and_dtype(shape: Sequence[int], dtype: torch.dtype) -> int:
    """Return the bytes of a contiguous tensor."""
    return math.prod(shape) * dtype.itemsize


def dim_order_from_stride(stride: Sequence[int]) -> tuple[int, ...]:
    """Return the dimensions, outermost in memory first; equal strides keep their order.

    Raises: RuntimeError for a stride of 0, which repeats elements
    """
    strides: list[Any] = list(stride)
    if any(_is_number(one) and one == 0 for one in strides):
        raise RuntimeError(f"0 in strides is not supported for ExecuTorch: {strides}")

    def order(a: int, b: int) -> int:
        return _outside(strides[b], strides[a])

    return tuple(sorted(range(len(strides)), key=functools.cmp_to_key(order)))


def _outside(a: Any, b: Any) -> int:  # noqa: ANN401
    """Return 1 if a stride is larger than another, -1 if it is smaller, 0 if they are equal.

    For data-dependent sizes, a multiple counts as larger.
    """
    if _is_number(a) and _is_number(b):
        return (a > b) - (a < b)
    known = _symbols.guard_or_false
    if known(a == b):
        return 0
    return 1 if known(a > b) or (not known(a < b) and known(a % b == 0)) else -1
