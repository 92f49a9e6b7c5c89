"""The tensor metadata of program files, from the fake tensor of a node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.export import ExportedProgram

from compiler.dialect.dim_order import dim_order_of, is_dense
from compiler.errors import UnboundedShapeError, UnsupportedError
from compiler.untyped import exactly, expression_of, largest
from schema.dtypes.scalar_type import BY_NAME, scalar_type, tensor_nbytes

STATIC, DYNAMIC_BOUND = 0, 1
_MOST = 2**31 - 1  # sizes are 32 bits wide in a program file


@dataclass(frozen=True, slots=True)
class FrozenSpec:
    """Scalar type, upper bounds of the sizes, dim order.

    Attributes:
        dynamism: 0 for static sizes, 1 for bounded ones
    """

    scalar_type: int
    sizes: tuple[int, ...]
    dim_order: tuple[int, ...]
    dynamism: int

    @property
    def nbytes(self) -> int:
        """Return the bytes at the upper bound."""
        return tensor_nbytes(self.scalar_type, self.sizes)

    @property
    def is_contiguous(self) -> bool:
        """Return whether the last dimension is innermost in memory, and so on."""
        return self.dim_order == tuple(range(len(self.sizes)))

    def row(self) -> FrozenSpec:
        """Return the spec of one row of a contiguous tensor."""
        dim_order = tuple(range(len(self.sizes) - 1))
        return FrozenSpec(self.scalar_type, self.sizes[1:], dim_order, self.dynamism)


def is_static(tensor: torch.Tensor) -> bool:
    """Return whether no size of a tensor is symbolic."""
    sizes: tuple[Any, ...] = tuple(tensor.shape)
    return all(isinstance(size, int) for size in sizes)


def scalar_type_of(dtype: torch.dtype) -> int:
    """Return the scalar type code of a dtype in program files.

    Raises: UnsupportedError if it has no code
    """
    known = BY_NAME.get(str(dtype).removeprefix("torch."))
    if known is None:
        raise UnsupportedError(f"{dtype} has no code in program files")
    return known.code


def spec_of(tensor: torch.Tensor, ranges: Mapping[Any, Any]) -> FrozenSpec:
    """Return the spec of a dense tensor, with upper bounds of its sizes from ranges.

    Raises:
        UnboundedShapeError: a size has no finite upper bound
        UnsupportedError: the elements do not fill their memory
    """
    static = is_static(tensor)
    if static and not is_dense(tensor):
        raise UnsupportedError(
            f"a tensor of strides {tuple(tensor.stride())} and sizes {tuple(tensor.shape)} has "
            "gaps or repeats in memory; make it contiguous"
        )
    sizes = tuple(upper_bound(size, ranges) for size in tensor.shape)
    number = scalar_type_of(tensor.dtype)
    if scalar_type(number).item_bytes == 0:
        raise UnsupportedError(f"{tensor.dtype} has no size in bytes")
    return FrozenSpec(number, sizes, dim_order_of(tensor), STATIC if static else DYNAMIC_BOUND)


def hinted_ranges(program: ExportedProgram) -> dict[Any, Any]:
    """Return for each size of an input that may change its size in the example, as its range."""
    sizes: list[Any] = []
    for node in program.graph.nodes:
        value = node.meta.get("val") if node.op == "placeholder" else None
        sizes += value.shape if isinstance(value, torch.Tensor) else ()
    known = [(size, size.node.hint) for size in sizes if not isinstance(size, int)]
    return {expression_of(size): exactly(hint) for size, hint in known if hint is not None}


def upper_bound(size: Any, ranges: Mapping[Any, Any]) -> int:  # noqa: ANN401
    """Return the largest value of a size.

    Raises:
        UnboundedShapeError: it is unbounded
        UnsupportedError: it exceeds what files can store
    """
    if isinstance(size, int):
        return size
    expression = expression_of(size)
    most = largest(expression, ranges)
    if most is None:
        raise UnboundedShapeError(
            f"Cannot evaluate the shape upper bound of a dynamic-shaped tensor to a concrete "
            f"bounded integer: {expression} has no maximum; set a max for its Dim"
        )
    if most > _MOST:
        raise UnsupportedError(
            f"the size {expression} may be up to {most:,}, and a program stores sizes up to"
            f" {_MOST:,}; set a smaller max for its Dim"
        )
    return most


def raw_bytes(tensor: torch.Tensor) -> memoryview:
    """Return the bytes of a tensor in memory order, without a copy where it is dense."""
    tensor = tensor.detach()
    if not tensor.is_contiguous():
        tensor = tensor.permute(dim_order_of(tensor)).contiguous()
    if tensor.numel() == 0:
        return memoryview(b"")
    flat: Any = tensor.reshape(-1).view(torch.uint8).numpy()
    return memoryview(flat)
