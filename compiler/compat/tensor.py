"""Helpers of ``executorch.exir.tensor``: strides, dim orders, bytes, and rows of program files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from compiler.errors import CompileError
from compiler.memory.specs import DYNAMIC_BOUND, STATIC, scalar_type_of
from compiler.memory.tensor_spec import (
    ALIGNMENT,
    DeviceType,
    TensorSpec,
    dim_order_from_stride,
    num_bytes_from_shape_and_dtype,
)
from compiler.untyped import SYMBOLIC
from schema.dtypes.scalar_type import scalar_type
from schema.program import model as m

__all__ = [
    "ALIGNMENT",
    "AddressSpaceOverflowException",
    "TensorSpec",
    "calculate_aligned_num_bytes",
    "check_spec",
    "contiguous_stride_from_shape",
    "determine_tensor_dynanism",
    "dim_order_from_stride",
    "get_scalar_type",
    "layout_enum",
    "make_allocation_info",
    "make_tensor_value",
    "memory_format_enum",
    "num_bytes_from_shape_and_dtype",
    "scalar_type_enum",
    "stride_from_dim_order",
]

_LAYOUTS = {torch.strided: 0, torch.sparse_coo: 1}
_MEMORY_FORMATS = {torch.contiguous_format: 0, torch.preserve_format: 1}
_UNBOUND = 2  # program.fbs TensorShapeDynamism.DYNAMIC_UNBOUND


class AddressSpaceOverflowException(Exception):  # noqa: N818 - as documented
    """An offset needs more than 64 bits."""


def contiguous_stride_from_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a contiguous tensor, in elements."""
    return tuple(stride_from_dim_order(list(shape), [*range(len(shape))]))


def stride_from_dim_order(sizes: Sequence[int], dim_order: Sequence[int]) -> list[int]:
    """Return the strides of a tensor that fills its memory, in elements.

    Args:
        sizes: of the tensor
        dim_order: dimensions, outermost in memory first
    """
    strides: list[Any] = [0] * len(sizes)
    step: Any = 1
    for place in reversed(dim_order):
        strides[place] = step
        size: Any = sizes[place]
        step = step if isinstance(size, int) and size == 0 else step * size
    return strides


def calculate_aligned_num_bytes(num: int, alignment: int) -> int:
    """Return a number of bytes rounded up to an alignment."""
    return -(-num // alignment) * alignment


def determine_tensor_dynanism(shape: Sequence[int]) -> int:
    """Return 0 for static sizes, 1 for those with an example, 2 for those that depend on data."""
    symbols: list[Any] = [size for size in shape if isinstance(size, SYMBOLIC)]
    if not symbols:
        return STATIC
    return DYNAMIC_BOUND if all(size.node.has_hint() for size in symbols) else _UNBOUND


def memory_format_enum(memory_format: torch.memory_format) -> int:
    """Return the code of a memory format in program files.

    Raises: KeyError if it has no code
    """
    return _MEMORY_FORMATS[memory_format]


def layout_enum(layout: torch.layout) -> int:
    """Return the code of a layout in program files.

    Raises: KeyError if it has no code
    """
    return _LAYOUTS[layout]


def scalar_type_enum(dtype: torch.dtype) -> int:
    """Return the scalar type code of a dtype in program files.

    Raises: UnsupportedError if it has no code
    """
    return scalar_type_of(dtype)


def get_scalar_type(enum: int) -> torch.dtype:
    """Return the dtype of a scalar type code in program files."""
    return getattr(torch, scalar_type(enum).name)


def make_allocation_info(mem_id: int, mem_offset: int) -> m.AllocationDetails:
    """Return the allocation details of a tensor, as in program files.

    Raises:
        ValueError: the offset is negative
        AddressSpaceOverflowException: it needs more than 64 bits
    """
    if mem_offset < 0:
        raise ValueError(f"mem_offset {mem_offset} must not be negative")
    if mem_offset >> 64:
        raise AddressSpaceOverflowException(f"mem_offset {mem_offset} does not fit in 64 bits")
    return m.AllocationDetails(mem_id, mem_offset & 0xFFFF_FFFF, mem_offset >> 32)


def make_tensor_value(
    data_buffer_idx: int, allocation_info: m.AllocationDetails | None, spec: TensorSpec
) -> m.Tensor:
    """Return the row of a program file that describes a tensor."""
    extra = spec.extra_tensor_info
    if spec.device != DeviceType.CPU:
        name, location, segment = "", 0, 0
        if extra is not None:
            name, location = extra.fully_qualified_name, extra.location
            segment = extra.mutable_data_segments_idx
        extra = m.ExtraTensorInfo(segment, name, location, spec.device, spec.device_index)
    return m.Tensor(
        scalar_type=scalar_type_of(spec.dtype),
        storage_offset=0,
        sizes=tuple(spec.shape),
        dim_order=tuple(spec.dim_order),
        requires_grad=spec.requires_grad,
        data_buffer_idx=data_buffer_idx,
        allocation_info=allocation_info,
        layout=layout_enum(spec.layout),
        shape_dynamism=int(spec.shape_dynamism),
        extra_tensor_info=extra,
    )


def check_spec(tensor: torch.Tensor, spec: TensorSpec) -> None:
    """Check that a spec describes a tensor.

    Raises: CompileError naming what differs
    """
    for name in ("is_sparse", "shape", "dtype"):
        found, expected = getattr(tensor, name), getattr(spec, name)
        same = list(found) == list(expected) if name == "shape" else found == expected
        if not same:
            raise CompileError(f"{name} of the spec is {expected}, the tensor's is {found}")
