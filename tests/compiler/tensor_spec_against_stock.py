"""TensorSpec and its helpers beside stock's, in a process of its own: stock is loaded first.

python -m tests.compiler.tensor_spec_against_stock prints {comparison: [what differs, …]} as JSON.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import executorch.exir.tensor as stock_tensor
import torch

from compiler import TensorSpec
from compiler.compat import tensor

stock: Any = stock_tensor
_SHAPES = [(), (3,), (2, 3), (2, 3, 4, 5), (2, 0, 4), (1, 7, 1, 1)]
_OFFSETS = [0, 5, 2**32, 2**40 + 3]
_FIELDS = (
    "scalar_type",
    "shape",
    "stride",
    "dim_order",
    "const",
    "layout",
    "is_sparse",
    "requires_grad",
    "alignment",
    "lifetime",
    "mem_id",
    "mem_obj_id",
    "mem_offset",
    "storage_base",
    "storage_base_offset",
    "inplace_base",
    "shape_dynamism",
    "device",
    "device_index",
    "extra_tensor_info",
    "allocated_memory",
    "is_dynamic_unbound_tensor",
    "dtype",
    "is_static_shape_tensor",
    "is_dynamic_shape_tensor",
    "is_upper_bound_tensor",
)

Pairs = Iterator[tuple[str, Any, Any]]


def _layouts(x: torch.Tensor) -> list[torch.Tensor]:
    if x.dim() != 4:
        return [x]
    return [x, x.to(memory_format=torch.channels_last), x.permute(3, 0, 2, 1)]


def specs() -> Pairs:
    """Specs of tensors in three layouts."""
    dtypes = (torch.float32, torch.int8, torch.bool)
    for shape, dtype, const in itertools.product(_SHAPES, dtypes, (True, False)):
        for x in _layouts(torch.zeros(shape, dtype=dtype)):
            ours, theirs = (s.from_tensor(x, const) for s in (TensorSpec, stock.TensorSpec))
            case = f"{shape} {dtype} {const} {x.stride()}"
            for name in _FIELDS:
                yield f"{case} {name}", getattr(ours, name), getattr(theirs, name)
            yield f"{case} nbytes", ours.nbytes(), theirs.nbytes()
            yield f"{case} storage", ours.storage is None, not const
            yield f"{case} realign", ours.realign(64), theirs.realign(64)
            one, two = (spec.debug().split("scalar")[1] for spec in (ours, theirs))
            yield f"{case} debug", one, two
            yield f"{case} repr", repr(ours), repr(theirs)


def strides() -> Pairs:
    """Strides, dim orders and bytes of shapes."""
    for shape in _SHAPES:
        for order in itertools.permutations(range(len(shape))):
            made = tensor.stride_from_dim_order(list(shape), list(order))
            theirs = stock.stride_from_dim_order(list(shape), list(order))
            yield f"{shape} {order} stride", made, theirs
            found = tensor.dim_order_from_stride(made)
            yield f"{shape} {order} dim order", found, stock.dim_order_from_stride(tuple(made))
        plain = tensor.contiguous_stride_from_shape(shape)
        yield f"{shape}", plain, stock.contiguous_stride_from_shape(torch.Size(shape))
        for dtype in (torch.float16, torch.complex64, torch.uint8):
            size = tensor.num_bytes_from_shape_and_dtype(shape, dtype)
            theirs = stock.num_bytes_from_shape_and_dtype(torch.Size(shape), dtype)
            yield f"{shape} {dtype} bytes", size, theirs
            number = tensor.scalar_type_enum(dtype)
            yield f"{dtype} number", number, stock.scalar_type_enum(dtype)
            yield f"{dtype} of its number", str(tensor.get_scalar_type(number)), str(dtype)


def rows() -> Pairs:
    """Rows of program files."""
    for offset in _OFFSETS:
        row, theirs = tensor.make_allocation_info(2, offset), stock.make_allocation_info(2, offset)
        for name in ("memory_id", "memory_offset_low", "memory_offset_high"):
            yield f"{offset} {name}", getattr(row, name), getattr(theirs, name)
        x = torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last)
        ours = tensor.make_tensor_value(0, row, TensorSpec.from_tensor(x))
        other = stock.make_tensor_value(0, theirs, stock.TensorSpec.from_tensor(x))
        for name in ("scalar_type", "layout", "shape_dynamism", "data_buffer_idx", "requires_grad"):
            yield f"{offset} {name}", getattr(ours, name), getattr(other, name)
        for name in ("sizes", "dim_order"):
            yield f"{offset} {name}", [*getattr(ours, name)], [*getattr(other, name)]


def _answer(pairs: Callable[[], Pairs]) -> dict[str, Any]:
    found = [(case, one, two) for case, one, two in pairs()]
    wrong = [f"{case}: {one} for {two}" for case, one, two in found if one != two]
    return {"compared": len(found), "different": wrong}


if __name__ == "__main__":
    json.dump({each.__name__: _answer(each) for each in (specs, strides, rows)}, sys.stdout)
