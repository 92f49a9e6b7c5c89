"""One dtype for the operands of arithmetic, as the edge dialect asks for."""

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


def promoted_dtype(
    op: Any,  # noqa: ANN401
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> torch.dtype | None:
    """Return the dtype both operands must have, None where the operator takes mixed ones."""
    if op not in _KINDS or len(args) < 2:
        return None
    kind = _KINDS[op]
    if op is aten.div.Tensor_mode and kwargs.get("rounding_mode") is None:
        kind = Kind.INT_TO_FLOAT
    return elementwise_dtypes(*args[:2], type_promotion_kind=kind)[1]


def promotes(op: Any) -> bool:  # noqa: ANN401
    """Return whether the operands of an operator are brought to one dtype."""
    return op in _KINDS
