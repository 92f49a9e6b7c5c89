"""Memory layouts that the kernels of the stock runtime support.

They support dim orders other than contiguous only for elementwise operators with
equal layouts, convolution, max pooling and copies; elsewhere they reject or misread them.
"""

from __future__ import annotations

from typing import Any

import torch

from compiler.dialect.dim_order import dim_order_of, is_contiguous, is_dense
from compiler.dialect.templates import tensors_in
from compiler.untyped import aten

_WINDOWS = frozenset((aten.convolution.default, aten.max_pool2d_with_indices.default))
_KEEP_ORDER = frozenset(
    (
        aten._adaptive_avg_pool2d.default,
        aten.avg_pool2d.default,
        aten.cat.default,
        aten.constant_pad_nd.default,
        aten.replication_pad2d.default,
        aten.reflection_pad2d.default,
        aten.upsample_bilinear2d.vec,
        aten.upsample_nearest2d.vec,
    )
)
_QUANTIZATION = frozenset(  # by element, whatever the order; those by channel or token read rows
    f"quantized_decomposed::{name}"
    for name in ("quantize_per_tensor", "dequantize_per_tensor", "choose_qparams")
)
_ANY_ORDER = _WINDOWS | {aten.clone.default, aten._to_copy.default}


def takes_layouts(op: Any, args: tuple[Any, ...]) -> bool:  # noqa: ANN401
    """Return whether the stock kernel supports the memory layouts of these tensors."""
    given = tensors_in(args)
    if op in _ANY_ORDER or all(is_contiguous(tensor) for tensor in given):
        return True
    if op._schema.name in _QUANTIZATION:
        return is_dense(given[0])
    if torch.Tag.pointwise not in op.tags or _begins_with_a_number(op, args):
        return False
    first = given[0]
    return all(_lies_like(first, other) for other in given[1:])


def _lies_like(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether two tensors have one shape and layout for all sizes they may have.

    Comparing a dynamic size would specialize it.
    """
    sizes: Any = (*one.shape, *one.stride())
    others: Any = (*other.shape, *other.stride())
    return one.dim() == other.dim() and [*map(str, sizes)] == [*map(str, others)]


def _begins_with_a_number(op: Any, args: tuple[Any, ...]) -> bool:  # noqa: ANN401
    """Return whether the first operand is a scalar, which becomes a tensor without dimensions."""
    if isinstance(args[0], (torch.Tensor, list, tuple)):
        return False
    return isinstance(op._schema.arguments[0].type, torch.TensorType)


def changes_order(op: Any, args: tuple[Any, ...], out: Any) -> bool:  # noqa: ANN401
    """Return whether the dim order of a result differs from that of the first operand.

    Torch uses the order of the weights, and with one channel or pixel orders are indistinguishable;
    the
    stock kernels of convolution, pooling, resizing and concatenation require equal orders of input
    and output.
    """
    if op not in _WINDOWS and op not in _KEEP_ORDER:
        return False
    order = dim_order_of(tensors_in(args)[0])
    return any(dim_order_of(tensor) != order for tensor in tensors_in(out))


def scalar_overload(op: Any, args: tuple[Any, ...]) -> Any:  # noqa: ANN401
    """Return the overload whose second operand is a scalar, or None.

    A scalar passed as a constant tensor has no dimensions, so never the layout of the first
    operand.
    """
    if torch.Tag.pointwise not in op.tags or op._overloadname != "Tensor" or len(args) < 2:
        return None
    first = args[0]
    if not isinstance(first, torch.Tensor) or is_contiguous(first):
        return None
    return getattr(op.overloadpacket, "Scalar", None)
