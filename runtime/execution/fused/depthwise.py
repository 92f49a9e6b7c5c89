"""Small depthwise convolutions over time, as in state space models: products of small tensors.

Torch's kernels take 50 us to begin with, a product of small tensors takes two to four. The smallest
are one batched matmul (128 channels of 8 steps: 16 us), others one product for each tap (35).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import torch

from runtime.execution.binding import BoundKernel
from runtime.execution.fused.dataflow import Dataflow

Tensor = torch.Tensor
_CONVOLUTION = "aten::convolution.out"
_MOST_PRODUCTS = 1 << 17  # of elements; with more, torch's kernels are faster
_MOST_TAPS = 8
_MOST_WINDOWS = 1 << 12  # with more results, a product for each tap is faster


@dataclass(frozen=True, slots=True)
class _Taps:
    """A depthwise convolution.

    Attributes:
        values: (batch, channels, length)
        weights: of each tap, (channels, 1)
        bias: (channels, 1), None if there is none
        padding: zeros before and after
        dilation: distance of two taps
    """

    values: Tensor
    weights: list[Tensor]
    bias: Tensor | None
    padding: int
    dilation: int

    def __call__(self) -> Tensor:
        """Return the result, (batch, channels, length)."""
        padded = _padded(self.values, self.padding)
        length = padded.shape[2] - self.dilation * (len(self.weights) - 1)
        first = padded.narrow(2, 0, length)
        if self.bias is None:
            found = torch.mul(first, self.weights[0])
        else:
            found = torch.addcmul(self.bias, first, self.weights[0])
        for tap, weight in enumerate(self.weights[1:], 1):
            found.addcmul_(padded.narrow(2, tap * self.dilation, length), weight)
        return found


@dataclass(frozen=True, slots=True)
class _Windows:
    """A depthwise convolution of one sample.

    Attributes:
        values: (1, channels, length)
        weights: (channels, taps, 1)
        bias: (channels, 1, 1), None if there is none
        padding: zeros before and after
    """

    values: Tensor
    weights: Tensor
    bias: Tensor | None
    padding: int

    def __call__(self) -> Tensor:
        """Return the result, (1, channels, length)."""
        padded = _padded(self.values, self.padding)
        windows = padded.unfold(2, self.weights.shape[1], 1).squeeze(0)
        if self.bias is None:
            found = torch.bmm(windows, self.weights)
        else:
            found = torch.baddbmm(self.bias, windows, self.weights)
        return found.view(1, found.shape[0], found.shape[1])


def _padded(values: Tensor, around: int) -> Tensor:
    return torch.constant_pad_nd(values, [around, around]) if around else values


def depthwise_taps(
    bound: BoundKernel, flow: Dataflow, known: Collection[int]
) -> Callable[[], Tensor] | None:
    """Return a call that computes a convolution by small products, None where kernels are faster.

    Args:
        bound: the kernel of the instruction
        flow: reads and writes of each tensor
        known: value indices of tensors that are constant in every run
    """
    arguments = bound.arguments
    if bound.kernel.name != _CONVOLUTION or arguments is None or not arguments.fixed:
        return None
    values, weight, bias, stride, padding, dilation, transposed, _, groups = arguments.current()[0]
    if transposed or values.dim() != 3 or list(stride) != [1]:
        return None
    given = [one for one in (values, weight, bias) if one is not None]
    constant = [index for index in bound.args[1:3] if index in flow.tensors]
    if any(one.dtype is not torch.float32 for one in given):
        return None
    if not all(flow.tensors[index].slot.constant or index in known for index in constant):
        return None
    if not all(map(flow.static, (bound.args[0], bound.args[len(bound.kernel.inputs)]))):
        return None
    channels, taps = weight.shape[0], weight.shape[2]
    if groups != channels or values.shape[1] != channels or not 1 <= taps <= _MOST_TAPS:
        return None
    around, apart = padding[0], dilation[0]
    padded = values.shape[2] + 2 * around
    if not 0 < values.shape[0] * channels * padded * taps <= _MOST_PRODUCTS:
        return None
    if not torch.isfinite(weight).all():  # times the zeros of the padding they would be NaN
        return None
    length = padded - (taps - 1)
    if values.shape[0] == apart == 1 and 0 < channels * length <= _MOST_WINDOWS:
        columns = weight.reshape(channels, taps, 1)
        return _Windows(values, columns, None if bias is None else bias.view(-1, 1, 1), around)
    each = [one.reshape(channels, 1) for one in weight[:, 0].unbind(1)]
    return _Taps(values, each, None if bias is None else bias.reshape(-1, 1), around, apart)
