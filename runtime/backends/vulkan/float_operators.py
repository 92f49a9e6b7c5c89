"""Fused operators of the Vulkan delegate on real values.

Source: backends/vulkan/runtime/graph/ops/impl of release 1.5.1
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from runtime.untyped import aten

_LARGEST = (1 << 63) - 1


def _conv_with_clamp(*given: Any) -> Tensor:  # noqa: ANN401 - of aten.convolution, then the bounds
    *arguments, low, high = given
    made = aten.convolution.default(*arguments)
    low = -math.inf if low is None else float(low)
    return made.clamp(low, math.inf if high is None else float(high))


def _grid_priors(x: Tensor, stride: int, offset: float) -> Tensor:
    height, width = x.shape[-2:]
    rows, columns = (
        torch.arange(size, dtype=torch.float32).add(offset).mul(stride) for size in (height, width)
    )
    grid = torch.meshgrid(rows, columns, indexing="ij")
    return torch.stack((grid[1].reshape(-1), grid[0].reshape(-1)), -1)


def _rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    wide = x.float()
    return wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps) * weight.float()


def _select_as_symint(x: Tensor, dim: int, index: int) -> int:
    return int(x.select(int(dim), int(index)).item())


def _gather(x: Tensor, dim: int, index: Tensor, _sparse: object = None) -> Tensor:
    return x.gather(dim, index.long())  # indices are held in 32 bits


def _select(x: Tensor, dim: int, index: int) -> Tensor:
    return x.select(int(dim), int(index))


def _slice(x: Tensor, dim: int, start: int | None, end: int | None, step: int = 1) -> Tensor:
    return aten.slice.Tensor(x, int(dim), _bound(start), _bound(end), int(step))


def _bound(index: float | None) -> int | None:
    """Return an index: it may be stored as the equal real number, the largest one rounded up."""
    return None if index is None else min(int(index), _LARGEST)


TABLE: dict[str, Callable[..., Any]] = {
    "aten.gather.default": _gather,
    "aten.select_copy.int": _select,
    "aten.slice_copy.Tensor": _slice,
    "et_vk.conv_with_clamp.default": _conv_with_clamp,
    "et_vk.grid_priors.default": _grid_priors,
    "et_vk.rms_norm.default": _rms_norm,
    "et_vk.select_as_symint.default": _select_as_symint,
}
