"""Convolution and matmul with torch's packed oneDNN kernels, with the activation fused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from runtime.backends.xnnpack.pooling import Padding, pad_image
from runtime.untyped import aten

Tensor = torch.Tensor
Activation = tuple[float, float]
_WIDE = 256  # wider padding is applied separately, where its size is checked
_torch: Any = torch
_mkldnn: Any = torch.ops.mkldnn


@dataclass(frozen=True, slots=True)
class Window:
    """How a filter moves over an image.

    Attributes:
        stride: vertical and horizontal
        dilation: vertical and horizontal
        groups: of channels
        padding: zeros around the image
    """

    stride: tuple[int, int]
    dilation: tuple[int, int]
    groups: int
    padding: Padding


def convolve(
    filters: Tensor,
    bias: Tensor | None,
    window: Window,
    activation: Activation | None,
    *,
    padded_by_caller: bool = False,
) -> Callable[[Tensor], Tensor]:
    """Return a convolution of images with channels last.

    Args:
        filters: of shape (O, I / groups, H, W)
        bias: one value per channel
        window: how the filter moves
        activation: bounds of the result
        padded_by_caller: whether the padding depends on the image, so that the caller applies it
    """
    left, right, top, bottom = (0, 0, 0, 0) if padded_by_caller else window.padding
    if left == right <= _WIDE and top == bottom <= _WIDE:
        return _symmetric(filters, bias, window, (top, left), activation)
    inner = _symmetric(filters, bias, window, (0, 0), activation)
    return lambda image: inner(pad_image(image, (left, right, top, bottom), 0.0))


def _symmetric(
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
    """Return a matmul over the last dimension.

    Args:
        filters: of shape (O, I)
        bias: one value per output
        activation: bounds of the result
        rows: expected number of rows, a hint for packing; every row count works
    """
    single = filters.dtype is torch.float32 and (bias is None or bias.dtype is torch.float32)
    if single and filters.numel() and has_packed():
        packed = _mkldnn._reorder_linear_weight(filters.contiguous(), max(1, rows))
        name, bounds = _activation(activation)
        call = _mkldnn._linear_pointwise.default

        def run(held: Tensor) -> Tensor:
            if held.numel():
                return call(held, packed, bias, name, bounds, None)
            return aten.linear.default(held, filters, bias)

        return run
    if activation is None:
        return lambda held: aten.linear.default(held, filters, bias)
    low, high = activation
    return lambda held: aten.linear.default(held, filters, bias).clamp_(low, high)


def has_packed() -> bool:
    """Return whether torch was built with oneDNN's packed kernels."""
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
    name, bounds = _activation(activation)
    call = _mkldnn._convolution_pointwise.default

    def run(image: Tensor) -> Tensor:
        return call(image, packed, bias, padding, stride, dilation, groups, name, bounds, None)

    return run


def _activation(activation: Activation | None) -> tuple[str, list[float]]:
    if activation is None or activation == (float("-inf"), float("inf")):
        return "none", []
    if activation == (0.0, float("inf")):
        return "relu", []
    return "hardtanh", list(activation)
