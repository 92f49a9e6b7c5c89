"""Kernels of torch that do not check their arguments; they are checked here first.

torch checks these one level higher, in eager mode; here programs call them directly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from runtime.errors import invalid_argument
from runtime.kernels.rule import Rule, fills, result
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
        raise invalid_argument("without running statistics, training must be true")
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
    values = values.contiguous()  # a permuted input may be a view, which torch rejects
    return aten.native_group_norm.default(values, weight, bias, batch, channels, inner, groups, eps)


def _unpooled(gradient: Tensor, values: Tensor, *arguments: Any) -> Any:  # noqa: ANN401
    indices: Tensor = arguments[-1]
    plane = values.shape[-1] * values.shape[-2] if values.dim() > 1 else 0
    if indices.numel() and not (0 <= int(indices.min()) <= int(indices.max()) < plane):
        raise invalid_argument(f"an index is outside of a plane of {plane} elements")
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


def _adaptive_pooled_back(gradient: Tensor, values: Tensor) -> Any:  # noqa: ANN401
    lead = values.shape[:-2]
    if values.dim() not in (3, 4) or gradient.shape[:-2] != lead:
        raise invalid_argument(
            f"a gradient of sizes {list(gradient.shape)} for an input of {list(values.shape)}"
        )
    return aten._adaptive_avg_pool2d_backward.default(gradient, values)


def _embedding_back(
    gradient: Tensor, indices: Tensor, rows: int, padding: int, scale_by_frequency: bool
) -> Any:  # noqa: ANN401 - a tensor
    if gradient.shape[:-1] != indices.shape:
        raise invalid_argument(
            f"a gradient of sizes {list(gradient.shape)} for indices of {list(indices.shape)}"
        )
    if indices.numel() and not (0 <= int(indices.min()) <= int(indices.max()) < rows):
        raise invalid_argument(f"an index is outside of an embedding of {rows} rows")
    return aten.embedding_dense_backward.default(
        gradient, indices, rows, padding, scale_by_frequency
    )


def _layer_norm_back(  # noqa: PLR0913 - the operator's own arguments
    gradient: Tensor,
    values: Tensor,
    normalized: Sequence[int],
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mask: Sequence[bool],
) -> Any:  # noqa: ANN401 - three tensors, None where the mask leaves one out
    inner = math.prod(normalized)
    rows = values.numel() // inner if inner else 0
    if gradient.shape != values.shape or {mean.numel(), rstd.numel()} != {rows}:
        raise invalid_argument(
            f"a gradient of sizes {list(gradient.shape)} and {mean.numel()} means for an input of "
            f"{list(values.shape)} normalized over {list(normalized)}"
        )
    return aten.native_layer_norm_backward.default(
        gradient, values, normalized, mean, rstd, weight, bias, mask
    )


def _group_norm_back(  # noqa: PLR0913 - the operator's own arguments
    gradient: Tensor,
    values: Tensor,
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    batch: int,
    channels: int,
    inner: int,
    groups: int,
    mask: Sequence[bool],
) -> Any:  # noqa: ANN401 - three tensors, None where the mask leaves one out
    _channels(values, (weight,))
    fits = groups > 0 and not channels % groups and batch * channels * inner == values.numel()
    if not fits or gradient.shape != values.shape:
        raise invalid_argument(
            f"{batch} x {channels} x {inner} in {groups} groups does not fit {list(values.shape)} "
            f"with a gradient of sizes {list(gradient.shape)}"
        )
    if {mean.numel(), rstd.numel()} != {batch * groups}:
        raise invalid_argument(f"{mean.numel()} means for {batch} x {groups} groups")
    given = (gradient.contiguous(), values.contiguous(), mean.contiguous(), rstd.contiguous())
    return aten.native_group_norm_backward.default(
        *given, weight, batch, channels, inner, groups, mask
    )


def _embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    *rest: Any,  # noqa: ANN401 - the operator's own options, then four slots
) -> None:
    """Reduce the rows of an embedding by bags; the other results map rows to bags.

    torch leaves the second result empty where a kernel does not need it, but its shape inference
    does not for bfloat16, so that the plan may have a size for it.
    """
    rows, count = weight.shape[0], indices.numel()
    if count and not (0 <= int(indices.min()) <= int(indices.max()) < rows):
        raise invalid_argument(f"an index is outside of an embedding of {rows} rows")
    if offsets.numel() and not (0 <= int(offsets.min()) <= int(offsets.max()) <= count):
        raise invalid_argument(f"an offset is outside of {count} indices")
    options, slots = rest[:-4], rest[-4:]
    results: list[Tensor] = [*aten._embedding_bag.default(weight, indices, offsets, *options)]
    if not results[1].numel() and slots[1].tensor.numel():
        places = torch.arange(count, dtype=results[1].dtype)
        results[1] = torch.bucketize(places, offsets.to(places.dtype), right=True) - 1
    for slot, found in zip(slots, results, strict=True):
        slot.store(found)


TABLE: dict[str, Rule] = {
    "aten::_adaptive_avg_pool2d_backward.out": result(_adaptive_pooled_back),
    "aten::_embedding_bag.out": fills(_embedding_bag),
    "aten::_fft_c2r.out": result(partial(_transformed, aten._fft_c2r.default)),
    "aten::_fft_r2c.out": result(partial(_transformed, aten._fft_r2c.default)),
    "aten::_native_batch_norm_legit.no_stats_out": result(_batch_norm_of_batch),
    "aten::_native_batch_norm_legit.out": result(
        partial(_batch_norm, aten._native_batch_norm_legit.default, 4)
    ),
    "aten::_native_batch_norm_legit_no_training.out": result(
        partial(_batch_norm, aten._native_batch_norm_legit_no_training.default, 4)
    ),
    "aten::embedding_dense_backward.out": result(_embedding_back),
    "aten::max_pool2d_with_indices_backward.grad_input": result(_unpooled),
    "aten::native_group_norm.out": result(_group_norm),
    "aten::native_group_norm_backward.out": result(_group_norm_back),
    "aten::native_layer_norm_backward.out": result(_layer_norm_back),
}
