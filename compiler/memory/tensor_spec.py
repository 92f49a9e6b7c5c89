"""What planning passes and algorithms of users see of a tensor: the documented TensorSpec."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from compiler.memory.specs import scalar_type_of
from schema.scalar_type import tensor_nbytes

ALIGNMENT = 16


class TensorSpec:
    """A tensor to be planned; equal only to itself.

    Attributes:
        scalar_type: dtype of the elements
        shape: upper bounds of the sizes
        dim_order: dimensions, outermost in memory first
        stride: elements from one index to the next, by dimension
        shape_dynamism: 0 for static sizes, 1 for bounded ones
        const: whether its bytes are in the program
        alignment: bytes; where it may start
        lifetime: first and last instruction, both inclusive
        mem_id: number of its arena, None before planning
        mem_obj_id: number of the object it shares with others
        mem_offset: bytes from the start of its arena, None before planning
    """

    def __init__(self, dtype: torch.dtype, shape: Sequence[int], *, const: bool = False) -> None:
        self.scalar_type = dtype
        self.shape = list(shape)
        self.const = const
        self.dim_order: tuple[int, ...] = tuple(range(len(self.shape)))
        self.shape_dynamism = 0
        self.alignment = ALIGNMENT
        self.layout = torch.strided
        self.is_sparse = False
        self.requires_grad = False
        self.lifetime: list[int | None] = [None, None]
        self.mem_id: int | None = None
        self.mem_obj_id: int | None = None
        self.mem_offset: int | None = None

    @property
    def dtype(self) -> torch.dtype:
        """Return the dtype of the elements."""
        return self.scalar_type

    @property
    def stride(self) -> tuple[int, ...]:
        """Return the strides of the dim order, in elements."""
        strides = [0] * len(self.shape)
        step = 1
        for dimension in reversed(self.dim_order):
            strides[dimension] = step
            step *= self.shape[dimension]
        return tuple(strides)

    @property
    def allocated_memory(self) -> int:
        """Return the bytes it takes, rounded up to its alignment."""
        return -(-self.nbytes() // self.alignment) * self.alignment

    @property
    def is_static_shape_tensor(self) -> bool:
        """Return whether its sizes never change."""
        return self.shape_dynamism == 0

    @property
    def is_dynamic_shape_tensor(self) -> bool:
        """Return whether its sizes may change."""
        return self.shape_dynamism != 0

    @property
    def is_upper_bound_tensor(self) -> bool:
        """Return whether its sizes may change below bounds."""
        return self.shape_dynamism == 1

    def realign(self, new_alignment: int) -> int:
        """Set the alignment and return the bytes it takes then."""
        self.alignment = new_alignment
        return self.allocated_memory

    def nbytes(self) -> int:
        """Return the bytes of the elements."""
        return tensor_nbytes(scalar_type_of(self.dtype), tuple(self.shape))

    def debug(self) -> str:
        """Return one line with everything planning knows."""
        return (
            f"TensorSpec(id={id(self)}, const={self.const}, scalar_type={self.scalar_type}, "
            f"allocated_memory={self.allocated_memory}, mem_id={self.mem_id}, "
            f"mem_offset={self.mem_offset}, lifetime={self.lifetime}, "
            f"shape_dynamism={self.shape_dynamism}, shape={self.shape})"
        )

    def __repr__(self) -> str:
        return (
            f"TensorSpec(dtype={self.scalar_type}, shape={self.shape}, "
            f"shape_dynamism={self.shape_dynamism}, const={self.const})"
        )
