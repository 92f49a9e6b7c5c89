"""Kernels that torch has for fewer dtypes than the stock library.

The missing dtypes are computed in a wider one and cast back; integers are rounded toward zero.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from runtime.kernels.rule import Rule, result
from runtime.untyped import aten

_INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
_HALF = (torch.float16, torch.bfloat16)


def _upcast(
    run: Callable[..., Any],
    narrow: tuple[torch.dtype, ...],
    wide: torch.dtype,
    *arguments: Any,  # noqa: ANN401 - whatever the operator takes
    **named: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401 - a tensor
    first = arguments[0]
    if first.dtype not in narrow:
        return run(*arguments, **named)
    dtype = first.dtype
    given = [
        value.to(wide) if isinstance(value, torch.Tensor) and value.dtype is dtype else value
        for value in arguments
    ]
    return run(*given, **named).to(dtype)


def _wide(
    run: Callable[..., Any], narrow: tuple[torch.dtype, ...], wide: torch.dtype = torch.float64
) -> Rule:
    return result(partial(_upcast, run, narrow, wide))


_PADS = {
    f"aten::{kind}_pad{dims}d.out": _wide(
        getattr(aten, f"{kind}_pad{dims}d").default, (torch.bool,), torch.uint8
    )
    for kind in ("reflection", "replication")
    for dims in (1, 2, 3)
}
TABLE: dict[str, Rule] = {
    **_PADS,
    "aten::_adaptive_avg_pool2d.out": _wide(aten._adaptive_avg_pool2d.default, _INTEGERS),
    "aten::_cdist_forward.out": _wide(aten._cdist_forward.default, _HALF, torch.float32),
    "aten::_pdist_forward.out": _wide(aten._pdist_forward.default, _HALF, torch.float32),
    "aten::_upsample_bilinear2d_aa.out": _wide(
        aten._upsample_bilinear2d_aa.default, (*_INTEGERS, *_HALF), torch.float32
    ),
    "aten::avg_pool2d.out": _wide(aten.avg_pool2d.default, _INTEGERS),
    "aten::convolution.out": _wide(aten.convolution.default, _INTEGERS),
    "aten::grid_sampler_2d.out": _wide(
        aten.grid_sampler_2d.default, (*_INTEGERS, *_HALF), torch.float32
    ),
    "aten::upsample_bilinear2d.vec_out": _wide(
        aten.upsample_bilinear2d.vec, _INTEGERS, torch.float32
    ),
    "aten::upsample_nearest2d.vec_out": _wide(aten.upsample_nearest2d.vec, _INTEGERS),
}
