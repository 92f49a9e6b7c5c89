"""Operators of MIL that compute each element: arithmetic, comparisons, activations.

Source: coremltools converters/mil/mil/ops/defs
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from runtime.backends.coreml.given import Given

Run = Callable[..., Any]
_ONE = (
    "abs acos acosh asin asinh atan atanh ceil cos cosh erf exp exp2 floor logical_not relu round "
    "sigmoid sign sin sinh sqrt square tan tanh"
)
_TWO = (
    "add greater greater_equal less less_equal logical_and logical_or logical_xor maximum minimum "
    "mul not_equal pow sub"
)


def _of_one(run: Run) -> Run:
    def called(x: Tensor) -> Tensor:
        return run(x)

    return called


def _of_two(run: Run) -> Run:
    def called(x: Tensor, y: Tensor) -> Tensor:
        return run(x, y)

    return called


def _clamped_relu(x: Tensor, alpha: Given, beta: Given) -> Tensor:
    return x.clamp(min=0).clamp(max=beta) + (x.clamp(max=0) * alpha).clamp(max=beta)


def _gelu(x: Tensor, mode: str = "EXACT") -> Tensor:
    if mode == "SIGMOID_APPROXIMATION":
        return x * torch.sigmoid(1.702 * x)
    return F.gelu(x, approximate="tanh" if mode == "TANH_APPROXIMATION" else "none")


def _by_channel(value: Tensor, x: Tensor) -> Tensor:
    if value.dim() != 1:
        return value
    return value.reshape([-1 if dim == 1 else 1 for dim in range(x.dim())])


def _prelu(x: Tensor, alpha: Tensor) -> Tensor:
    return x.clamp(min=0) + x.clamp(max=0) * _by_channel(alpha, x)


def _softplus_parametric(x: Tensor, alpha: Tensor, beta: Tensor) -> Tensor:
    return _by_channel(alpha, x) * F.softplus(x * _by_channel(beta, x))


def _clip(x: Tensor, alpha: Given, beta: Given) -> Tensor:
    return x.clamp(alpha, beta)


def _select(cond: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return torch.where(cond.bool(), a, b)


def _cast(x: Tensor, dtype: str) -> Tensor:
    if dtype == "bool":
        return x != 0
    # The value's own dtype follows: what is cast here is what does not fit into it.
    return x.trunc() if x.is_floating_point() and "int" in dtype else x


def _softmax(x: Tensor, axis: Given = -1) -> Tensor:
    return torch.softmax(x, int(axis))


def _floor_divided(x: Tensor, y: Tensor) -> Tensor:
    return torch.div(x, y, rounding_mode="floor")


_PLAIN: dict[str, Callable[[Any], Any]] = {
    "identity": lambda x: x,
    "relu6": F.relu6,
    "silu": F.silu,
    "softplus": F.softplus,
    "softsign": F.softsign,
}
_WITH_ONE: dict[str, Callable[[Any, Any], Any]] = {
    "elu": lambda x, alpha: torch.where(x < 0, alpha * torch.expm1(x), x),
    "inverse": lambda x, epsilon: torch.reciprocal(x + epsilon),
    "leaky_relu": lambda x, alpha: torch.where(x < 0, x * alpha, x),
    "log": lambda x, epsilon: torch.log(x + epsilon if epsilon else x),
    "rsqrt": lambda x, epsilon: torch.rsqrt(x + epsilon if epsilon else x),
    "threshold": lambda x, alpha: x.clamp(min=alpha),
    "thresholded_relu": lambda x, alpha: torch.where(x < alpha, 0, x),
}
_WITH_TWO: dict[str, Callable[[Any, Any, Any], Any]] = {
    "linear_activation": lambda x, alpha, beta: alpha * x + beta,
    "scaled_tanh": lambda x, alpha, beta: alpha * torch.tanh(x * beta),
    "sigmoid_hard": lambda x, alpha, beta: (alpha * x + beta).clamp(0, 1),
}
TABLE: dict[str, Run] = {
    **{name: _of_one(getattr(torch, name)) for name in _ONE.split()},
    **{name: _of_two(getattr(torch, name)) for name in _TWO.split()},
    **{name: _of_one(run) for name, run in _PLAIN.items()},
    **_WITH_ONE,
    **_WITH_TWO,
    "cast": _cast,
    "clamped_relu": _clamped_relu,
    "clip": _clip,
    "equal": _of_two(torch.eq),
    "floor_div": _of_two(_floor_divided),
    "gelu": _gelu,
    "mod": _of_two(torch.remainder),
    "prelu": _prelu,
    "real_div": _of_two(torch.div),
    "select": _select,
    "softmax": _softmax,
    "softplus_parametric": _softplus_parametric,
}
