"""Calls of the Cortex-M operators: random int8 values, sizes and scales."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

Call = tuple[str, tuple[Any, ...]]
_LAST = torch.channels_last


def _int8(*shape: int) -> torch.Tensor:
    return torch.randint(-128, 128, shape, dtype=torch.int8)


def _number(low: int, high: int) -> int:
    return int(torch.randint(low, high, ()))


def _scale() -> tuple[int, int]:
    return _number(1 << 30, (1 << 31) - 1), _number(-12, 1)


def _scales(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    multipliers = torch.randint(1 << 30, (1 << 31) - 1, (count,), dtype=torch.int32)
    return multipliers, torch.randint(-14, 1, (count,), dtype=torch.int32)


def _elementwise() -> Iterator[Call]:
    pairs = [
        (_int8(2, 3, 4), _int8(2, 3, 4)),
        (
            _int8(2, 5, 3, 3).to(memory_format=_LAST),
            _int8(1, 5, 1, 1).to(memory_format=_LAST),
        ),
        (_int8(7), _int8(7)),
    ]
    for a, b in pairs:
        first, second = _number(-128, 127), _number(-128, 127)
        yield (
            "quantized_add",
            (a, first, *_scale(), b, second, *_scale(), _number(-100, 100), *_scale(), -90, 120),
        )
        yield "quantized_mul", (a, first, b, second, _number(-100, 100), *_scale())
        if a.shape == b.shape:
            yield "quantized_div", (a, first, b, second, _number(-100, 100), 3.7)
        yield "minimum", (a, b)
        yield "maximum", (a, b)
        table = _int8(256)
        yield "quantized_activation", (a, table)


def _dense() -> Iterator[Call]:
    zeros = (_number(-128, 128), _number(-128, 128), _number(-128, 128))
    matrices = (_int8(2, 4, 9), zeros[0], _int8(2, 5, 9), zeros[1], zeros[2], *_scale())
    yield "quantized_batch_matmul", (*matrices, torch.zeros(0, dtype=torch.int8))
    bias = torch.randint(-5000, 5000, (6,), dtype=torch.int32)
    sums = torch.randint(-5000, 5000, (6,), dtype=torch.int32)
    for shape in ((3, 9), (2, 2, 9), (9,)):
        multiplier, shift = _scale()
        common = (*zeros, [multiplier], [shift], 120, -110)
        for given, held in ((bias, None), (None, sums), (None, None)):
            yield "quantized_linear", (_int8(*shape), _int8(6, 9), given, held, *common)
    for dim in (-1, 1):
        yield "softmax", (_int8(2, 3, 5), dim, 3, -128, _number(1 << 30, (1 << 31) - 1), 23, -31)


def _moves() -> Iterator[Call]:
    yield "transpose", (_int8(2, 3, 4, 5), [0, 2, 3, 1])
    yield "pad", (_int8(3, 4), [0, 0, 1, 2], [0, 0, 0, 3], -7)
    image = _int8(1, 3, 4, 5)
    for one in (image, image.to(memory_format=_LAST), _int8(1, 1, 4, 5)):
        yield "pad", (one, [0, 1, 2, 0], [0, 2, 0, 1], 5)


def _convolutions() -> Iterator[Call]:
    for stride, pad, apart in (([1, 1], [0, 0], [1, 1]), ([2, 1], [1, 2], [1, 1])):
        for groups in (1, 2):
            image = _int8(2, 4, 8, 8).to(memory_format=_LAST)
            weight = _int8(6, 3, 2, 4 // groups)
            for bias in (None, torch.randint(-9000, 9000, (6,), dtype=torch.int32)):
                rest = (_number(-127, 128), 5, *_scales(6), -100, 127, _int8(0))
                call = (weight, bias, stride, pad, apart, *rest)
                yield "quantized_conv2d", (image, *call)
                yield "quantized_conv2d_nhwc", (_int8(2, 8, 8, 4), *call)
                if groups == 1:
                    more = (weight, bias, stride, [0, 1], [0, 0], apart, *rest, _int8(0))
                    yield "quantized_transpose_conv2d", (image, *more)
                    yield "quantized_transpose_conv2d_nhwc", (_int8(2, 8, 8, 4), *more)
        deep = (_int8(1, 3, 2, 8), None, stride, pad, apart, 2, 7, -3, *_scales(8), -128, 127)
        yield "quantized_depthwise_conv2d", (image, *deep, _int8(0))
        yield "quantized_depthwise_conv2d_nhwc", (_int8(2, 8, 8, 4), *deep, _int8(0))


def _pools() -> Iterator[Call]:
    for kernel, stride, pad in (
        ([2, 2], [2, 2], [0, 0]),
        ([3], [1], [1]),
        ([3, 2], [2, 1], [1, 1]),
    ):
        for image, name in ((_int8(2, 3, 8, 9), ""), (_int8(2, 8, 9, 3), "_nhwc")):
            for ceil in (False, True):
                rest = (ceil, 5, _number(1 << 30, (1 << 31) - 1), -4, _int8(0))
                yield f"quantized_avg_pool2d{name}", (image, kernel, stride, pad, *rest)
            whole = (image, kernel, stride, pad, [1, 1], False, 4, 4, -100, 110)
            yield f"quantized_max_pool2d{name}", whole


def _conversions() -> Iterator[Call]:
    real = torch.randn(4, 5) * 3
    yield "quantize_per_tensor", (real, 0.0371, 4, -128, 127, torch.int8)
    yield "dequantize_per_tensor", (_int8(4, 5), 0.0371, 4, -128, 127, torch.int8)


GROUPS = (_elementwise, _dense, _moves, _convolutions, _pools, _conversions)
