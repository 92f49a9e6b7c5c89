"""Layers by torch's packed kernels, with the activation inside, where torch has them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from runtime.backends.xnnpack.pooling import Margins, widened
from runtime.untyped import aten

Tensor = torch.Tensor
Activation = tuple[float, float]
_WIDE = 256  # wider margins are put on apart, where their size is checked
_torch: Any = torch
_mkldnn: Any = torch.ops.mkldnn


@dataclass(frozen=True, slots=True)
class Window:
    """How a filter moves over an image.

    Attributes:
        stride: steps down and across
        dilation: distance of the filter's elements
        groups: how many parts the channels are in
        margins: zeros around the image
    """

    stride: tuple[int, int]
    dilation: tuple[int, int]
    groups: int
    margins: Margins


def convolve(
    filters: Tensor,
    bias: Tensor | None,
    window: Window,
    activation: Activation | None,
    *,
    movable: bool = False,
) -> Callable[[Tensor], Tensor]:
    """Return a convolution of images with channels last.

    Args:
        filters: of shape (O, I / groups, H, W)
        bias: one number a channel
        window: how the filter moves
        activation: bounds of the result
        movable: whether margins depend on the image and are put on by the caller
    """
    left, right, top, bottom = (0, 0, 0, 0) if movable else window.margins
    if left == right <= _WIDE and top == bottom <= _WIDE:
        return _even(filters, bias, window, (top, left), activation)
    inner = _even(filters, bias, window, (0, 0), activation)
    return lambda image: inner(widened(image, (left, right, top, bottom), 0.0))


def _even(
    filters: Tensor,
    bias: Tensor | None,
    window: Window,
    padding: tuple[int, int],
    activation: Activation | None,
) -> Callable[[Tensor], Tensor]:
    if has_packed():
        return _packed(filters, bias, window, padding, activation)
    filters = filters.contiguous(memory_format=torch.channels_last)
    low, high = (None, None) if activation is None else activation

    def run(image: Tensor) -> Tensor:
        found = aten.convolution.default(
            image,
            filters,
            bias,
            window.stride,
            padding,
            window.dilation,
            False,
            [0, 0],
            window.groups,
        )
        return found if low is None else found.clamp_(low, high)

    return run


def multiply(
    filters: Tensor, bias: Tensor | None, activation: Activation | None, rows: int
) -> Callable[[Tensor], Tensor]:
    """Return a product of the last dimension.

    Args:
        filters: of shape (O, I)
        bias: one number an output
        activation: bounds of the result
        rows: how many there are likely to be; any number is right
    """
    single = filters.dtype is torch.float32 and (bias is None or bias.dtype is torch.float32)
    if single and filters.numel() and has_packed():
        packed = _mkldnn._reorder_linear_weight(filters.contiguous(), max(1, rows))
        name, numbers = _after(activation)
        call = _mkldnn._linear_pointwise.default

        def run(held: Tensor) -> Tensor:
            if held.numel():
                return call(held, packed, bias, name, numbers, None)
            return aten.linear.default(held, filters, bias)

        return run
    if activation is None:
        return lambda held: aten.linear.default(held, filters, bias)
    low, high = activation
    return lambda held: aten.linear.default(held, filters, bias).clamp_(low, high)


def has_packed() -> bool:
    """Return whether torch was built with packed kernels."""
    available = bool(_torch.backends.mkldnn.is_available())
    return available and hasattr(_mkldnn, "_convolution_pointwise")


def _packed(
    filters: Tensor,
    bias: Tensor | None,
    window: Window,
    padding: tuple[int, int],
    activation: Activation | None,
) -> Callable[[Tensor], Tensor]:
    stride, dilation, groups = window.stride, window.dilation, window.groups
    packed = _mkldnn._reorder_convolution_weight(filters, padding, stride, dilation, groups)
    name, numbers = _after(activation)
    call = _mkldnn._convolution_pointwise.default

    def run(image: Tensor) -> Tensor:
        return call(image, packed, bias, padding, stride, dilation, groups, name, numbers, None)

    return run


def _after(activation: Activation | None) -> tuple[str, list[float]]:
    if activation is None or activation == (float("-inf"), float("inf")):
        return "none", []
    if activation == (0.0, float("inf")):
        return "relu", []
    return "hardtanh", list(activation)
