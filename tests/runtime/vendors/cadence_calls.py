"""Calls of the Cadence operators: random values, sizes and scales."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

Call = tuple[str, tuple[Any, ...]]
I8, U8, I16, I32 = torch.int8, torch.uint8, torch.int16, torch.int32
_ASYM = {"asym8s": I8, "asym8u": U8, "asym16s": I16, "asym16u": torch.uint16, "asym32s": I32}
_MULTIPLIER = -(1 << 30)


def _ints(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    limits = torch.iinfo(dtype)
    low, high = max(limits.min, -30000), min(limits.max, 30000)
    return torch.randint(low, high + 1, shape).to(dtype)


def _one(value: float, dtype: torch.dtype = I32) -> torch.Tensor:
    return torch.tensor([value], dtype=dtype)


def _conversions() -> Iterator[Call]:
    real = torch.randn(4, 6) * 4
    for name, dtype in {"": I8, **{f"_{key}": one for key, one in _ASYM.items()}}.items():
        limits = torch.iinfo(dtype)
        rest = (0.0273, 7, limits.min, limits.max, dtype)
        yield f"quantize_per_tensor{name}", (real, *rest)
        yield f"dequantize_per_tensor{name}", (_ints(dtype, 4, 6), *rest)
    for to in (I8, U8, I16):
        yield "requantize.per_tensor", (_ints(I8, 5, 5), 0.03, 4, 0.07, -2, to)
        scales = (_one(0.03, torch.float32), _one(4), _one(0.07, torch.float32), _one(1))
        yield "requantize", (_ints(U8, 5, 5), *scales, to)


def _binaries() -> Iterator[Call]:
    for dtype, name in ((I8, "asym8sxasym8s_asym8s"), (U8, "asym8uxasym8u_asym8u")):
        x, y = _ints(dtype, 3, 5), _ints(dtype, 1, 5)
        call = (x, 0.031, 3, y, 0.017, -4, 0.043, 9)
        for operator in ("quantized_add", "quantized_mul"):
            yield f"{operator}.per_tensor", call
        yield f"quantized_add_{name}.per_tensor", call
        scales = (_one(0.031, torch.float32), _one(3))
        yield "quantized_add", (x, *scales, y, *scales, 0.043, 9)


def _matmuls() -> Iterator[Call]:
    for dtype, name in ((I8, "asym8sxasym8s_asym8s"), (U8, "asym8uxasym8u_asym8u")):
        weight, bias = _ints(dtype, 6, 9), torch.randint(-900, 900, (6,), dtype=I32)
        for operator, rows in (("quantized_linear", (2, 4)), ("quantized_fully_connected", (1,))):
            x = _ints(dtype, *rows, 9)
            numbers = (x, weight, bias, 3, -2, _MULTIPLIER, -7, 5, None)
            yield f"{operator}.per_tensor", numbers
            yield f"{operator}_{name}.per_tensor", numbers
            tensors = (_one(-2), _one(_MULTIPLIER), _one(-7))
            yield operator, (x, weight, bias, 3, *tensors, 5, None)
        for transposed in (False, True):
            y = _ints(dtype, 2, 5, 9) if transposed else _ints(dtype, 2, 9, 5)
            call = (_ints(dtype, 2, 4, 9), 3, y, -2, None, _MULTIPLIER, -7, 5, transposed)
            yield "quantized_matmul", call
            yield f"quantized_matmul_{name}", call
    yield "fully_connected", (torch.randn(2, 7), torch.randn(3, 7), torch.randn(3))
    yield "fully_connected", (torch.randn(2, 7), torch.randn(3, 7))


def _layers() -> Iterator[Call]:
    weight, bias = torch.randn(6), torch.randn(6)
    for dtype in (I8, U8):
        x = _ints(dtype, 3, 6)
        rest = ([6], weight, bias, 1e-5, 0.02, 4)
        yield "quantized_layer_norm.per_tensor", (x, 0.03, 5, *rest)
        yield "quantized_layer_norm", (x, _one(0.03, torch.float32), _one(5), *rest)
        yield "quantized_relu.per_tensor", (x, 4, -3, _MULTIPLIER, 1)
        kind = "asym8s_asym8s" if dtype is I8 else "asym8u_asym8u"
        yield f"quantized_relu_{kind}.per_tensor", (x, 4, -3, _MULTIPLIER, 1)
        yield "quantized_relu", (x, _one(4), -3, _one(_MULTIPLIER), _one(1))
        numbers = (x, None, -1, 0, _one(0), 0.04, 3, 1 / 256, 0)
        yield "quantized_softmax.per_tensor", numbers
        scales = (_one(0.04, torch.float32), _one(3), _one(1 / 256, torch.float32), _one(0))
        yield "quantized_softmax", (x, None, -1, 0, _one(0), *scales)
    yield "_softmax_f32_f32", (torch.randn(3, 4), 1, None)
    vector = (torch.randn(1, 8), _ints(I8, 8, 12), 0.02, _ints(I8, 12), 0.01)
    yield "quantized_w8a32_linear", vector
    yield (
        "quantized_w8a32_conv",
        (
            torch.randn(1, 9, 8),
            _ints(I8, 3, 4, 8),
            0.02,
            _ints(I8, 4),
            0.01,
        ),
    )
    gates = (_ints(I8, 12, 5), 0.02, _ints(I8, 12, 4), 0.03, _ints(I8, 12), 0.01, _ints(I8, 12))
    yield "quantized_w8a32_gru", (torch.randn(1, 5), torch.randn(1, 4), *gates)


def _tensors(call: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a call of numbers with tensors for the zero point and scales of the weights."""
    made = list(call)
    for place, dtype in ((8, I32), (9, torch.float32), (12, I32), (13, I32)):
        made[place] = _one(made[place], dtype)
    return tuple(made)


def _convolutions() -> Iterator[Call]:
    scales = (3, -2, 0.0006, 0.04, 5, 1 << 30, -6)
    for dtype, types in ((I8, "asym8sxsym8s_asym8s"), (U8, "asym8uxsym8u_asym8u")):
        for stride, pad, apart, groups in (
            ([1, 1], [0, 0], [1, 1], 1),
            ([2, 1], [1, 2], [1, 2], 2),
            ([1, 1], [1, 1], [1, 1], 4),
        ):
            bias = torch.randint(-900, 900, (8,), dtype=I32)
            rest = (bias, stride, pad, apart, groups, *scales)
            image = (_ints(dtype, 2, 4, 7, 8), _ints(dtype, 8, 4 // groups, 3, 2), *rest)
            last = (_ints(dtype, 2, 7, 8, 4), _ints(dtype, 8, 3, 2, 4 // groups), *rest)
            for layout, call in (("nchw", image), ("nhwc", last)):
                yield f"quantized_conv2d_{layout}.per_tensor", call
                yield f"quantized_conv2d_{layout}", _tensors(call)
                for kind in ("", "_dilated", "_depthwise"):
                    yield f"quantized_conv2d_{layout}{kind}_{types}.per_tensor", call
            line = (bias, stride[:1], pad[:1], apart[:1], groups, *scales)
            flat = (_ints(dtype, 2, 4, 9), _ints(dtype, 8, 4 // groups, 3), *line)
            turned = (_ints(dtype, 2, 9, 4), _ints(dtype, 8, 3, 4 // groups), *line)
            for layout, call in (("ncl", flat), ("nlc", turned)):
                yield f"quantized_conv1d_{layout}.per_tensor", call
                yield f"quantized_conv1d_{layout}", _tensors(call)
                if groups == 4:
                    yield f"quantized_depthwise_conv1d_{layout}.per_tensor", call
            if groups == 4:
                deep = (_ints(dtype, 2, 7, 8, 4), _ints(dtype, 3, 2, 8), *rest)
                yield "quantized_conv2d_depthwise_nhwc", deep
                yield "quantized_conv2d_nhwc.per_tensor", deep
                row = (_ints(dtype, 2, 9, 4), _ints(dtype, 3, 8), *line)
                yield "quantized_conv2d_nhwc.per_tensor", row


def _images() -> Iterator[Call]:
    for dims in (1, 2, 3):
        size, kernel = (6, 5, 7)[:dims], (3, 2, 2)[:dims]
        sizes = ([2] * dims, [1] * dims, [1] * dims, 1)
        weight = torch.randn(5, 4, *kernel)
        yield f"conv{dims}d", (torch.randn(2, 4, *size), weight, torch.randn(5), *sizes)
    weight = torch.randn(5, 4, 3, 2)
    turn = (torch.randn(5), [2, 1], [1, 0], [1, 2], [1, 0], 1)
    yield "transposed_convolution", (torch.randn(2, 4, 5, 6), weight, *turn, False)
    line = (torch.randn(5), [2], [1], [1], [1], 1, False)
    yield "transposed_convolution", (torch.randn(2, 4, 5), torch.randn(5, 4, 3), *line)
    pool = ([3, 2], [2, 2], [1, 1], False)
    # not True: torch leaves the schema's default out, and the reference has another
    yield "avg_pool2d", (torch.randn(2, 3, 7, 8), *pool, False)
    yield "avg_pool2d", (torch.randn(2, 3, 7, 8), *pool, False, 5)
    for counted in (False, True):
        yield "avg_pool2d", (_ints(U8, 2, 3, 7, 8), *pool, counted, None, _one(9))
    for shape, name in (((2, 3, 7, 8), "nchw"), ((2, 7, 8, 3), "nhwc")):
        call = (_ints(I8, *shape), [3, 2], [2, 1], [1, 0], [1, 1], True)
        yield f"quantized_max_pool2d_{name}", call
    for shape, last in (((2, 3, 6, 7), False), ((2, 6, 7, 3), True)):
        for zero in (_one(5), torch.tensor([3, -4], dtype=I32)):
            given = (_ints(I8, *shape), [3, 2], [1, 2], [1, 1], [2, 1])
            yield "im2row", (*given, zero, last)
            more = (_ints(I8, *shape), [3, 2], [1, 2], [1, 1], [2, 1], [1, 0], zero, last)
            yield "transposed_im2row", more
        yield "im2row.per_tensor", (*given, 7, last)
    yield "im2row", (_ints(I8, 2, 3, 6), [1, 2], [1, 1], [0, 1], [1, 2], _one(5), False)


def _moves() -> Iterator[Call]:
    for name in ("copy", "load", "store", "wait"):
        yield f"idma_{name}", (torch.randn(4),)
    yield "where_Scalar", (torch.rand(4, 5) > 0.5, 1.5, -2.0)
    for scales, zeros in (
        (torch.rand(9, 1), torch.randint(-9, 9, (9, 1))),
        (torch.rand(9, 4), torch.randint(-9, 9, (9, 4))),
        (torch.rand(9, 4), None),
    ):
        rows = (_ints(I8, 9, 8), scales, zeros, torch.tensor([[0, 3], [8, 1]]))
        yield "quantized_embedding_byte", rows
    yield "sdpa_bitwise_mask_gen", (torch.rand(3, 16) > 0.5, 0.0)
    yield "sdpa_bitwise_mask_gen", (torch.randn(3, 16), 0.1)
    angles = (torch.rand(7, 4), torch.rand(7, 4))
    for shape in ((1, 5, 2, 8), (1, 5, 2, 2, 4)):
        for pos in (None, torch.tensor([2, 0, 6, 1, 1])):
            own = tuple(one[:5] if pos is None else one for one in angles)
            yield "rope", (torch.randn(shape), *own, pos)
            yield "rope_rotate_stacked_halves", (torch.randn(shape), *own, pos)
            quantized = (_ints(I8, *shape), *own, pos, 0.03, 4, 0.05, -3)
            yield "quantized_rope_rotate_stacked_halves", quantized
    yield "linalg_svd", (torch.randn(4, 3), False, True, None)


GROUPS = (_conversions, _binaries, _matmuls, _layers, _convolutions, _images, _moves)
