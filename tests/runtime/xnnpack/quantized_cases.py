"""Cases of nodes over quantized numbers: static, dynamic, weights only, four bits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from schema.payloads.xnnpack import model as x
from tests.runtime.xnnpack.float_cases import CONVOLUTIONS, out_size, window
from tests.runtime.xnnpack.payloads import (
    FP32,
    Q8,
    Q32,
    QB4,
    QC4,
    QC8,
    QC32,
    QD8,
    QU8,
    Case,
    Payload,
)

IN = x.PerTensorQuant(0.03, -7)
OUT = x.PerTensorQuant(0.05, 11)


def quantized_cases() -> Iterator[Case]:
    """Return all cases."""
    yield from _converts()
    yield from _moved()
    yield from _computed()
    yield from _convolutions()
    yield from _linear()
    yield from _dynamic()


def _steps(made: Payload, dims: tuple[int, ...], low: int = -128, high: int = 128) -> torch.Tensor:
    return torch.randint(low, high, dims, generator=made.random).to(torch.int8)


def _converts() -> Iterator[Case]:
    for datatype, zero in ((Q8, -7), (Q8, 127), (QU8, 128), (QU8, 0)):
        params = x.PerTensorQuant(0.021, zero)
        made = Payload()
        given = made.real(5, 41, low=-4, high=4)
        made.node("Convert", input_id=given, output_id=made.result((5, 41), datatype, params))
        yield made.case(f"Convert to {datatype} {zero}", step=1.0)
        made = Payload()
        numbers = torch.arange(256).to(torch.uint8)
        numbers = numbers if datatype == QU8 else numbers.view(torch.int8)
        given = made.given(numbers, datatype, params)
        made.node("Convert", input_id=given, output_id=made.result((256,)))
        yield made.case(f"Convert from {datatype} {zero}")
    made = Payload()
    given = made.given(_steps(made, (9, 9)), Q8, IN)
    made.node("Convert", input_id=given, output_id=made.result((9, 9), Q8, OUT))
    yield made.case("Convert from steps to steps", step=1.0)


def _moved() -> Iterator[Case]:
    ways: list[tuple[str, tuple[int, ...], dict[str, Any]]] = [
        ("StaticTranspose", (4, 2, 3), {"perm": (2, 0, 1), "num_dims": 3}),
        ("StaticReshape", (6, 4), {"new_shape": (6, 4), "num_dims": 2}),
        ("StaticSlice", (1, 2, 4), {"offsets": (1, 0, 0), "sizes": (1, 2, 4), "num_dims": 3}),
        (
            "StaticConstantPad",
            (3, 3, 6),
            {"pre_paddings": (1, 0, 2), "post_paddings": (0, 0, 0), "padding_value": 0.3},
        ),
        ("Copy", (2, 3, 4), {}),
    ]
    for kind, shape, more in ways:
        made = Payload()
        given = made.given(_steps(made, (2, 3, 4)), Q8, IN)
        made.node(kind, input_id=given, output_id=made.result(shape, Q8, IN), **more)
        yield made.case(f"{kind} in steps", step=1.0)
    made = Payload()
    a, b = (made.given(_steps(made, (2, 3)), Q8, IN) for _ in "ab")
    out = made.result((2, 6), Q8, IN)
    made.node("Concatenate2", axis=1, input1_id=a, input2_id=b, output_id=out)
    yield made.case("Concatenate2 in steps", step=1.0)
    made = Payload()
    given = made.given(_steps(made, (1, 6, 6, 3)), Q8, IN)
    made.node(
        "MaxPooling2d",
        input_id=given,
        output_id=made.result((1, 3, 3, 3), Q8, IN),
        pooling_height=2,
        pooling_width=2,
        stride_height=2,
        stride_width=2,
        dilation_height=1,
        dilation_width=1,
        bounds=(-1.0, 2.0),
    )
    yield made.case("MaxPooling2d in steps", step=1.0)


def _computed() -> Iterator[Case]:
    for kind in ("Add", "Subtract", "Multiply"):
        for bounds in (None, (0.0, 1.5)):
            made = Payload()
            a = made.given(_steps(made, (4, 33)), Q8, IN)
            b = made.given(_steps(made, (4, 33)), Q8, x.PerTensorQuant(0.02, 3))
            out = made.result((4, 33), Q8, OUT)
            made.node(kind, input1_id=a, input2_id=b, output_id=out, bounds=bounds)
            yield made.case(f"{kind} in steps {bounds}", step=1.0)
    for kind in ("Sigmoid", "Tanh", "Hardswish", "Gelu", "Exp", "Sin", "Abs", "Negate", "Square"):
        made = Payload()
        given = made.given(torch.arange(256).to(torch.uint8).view(torch.int8), Q8, IN)
        made.node(kind, input_id=given, output_id=made.result((256,), Q8, OUT))
        yield made.case(f"{kind} in steps", step=1.0)
    for kind, more in (("LeakyReLU", {"negative_slope": 0.2}), ("ELU", {"alpha": 1.0})):
        made = Payload()
        given = made.given(torch.arange(256).to(torch.uint8).view(torch.int8), Q8, IN)
        made.node(kind, input_id=given, output_id=made.result((256,), Q8, OUT), **more)
        yield made.case(f"{kind} in steps", step=1.0)
    made = Payload()
    given = made.given(_steps(made, (5, 21)), Q8, IN)
    made.node("Clamp", input_id=given, output_id=made.result((5, 21), Q8, IN), bounds=(-0.5, 1.0))
    yield made.case("Clamp in steps", step=1.0)
    made = Payload()
    given = made.given(_steps(made, (2, 5, 7, 9)), Q8, IN)
    out = made.result((2, 1, 1, 9), Q8, OUT)
    made.node("GlobalAvgPooling2d", input_id=given, output_id=out, flags=0x40)
    yield made.case("GlobalAvgPooling2d in steps", step=1.0)


def _filter(made: Payload, dims: tuple[int, ...], axis: int, per_channel: bool) -> tuple[int, Any]:
    """Return a filter of integers and the scales of its channels."""
    numbers = _steps(made, dims, -127).numpy()
    if not per_channel:
        return made.value(dims, Q8, x.PerTensorQuant(0.004, 0), data=numbers), 0.004
    scales = np.linspace(0.001, 0.006, dims[axis], dtype=np.float32)
    params = x.PerChannelQuant(tuple(scales.tolist()), axis)
    return made.value(dims, QC8, params, data=numbers), scales


def _bias(made: Payload, scales: Any, channels: int) -> int:
    numbers = torch.randint(-3000, 3000, (channels,), generator=made.random).int().numpy()
    if isinstance(scales, float):
        params: Any = x.PerTensorQuant(np.float32(scales * IN.scale).item(), 0)
        return made.value((channels,), Q32, params, data=numbers)
    params = x.PerChannelQuant(tuple((scales * np.float32(IN.scale)).tolist()), 0)
    return made.value((channels,), QC32, params, data=numbers)


def _convolutions() -> Iterator[Case]:
    for kernel, stride, dilation, pads, groups in CONVOLUTIONS:
        for per_channel, bounds in ((True, None), (False, (0.0, 3.0))):
            made = Payload()
            given = made.given(_steps(made, (1, 9, 8, 4)), Q8, IN)
            sizes = [
                out_size(9, kernel, stride, dilation, pads[0] + pads[2]),
                out_size(8, kernel, stride, dilation, pads[1] + pads[3]),
            ]
            filters, scales = _filter(made, (8, kernel, kernel, 4 // groups), 0, per_channel)
            made.node(
                "Conv2d",
                input1_id=given,
                filter_id=filters,
                bias_id=_bias(made, scales, 8),
                output_id=made.result((1, *sizes, 8), Q8, OUT),
                group_input_channels=4 // groups,
                group_output_channels=8 // groups,
                groups=groups,
                bounds=bounds,
                **window(kernel, stride, dilation, pads),
            )
            yield made.case(
                f"Conv2d in steps {kernel} {stride} {dilation} {groups} {per_channel}", step=1.0
            )
    made = Payload()
    given = made.given(_steps(made, (1, 6, 6, 4)), Q8, IN)
    filters, scales = _filter(made, (1, 3, 3, 4), 3, per_channel=True)
    made.node(
        "DepthwiseConv2d",
        input1_id=given,
        filter_id=filters,
        bias_id=_bias(made, scales, 4),
        output_id=made.result((1, 6, 6, 4), Q8, OUT),
        group_input_channels=1,
        group_output_channels=1,
        groups=4,
        **window(3, 1, 1, (1, 1, 1, 1)),
    )
    yield made.case("DepthwiseConv2d in steps", step=1.0)


def _linear() -> Iterator[Case]:
    for per_channel in (True, False):
        made = Payload()
        given = made.given(_steps(made, (5, 48)), Q8, IN)
        filters, scales = _filter(made, (7, 48), 0, per_channel)
        bias = _bias(made, scales, 7)
        out = made.result((5, 7), Q8, OUT)
        made.node("FullyConnected", input1_id=given, filter_id=filters, bias_id=bias, output_id=out)
        yield made.case(f"FullyConnected in steps {per_channel}", step=1.0)


def four_bits(made: Payload, rows: int, columns: int, group: int = 0) -> int:
    """Return a filter of four-bit numbers, one scale a row or a group."""
    raw = torch.randint(0, 256, (rows, columns // 2), generator=made.random)
    data = raw.to(torch.uint8).numpy()
    if not group:
        scales = np.linspace(0.01, 0.05, rows, dtype=np.float32)
        params: Any = x.PerChannelQuant(tuple(scales.tolist()), 0)
        return made.value((rows, columns), QC4, params, data=data)
    count = rows * columns // group
    narrow = torch.linspace(0.01, 0.05, count).to(torch.bfloat16).view(torch.int16).numpy()
    place = made.blob(narrow)
    params = x.PerChannelGroupQuant((), 0, group, (), place, count)
    return made.value((rows, columns), QB4, params, data=data)


def _dynamic() -> Iterator[Case]:
    for name in ("eight bits", "four bits", "groups of four bits"):
        for shape in ((3, 64), (2, 3, 64)):
            made = Payload()
            given = made.real(*shape)
            rows = made.value(shape, QD8, x.PerTokenDynamicQuant(1))
            made.node("Convert", input_id=given, output_id=rows, handle=65535)
            if name == "eight bits":
                filters = _filter(made, (6, 64), 0, per_channel=True)[0]
            else:
                filters = four_bits(made, 6, 64, 32 if name.startswith("groups") else 0)
            made.node(
                "FullyConnected",
                input1_id=rows,
                filter_id=filters,
                bias_id=made.weights(6),
                output_id=made.result((*shape[:-1], 6)),
                bounds=(0.0, float("inf")) if len(shape) == 3 else None,
            )
            yield made.case(f"FullyConnected of rows, {name} {shape}")
    made = Payload()
    given = made.real(2, 6, 6, 4)
    rows = made.value((2, 6, 6, 4), QD8, x.PerTokenDynamicQuant(3))
    made.node("Convert", input_id=given, output_id=rows, handle=65535)
    made.node(
        "Conv2d",
        input1_id=rows,
        filter_id=_filter(made, (8, 3, 3, 4), 0, per_channel=True)[0],
        bias_id=made.weights(8),
        output_id=made.result((2, 6, 6, 8)),
        group_input_channels=4,
        group_output_channels=8,
        groups=1,
        **window(3, 1, 1, (1, 1, 1, 1)),
    )
    yield made.case("Conv2d of rows")
    made = Payload()
    given = made.given(made.numbers((3, 64)), dynamic=Q8)
    out = made.result((3, 6))
    filters = _filter(made, (6, 64), 0, per_channel=True)[0]
    bias = made.weights(6)
    made.node("FullyConnected", input1_id=given, filter_id=filters, bias_id=bias, output_id=out)
    yield made.case("FullyConnected of an argument that becomes rows")
    for name, filters_of in (("eight", None), ("four", four_bits)):
        made = Payload()
        given = made.real(3, 64)
        if filters_of is None:
            filters = _filter(made, (6, 64), 0, per_channel=True)[0]
        else:
            filters = filters_of(made, 6, 64)
        out = made.result((3, 6), FP32)
        bias = made.weights(6)
        made.node("FullyConnected", input1_id=given, filter_id=filters, bias_id=bias, output_id=out)
        yield made.case(f"FullyConnected with weights of {name} bits")
