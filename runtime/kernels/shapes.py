"""Kernels that copy a view of their input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from runtime.kernels.rule import Rule, fills, result
from runtime.memory.slots import TensorSlot
from runtime.untyped import aten


def _narrow(tensor: torch.Tensor, dim: int, start: int, length: int) -> torch.Tensor:
    return tensor.narrow(dim, start, length)


def _repeat(tensor: torch.Tensor, repeats: Sequence[int], out: TensorSlot) -> None:
    # The shape is checked before anything is allocated: a program may request any repeats.
    lead = len(repeats) - tensor.dim()
    if lead < 0 or min(repeats, default=0) < 0:
        raise ValueError(
            f"repeats {list(repeats)} do not fit a tensor of {tensor.dim()} dimensions"
        )
    sizes = [1] * lead + list(tensor.shape)
    out.resize([size * times for size, times in zip(sizes, repeats, strict=True)])
    if out.in_order:
        target, source = in_turns(tensor.shape, repeats)
        out.tensor.view(target).copy_(tensor.reshape(source))
    else:
        out.tensor.copy_(tensor.repeat(*repeats))


def in_turns(sizes: Sequence[int], repeats: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return sizes for a repeated tensor and for the tensor, so that a copy to it repeats it.

    Args:
        sizes: of the tensor
        repeats: of each dimension, and of those in front of them
    """
    own = [1] * (len(repeats) - len(sizes)) + list(sizes)
    pairs = list(zip(repeats, own, strict=True))
    target = [size for pair in pairs for size in pair]
    return target, [size for _, one in pairs for size in (1, one)]


def _split(tensor: torch.Tensor, size: int, dim: int = 0) -> Sequence[torch.Tensor]:
    return aten.split.Tensor(tensor, size, dim)


def _view_copy(tensor: torch.Tensor, size: Sequence[int]) -> Any:  # noqa: ANN401 - a tensor
    return tensor.reshape(tuple(size))


TABLE: dict[str, Rule] = {
    "aten::alias_copy.out": result(aten.alias.default),
    "aten::as_strided_copy.out": result(aten.as_strided.default),
    "aten::detach_copy.out": result(aten.detach.default),
    "aten::diagonal_copy.out": result(aten.diagonal.default),
    "aten::expand_copy.out": result(aten.expand.default),
    "aten::lift_fresh_copy.out": result(aten.alias.default),
    "aten::narrow_copy.out": result(_narrow),
    "aten::permute_copy.out": result(aten.permute.default),
    "aten::repeat.out": fills(_repeat),
    "aten::select_copy.int_out": result(aten.select.int),
    "aten::slice_copy.Tensor_out": result(aten.slice.Tensor),
    "aten::split_copy.Tensor_out": result(_split),
    "aten::split_with_sizes_copy.out": result(aten.split_with_sizes.default),
    "aten::squeeze_copy.dim_out": result(aten.squeeze.dim),
    "aten::squeeze_copy.dims_out": result(aten.squeeze.dims),
    "aten::t_copy.out": result(aten.t.default),
    "aten::transpose_copy.int_out": result(aten.transpose.int),
    "aten::unbind_copy.int_out": result(aten.unbind.int),
    "aten::unfold_copy.out": result(aten.unfold.default),
    "aten::unsqueeze_copy.out": result(aten.unsqueeze.default),
    "aten::view_as_real_copy.out": result(aten.view_as_real.default),
    "aten::view_copy.out": result(_view_copy),
}
