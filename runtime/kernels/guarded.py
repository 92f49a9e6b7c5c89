"""Kernels of torch that trust their arguments: what they rely on is checked before they run.

torch checks these where eager mode calls them, a level higher; here programs call them directly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from runtime.errors import invalid_argument
from runtime.kernels.rule import Rule, result
from runtime.untyped import aten

Tensor = torch.Tensor


def _channels(values: Tensor, parameters: Sequence[Tensor | None]) -> None:
    if values.dim() < 2:
        raise invalid_argument(f"a tensor of {values.dim()} dimensions has no channels")
    for entry in parameters:
        if entry is not None and entry.shape != values.shape[1:2]:
            raise invalid_argument(
                f"a parameter of sizes {list(entry.shape)} for {values.shape[1]} channels"
            )


def _batch_norm(
    run: Callable[..., Any],
    count: int,
    values: Tensor,
    *arguments: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401 - three tensors
    _channels(values, arguments[:count])
    return run(values, *arguments)


def _batch_norm_of_batch(
    values: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Any:  # noqa: ANN401 - three tensors
    if not training:
        raise invalid_argument("without running statistics the batch's own have to be used")
    _channels(values, (weight, bias))
    return aten._native_batch_norm_legit.no_stats(values, weight, bias, training, momentum, eps)


def _group_norm(  # noqa: PLR0913 - the operator's own arguments
    values: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    batch: int,
    channels: int,
    inner: int,
    groups: int,
    eps: float,
) -> Any:  # noqa: ANN401 - three tensors
    _channels(values, (weight, bias))
    sound = values.shape[0] == batch and values.shape[1] == channels and groups > 0
    if not sound or channels % groups or batch * channels * inner != values.numel():
        raise invalid_argument(
            f"{batch} x {channels} x {inner} in {groups} groups does not fit {list(values.shape)}"
        )
    values = values.contiguous()  # a permuted one is a view if it was not copied; torch refuses it
    return aten.native_group_norm.default(values, weight, bias, batch, channels, inner, groups, eps)


def _unpooled(gradient: Tensor, values: Tensor, *arguments: Any) -> Any:  # noqa: ANN401
    indices: Tensor = arguments[-1]
    plane = values.shape[-1] * values.shape[-2] if values.dim() > 1 else 0
    if indices.numel() and not (0 <= int(indices.min()) <= int(indices.max()) < plane):
        raise invalid_argument(f"an index lies outside of a plane of {plane} elements")
    return aten.max_pool2d_with_indices_backward.default(gradient, values, *arguments)


def _transformed(
    run: Callable[..., Any],
    values: Tensor,
    dims: Sequence[int],
    *arguments: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401 - a tensor
    rank = values.dim()
    placed = {dim % rank for dim in dims if -rank <= dim < rank}
    if len(placed) != len(dims) or not dims or not values.numel():
        raise invalid_argument(f"dimensions {list(dims)} of a tensor of {rank} dimensions")
    return run(values, [dim % rank for dim in dims], *arguments)


TABLE: dict[str, Rule] = {
    "aten::_fft_c2r.out": result(partial(_transformed, aten._fft_c2r.default)),
    "aten::_fft_r2c.out": result(partial(_transformed, aten._fft_r2c.default)),
    "aten::_native_batch_norm_legit.no_stats_out": result(_batch_norm_of_batch),
    "aten::_native_batch_norm_legit.out": result(
        partial(_batch_norm, aten._native_batch_norm_legit.default, 4)
    ),
    "aten::_native_batch_norm_legit_no_training.out": result(
        partial(_batch_norm, aten._native_batch_norm_legit_no_training.default, 4)
    ),
    "aten::max_pool2d_with_indices_backward.grad_input": result(_unpooled),
    "aten::native_group_norm.out": result(_group_norm),
}
