"""Promotion of operands to one dtype: for arithmetic, and where kernels need it.

The stock kernels that join tensors copy bytes where the dtypes differ but their sizes do
not, and those that write a part of a boolean tensor cut fractions off.
"""

from __future__ import annotations

from typing import Any

import torch

from compiler.untyped import PromotionKind as Kind
from compiler.untyped import aten, elementwise_dtypes

_KINDS = {
    aten.add.Tensor: Kind.DEFAULT,
    aten.sub.Tensor: Kind.DEFAULT,
    aten.mul.Tensor: Kind.DEFAULT,
    aten.minimum.default: Kind.DEFAULT,
    aten.div.Tensor: Kind.INT_TO_FLOAT,
    aten.div.Tensor_mode: Kind.DEFAULT,
}
_PARTS_OF_FIRST = (aten.slice_scatter.default, aten.select_scatter.default)


def promoted_dtype(
    op: Any,  # noqa: ANN401
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> torch.dtype | None:
    """Return the dtype both operands must have, None if the operator accepts mixed dtypes."""
    if op not in _KINDS or len(args) < 2:
        return None
    kind = _KINDS[op]
    if op is aten.div.Tensor_mode and kwargs.get("rounding_mode") is None:
        kind = Kind.INT_TO_FLOAT
    return elementwise_dtypes(*args[:2], type_promotion_kind=kind)[1]


def joined_dtype(op: Any, args: tuple[Any, ...]) -> torch.dtype | None:  # noqa: ANN401
    """Return the dtype that all concatenated tensors must be converted to.

    None if they have it, and for operators that concatenate nothing.
    """
    if op in _PARTS_OF_FIRST:
        given, dtype = args[:2], args[0].dtype
    elif op is aten.cat.default:
        given = args[0]
        dtype = op(*args).dtype if len({t.dtype for t in given}) > 1 else given[0].dtype
    else:
        return None
    return None if all(tensor.dtype == dtype for tensor in given) else dtype


def promotes(op: Any) -> bool:  # noqa: ANN401
    """Return whether the operands of an operator are promoted to one dtype."""
    return op in _KINDS
