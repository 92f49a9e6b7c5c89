"""Convolutions, pooling, matrix products, resizing and Fourier transforms of TOSA 1.0.

Images are [batch, height, width, channel]. Integers are computed in float64, which holds the
48-bit sums exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from runtime.backends.tosa.integers import Facts, saturated, scaled, wide

_fft: Any = torch.fft


def _centred(x: Tensor, zero: Tensor) -> Tensor:
    """Return values without their zero point, integers in float64."""
    return x if x.is_floating_point() else x.double() - zero.double()


def _inward(x: Tensor) -> Tensor:
    return x.movedim(-1, 1)


def _outward(x: Tensor) -> Tensor:
    return x.movedim(1, -1)


def _with_bias(made: Tensor, bias: Tensor) -> Tensor:
    return made + bias.to(made.dtype)


def _margins(image: Tensor, pad: Sequence[int]) -> tuple[Tensor, tuple[int, ...]]:
    """Return an image and the padding that is left to a convolution: what both ends share."""
    before, after = tuple(pad[::2]), tuple(pad[1::2])
    return (image, before) if before == after else (_padded(image, pad), (0,) * len(before))


def _padded(x: Tensor, pad: Sequence[int], value: float = 0.0) -> Tensor:
    """Return an image with padding, before and after each dimension, outermost first."""
    if not any(pad):
        return x
    pairs = [pad[at : at + 2] for at in range(0, len(pad), 2)]
    return F.pad(x, [one for pair in reversed(pairs) for one in pair], value=value)


def conv(facts: Facts, x: Tensor, weight: Tensor, bias: Tensor, *zeros: Tensor) -> Tensor:
    """Return CONV2D or CONV3D; weights are [output, kernel, input]."""
    run = F.conv2d if x.dim() == 4 else F.conv3d
    image, margins = _margins(_inward(_centred(x, zeros[0])), facts["pad"])
    own = _inward(_centred(weight, zeros[1]))
    stride, dilation = tuple(facts["stride"]), tuple(facts["dilation"])
    given = bias.to(image.dtype).expand(own.shape[0])
    return _outward(run(image, own, given, stride, margins, dilation))


def depthwise(facts: Facts, x: Tensor, weight: Tensor, bias: Tensor, *zeros: Tensor) -> Tensor:
    """Return DEPTHWISE_CONV2D; weights are [height, width, channel, multiplier]."""
    own = _centred(weight, zeros[1]).permute(2, 3, 0, 1).flatten(0, 1).unsqueeze(1)
    image, margins = _margins(_inward(_centred(x, zeros[0])), facts["pad"])
    stride, dilation = tuple(facts["stride"]), tuple(facts["dilation"])
    given = bias.to(image.dtype).expand(own.shape[0])
    return _outward(F.conv2d(image, own, given, stride, margins, dilation, x.shape[-1]))


def transposed(facts: Facts, x: Tensor, weight: Tensor, bias: Tensor, *zeros: Tensor) -> Tensor:
    """Return TRANSPOSE_CONV2D; weights are [output, height, width, input]."""
    own = _centred(weight, zeros[1]).permute(3, 0, 1, 2)
    image = _inward(_centred(x, zeros[0]))
    made = F.conv_transpose2d(image, own, None, tuple(facts["stride"]))
    return _with_bias(_outward(_padded(made, facts["out_pad"])), bias)


def matmul(a: Tensor, b: Tensor, a_zero: Tensor, b_zero: Tensor) -> Tensor:
    """Return a product of batches of matrices."""
    return torch.bmm(_centred(a, a_zero), _centred(b, b_zero))


def avg_pool(facts: Facts, dtype: str, x: Tensor, in_zero: Tensor, out_zero: Tensor) -> Tensor:
    """Return AVG_POOL2D: means over what lies in the image."""
    kernel, stride = tuple(facts["kernel"]), tuple(facts["stride"])
    image = _padded(_inward(_centred(x, in_zero)), facts["pad"])
    inside = _padded(torch.ones(1, 1, *x.shape[1:3], dtype=image.dtype), facts["pad"])
    count = F.avg_pool2d(inside, kernel, stride, divisor_override=1)
    total = F.avg_pool2d(image, kernel, stride, divisor_override=1)
    if x.is_floating_point():
        return _outward(total / count)
    sizes = count.long()
    bits = torch.frexp((sizes - 1).double()).exponent.long()  # as reciprocal_scale has them
    factor = torch.div(((1 << 30) + 1) << bits, sizes, rounding_mode="trunc")
    made = scaled(total.round().long(), factor, 30 + bits, double_round=False)
    return _outward(saturated(made + wide(out_zero), dtype))


def max_pool(facts: Facts, x: Tensor) -> Tensor:
    """Return MAX_POOL2D."""
    image = _inward(x if x.is_floating_point() else x.double())
    if facts.get("nan_mode") == "ignore":
        image = image.nan_to_num(-torch.inf, torch.inf, -torch.inf)
    padded = _padded(image, facts["pad"], -torch.inf)
    return _outward(F.max_pool2d(padded, tuple(facts["kernel"]), tuple(facts["stride"])))


def resize(facts: Facts, x: Tensor, scale: Any, offset: Any, border: Any) -> Tensor:  # noqa: ANN401
    """Return RESIZE: nearest or bilinear, with rational positions."""
    real = x.is_floating_point()
    value = x if real else x.long()
    nearest = facts["mode"] == "nearest"
    for axis in (0, 1):
        over, under = int(scale[2 * axis]), int(scale[2 * axis + 1])
        value = _along(
            value, axis + 1, (over, under, int(offset[axis]), int(border[axis])), nearest
        )
    return value


def _along(x: Tensor, dim: int, place: tuple[int, int, int, int], nearest: bool) -> Tensor:
    over, under, offset, border = place
    count = ((x.shape[dim] - 1) * over - offset + border) // under + 1
    at = torch.arange(count) * under + offset
    first = torch.div(at, over, rounding_mode="floor")
    part = at - first * over
    low, high = (one.clamp(0, x.shape[dim] - 1) for one in (first, first + 1))
    if nearest:
        return x.index_select(dim, torch.where(2 * part >= over, high, low))
    shape = [1] * x.dim()
    shape[dim] = count
    before, after = x.index_select(dim, low), x.index_select(dim, high)
    if not x.is_floating_point():
        part = part.reshape(shape)
        return before * (over - part) + after * part
    share = (part.double() / over).to(x.dtype).reshape(shape)
    return before * (1 - share) + after * share


def fft(facts: Facts, real: Tensor, imaginary: Tensor) -> tuple[Tensor, Tensor]:
    """Return FFT2D, in neither direction divided by the number of elements."""
    given = torch.complex(real, imaginary)
    made = _fft.ifft2(given, norm="forward") if facts["inverse"] else _fft.fft2(given)
    return made.real, made.imag


def rfft(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return RFFT2D."""
    made = _fft.rfft2(x)
    return made.real, made.imag
