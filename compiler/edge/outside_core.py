"""Decompositions of operators outside the core set that torch's export does not decompose.

The stock runtime has kernels for few of them and the verifier rejects all; an operator listed as an
exception is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import _decomp

from compiler.edge.config import EdgeCompileConfig
from compiler.untyped import aten

_torchs = cast("Any", _decomp).decomposition_table


def _left_shift(x: Any, places: Any) -> Any:  # noqa: ANN401
    factor = _power_of_two(x, places)
    return NotImplemented if factor is None else aten.mul.Scalar(x, factor)


def _right_shift(x: Any, places: Any) -> Any:  # noqa: ANN401
    factor = _power_of_two(x, places)
    if factor is None:
        return NotImplemented
    return aten.div.Scalar_mode(x, factor, rounding_mode="floor")


def _power_of_two(x: Any, places: Any) -> int | None:  # noqa: ANN401
    if x.dtype == torch.bool or not isinstance(places, int):
        return None
    return 1 << places if 0 <= places < torch.iinfo(x.dtype).bits - 1 else None


def _exp2(x: Any) -> Any:  # noqa: ANN401
    return aten.pow.Scalar(2.0, x)


def _var_mean(
    x: Any,  # noqa: ANN401
    dim: Any = None,  # noqa: ANN401
    *,
    correction: Any = None,  # noqa: ANN401
    keepdim: bool = False,
) -> Any:  # noqa: ANN401
    every = [*range(x.dim())] if dim is None else dim
    mean = aten.mean.dim(x, every, keepdim)
    return aten.var.correction(x, dim, correction=correction, keepdim=keepdim), mean


def _rrelu(
    x: Any,  # noqa: ANN401
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    generator: Any = None,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    del generator
    return NotImplemented if training else aten.leaky_relu.default(x, (lower + upper) / 2)


RULES: dict[Any, Callable[..., Any]] = {
    aten.__lshift__.Scalar: _left_shift,
    aten.__rshift__.Scalar: _right_shift,
    aten.bitwise_left_shift.Tensor_Scalar: _left_shift,
    aten.bitwise_right_shift.Tensor_Scalar: _right_shift,
    aten.exp2.default: _exp2,
    aten.rrelu.default: _rrelu,
    aten.var_mean.correction: _var_mean,
    **{
        op: _torchs[op]
        for op in (
            aten.adaptive_max_pool2d.default,
            aten.addmv.default,
            aten.bucketize.Tensor,
            aten.tril_indices.default,
            aten.triu_indices.default,
        )
    },
}


def kept_whole(config: EdgeCompileConfig) -> frozenset[Any]:
    """Return the preserved operators of a configuration, and those of ours that it allows."""
    allowed = config.exceptions if config.check_ir_validity else RULES.keys()
    return frozenset((*(config.preserve_ops or ()), *(RULES.keys() & allowed)))
