"""Checks of the kernels of vendors: sizes that a program asks for."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from runtime.errors import invalid_argument

_MOST_ELEMENTS = 1 << 28  # 1 GB of float32


def check_size(*sizes: int) -> None:
    """Check the sizes of a tensor that a kernel is going to allocate.

    Raises: ExecutionError InvalidArgument for sizes below zero, or too many elements
    """
    if min(sizes, default=0) < 0 or math.prod(sizes) > _MOST_ELEMENTS:
        raise invalid_argument(f"a tensor of {'x'.join(map(str, sizes))} elements is not allowed")


def check_padded(image: torch.Tensor, *padding: Sequence[int]) -> None:
    """Check the size of an image [batch, channel, ...] with padding on both sides.

    Raises: ExecutionError InvalidArgument as `check_size`
    """
    sizes = list(image.shape)
    for pads in padding:
        for dim, pad in zip(range(2, image.dim()), pads, strict=False):
            sizes[dim] += 2 * abs(int(pad))
    check_size(*sizes)


def check_dtype(name: str, tensor: torch.Tensor, *allowed: torch.dtype) -> None:
    """Check the dtype of an operand.

    Raises: ExecutionError InvalidArgument naming the operand
    """
    if tensor.dtype not in allowed:
        known = ", ".join(str(one).removeprefix("torch.") for one in allowed)
        raise invalid_argument(f"{name} is {tensor.dtype}; the operator takes {known}")
