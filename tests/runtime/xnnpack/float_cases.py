"""Cases of every kind of node with real numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from tests.runtime.xnnpack.payloads import BF16, FP16, FP32, TORCH, Case, Payload

UNARY = [
    "Abs",
    "Ceiling",
    "Cos",
    "Exp",
    "Floor",
    "Gelu",
    "Hardswish",
    "Negate",
    "Sigmoid",
    "Sin",
    "Square",
    "Tanh",
    "Copy",
    "Softmax",
]
POSITIVE = ("Log", "ReciprocalSquareRoot", "SquareRoot")
BINARY = ("Add", "Subtract", "Multiply", "Div", "Minimum", "Maximum", "PReLU")
SHAPES = (((2, 3, 4), (2, 3, 4)), ((2, 3, 4), (4,)), ((2, 1, 4), (1, 3, 4)))


def float_cases() -> Iterator[Case]:
    """Return all cases."""
    yield from _elementwise()
    yield from _shapes()
    yield from _windows()
    yield from _convolutions()
    yield from _depthwise()
    yield from _transposed()
    yield from _products()
    yield from _narrow()


def _elementwise() -> Iterator[Case]:
    for kind in (*UNARY, *POSITIVE):
        made = Payload()
        given = made.real(3, 37, low=0.1 if kind in POSITIVE else -6.0, high=6.0)
        made.node(kind, input_id=given, output_id=made.result((3, 37)), flags=0)
        yield made.case(kind)
    for bounds in ((0.0, 6.0), (0.0, float("inf")), (-1.0, 0.5), (float("-inf"), 1.0)):
        made = Payload()
        given = made.real(5, 9)
        made.node("Clamp", input_id=given, output_id=made.result((5, 9)), bounds=bounds)
        yield made.case(f"Clamp {bounds}")
    for kind, name in (("LeakyReLU", "negative_slope"), ("ELU", "alpha")):
        made = Payload()
        given = made.real(5, 9)
        made.node(kind, input_id=given, output_id=made.result((5, 9)), **{name: 0.3})
        yield made.case(kind)
    for kind in BINARY:
        for number, (left, right) in enumerate(SHAPES):
            if kind == "PReLU" and number != 1:
                continue
            made = Payload(number)
            a, b = made.real(*left), made.real(*right, low=0.5)
            shape = torch.broadcast_shapes(left, right)
            bounds = (-1.0, 1.5) if number == 2 and kind not in ("Minimum", "Maximum") else None
            out = made.result(shape)
            made.node(kind, input1_id=a, input2_id=b, output_id=out, bounds=bounds)
            yield made.case(f"{kind} {left} {right} {bounds}")


def _shapes() -> Iterator[Case]:
    for perm in ((0,), (1, 0), (0, 2, 3, 1), (3, 1, 0, 2), (5, 0, 4, 1, 3, 2)):
        made = Payload()
        sizes = tuple(range(2, 2 + len(perm)))
        out = made.result([sizes[dim] for dim in perm])
        made.node(
            "StaticTranspose",
            input_id=made.real(*sizes),
            output_id=out,
            perm=perm,
            num_dims=len(perm),
        )
        yield made.case(f"StaticTranspose {perm}")
    for shape in ((24,), (2, 0, 3), (4, 6), (0, 2), (1, 2, 3, 2, 2, 1)):
        made = Payload()
        out = made.result(torch.empty(2, 3, 4).reshape([size or -1 for size in shape]).shape)
        made.node(
            "StaticReshape",
            input_id=made.real(2, 3, 4),
            output_id=out,
            new_shape=shape,
            num_dims=len(shape),
        )
        yield made.case(f"StaticReshape {shape}")
    for offsets, sizes in (((0, 1, 2), (2, 2, 2)), ((1, 0, 0), (1, 3, 4))):
        made = Payload()
        ends: dict[str, Any] = {"input_id": made.real(2, 3, 4), "output_id": made.result(sizes)}
        made.node("StaticSlice", offsets=offsets, sizes=sizes, num_dims=3, **ends)
        yield made.case(f"StaticSlice {offsets} {sizes}")
    for pre, post in (((0, 1), (2, 0)), ((3, 0), (0, 0))):
        made = Payload()
        shape = [3 + pre[0] + post[0], 4 + pre[1] + post[1]]
        ends = {"input_id": made.real(3, 4), "output_id": made.result(shape)}
        made.node(
            "StaticConstantPad", pre_paddings=pre, post_paddings=post, padding_value=1.25, **ends
        )
        yield made.case(f"StaticConstantPad {pre} {post}")
    for count in (2, 3, 4, 5):
        for axis in (0, 2):
            yield _cat(count, axis)
    for size, flags in (((8, 10), 0), ((3, 2), 0), ((7, 9), 8)):
        made = Payload()
        ends = {"input_id": made.real(1, 4, 5, 3), "output_id": made.result((1, *size, 3))}
        made.node(
            "StaticResizeBilinear2D", new_height=size[0], new_width=size[1], flags=flags, **ends
        )
        yield made.case(f"StaticResizeBilinear2D {size} {flags}")


def _cat(count: int, axis: int) -> Case:
    made = Payload()
    shapes = [[2, 3, 4] for _ in range(count)]
    for number, shape in enumerate(shapes):
        shape[axis] = number + 1
    whole = [2, 3, 4]
    whole[axis] = sum(shape[axis] for shape in shapes)
    ends = {f"input{place}_id": made.real(*shape) for place, shape in enumerate(shapes, start=1)}
    made.node(f"Concatenate{count}", axis=axis, output_id=made.result(whole), **ends)
    return made.case(f"Concatenate{count} {axis}")


_PADS = ("padding_top", "padding_right", "padding_bottom", "padding_left")


def _windows() -> Iterator[Case]:
    for kind in ("MaxPooling2d", "AvgPooling2d"):
        for pads, stride in (((0, 0, 0, 0), 2), ((1, 1, 1, 1), 1), ((0, 1, 1, 0), 2)):
            made = Payload()
            given = made.real(2, 7, 8, 5)
            sizes = [
                (7 + pads[0] + pads[2] - 3) // stride + 1,
                (8 + pads[1] + pads[3] - 2) // stride + 1,
            ]
            made.node(
                kind,
                input_id=given,
                output_id=made.result((2, *sizes, 5)),
                pooling_height=3,
                pooling_width=2,
                stride_height=stride,
                stride_width=stride,
                dilation_height=1,
                dilation_width=1,
                flags=0x40,
                bounds=(-0.5, 1.0) if stride == 1 else None,
                **dict(zip(_PADS, pads, strict=True)),
            )
            yield made.case(f"{kind} {pads} {stride}")
    made = Payload()
    given = made.real(1, 6, 9, 4)
    ends = {"output_value_id": made.result((1, 2, 3, 4))}
    made.node("ArgMaxPooling2d", input_id=given, pooling_height=3, pooling_width=3, **{
        **ends, "output_index_id": made.result((1, 2, 3, 4), 12)})  # fmt: skip
    yield made.case("ArgMaxPooling2d")
    for flags, shape in ((0x40, (2, 1, 1, 3)), (0, (2, 3))):
        made = Payload()
        ends = {"input_id": made.real(2, 4, 5, 3), "output_id": made.result(shape)}
        made.node("GlobalAvgPooling2d", flags=flags, **ends)
        yield made.case(f"GlobalAvgPooling2d {flags}")


def window(kernel: int, stride: int, dilation: int, pads: tuple[int, int, int, int]) -> Any:
    """Return the fields of a convolution's window."""
    return {
        "kernel_height": kernel,
        "kernel_width": kernel,
        "subsampling_height": stride,
        "subsampling_width": stride,
        "dilation_height": dilation,
        "dilation_width": dilation,
        **dict(zip(_PADS, pads, strict=True)),
    }


def out_size(size: int, kernel: int, stride: int, dilation: int, pads: int) -> int:
    """Return how many windows there are along a dimension."""
    return (size + pads - dilation * (kernel - 1) - 1) // stride + 1


CONVOLUTIONS = (
    (1, 1, 1, (0, 0, 0, 0), 1),
    (3, 1, 1, (1, 1, 1, 1), 1),
    (3, 2, 1, (0, 1, 1, 0), 2),
    (3, 1, 2, (2, 2, 2, 2), 4),
    (2, 1, 1, (0, 0, 0, 0), 1),
)


def _convolutions() -> Iterator[Case]:
    for kernel, stride, dilation, pads, groups in CONVOLUTIONS:
        for bias, bounds in ((True, None), (False, (0.0, 1.0))):
            made = Payload()
            given = made.real(2, 9, 8, 4)
            sizes = [
                out_size(9, kernel, stride, dilation, pads[0] + pads[2]),
                out_size(8, kernel, stride, dilation, pads[1] + pads[3]),
            ]
            filters = made.weights(8, kernel, kernel, 4 // groups)
            more = {"bias_id": made.weights(8)} if bias else {}
            made.node(
                "Conv2d",
                input1_id=given,
                filter_id=filters,
                output_id=made.result((2, *sizes, 8)),
                group_input_channels=4 // groups,
                group_output_channels=8 // groups,
                groups=groups,
                bounds=bounds,
                **window(kernel, stride, dilation, pads),
                **more,
            )
            yield made.case(f"Conv2d {kernel} {stride} {dilation} {pads} {groups} {bias} {bounds}")


def _depthwise() -> Iterator[Case]:
    for many in (1, 2):
        made = Payload()
        given = made.real(1, 6, 6, 4)
        filters, bias = made.weights(1, 3, 3, 4 * many), made.weights(4 * many)
        made.node(
            "DepthwiseConv2d",
            input1_id=given,
            filter_id=filters,
            bias_id=bias,
            output_id=made.result((1, 6, 6, 4 * many)),
            group_input_channels=1,
            group_output_channels=many,
            groups=4,
            bounds=(0.0, float("inf")),
            **window(3, 1, 1, (1, 1, 1, 1)),
        )
        yield made.case(f"DepthwiseConv2d {many}")


def _transposed() -> Iterator[Case]:
    for stride, adjust, pads, groups in (
        (1, 0, (0, 0, 0, 0), 1),
        (2, 1, (1, 1, 1, 1), 1),
        (2, 0, (1, 0, 0, 1), 2),
    ):
        made = Payload()
        given = made.real(1, 5, 4, 6)
        sizes = [
            (5 - 1) * stride + 3 + adjust - pads[0] - pads[2],
            (4 - 1) * stride + 3 + adjust - pads[1] - pads[3],
        ]
        made.node(
            "ConvTranspose2d",
            input1_id=given,
            filter_id=made.weights(8, 3, 3, 6 // groups),
            bias_id=made.weights(8),
            output_id=made.result((1, *sizes, 8)),
            group_input_channels=6 // groups,
            group_output_channels=8 // groups,
            groups=groups,
            adjustment_height=adjust,
            adjustment_width=adjust,
            **window(3, stride, 1, pads),
        )
        yield made.case(f"ConvTranspose2d {stride} {adjust} {pads} {groups}")


def _products() -> Iterator[Case]:
    for shape in ((3, 16), (2, 3, 16), (16,)):
        for flags in (0, 1):
            made = Payload()
            given = made.real(*shape)
            filters = made.weights(16, 5) if flags else made.weights(5, 16)
            more = {} if flags else {"bias_id": made.weights(5)}
            made.node(
                "FullyConnected",
                input1_id=given,
                filter_id=filters,
                output_id=made.result((*shape[:-1], 5)),
                flags=flags,
                bounds=(0.0, 2.0) if flags else None,
                **more,
            )
            yield made.case(f"FullyConnected {shape} {flags}")
    made = Payload()
    made.node(
        "FullyConnected",
        input1_id=made.real(3, 16),
        filter_id=made.real(5, 16),
        bias_id=made.real(5),
        output_id=made.result((3, 5)),
    )
    yield made.case("FullyConnected with weights that are given")
    for left, right, flags in (
        ((2, 3, 4), (2, 4, 5), 0),
        ((2, 3, 4), (2, 5, 4), 1),
        ((2, 2, 3, 4), (2, 2, 4, 5), 0),
    ):
        made = Payload()
        ends = {"input1_id": made.real(*left), "input2_id": made.real(*right)}
        out = made.result((*left[:-1], 5))
        made.node("BatchMatrixMultiply", output_id=out, flags=flags, **ends)
        yield made.case(f"BatchMatrixMultiply {left} {right} {flags}")


def _narrow() -> Iterator[Case]:
    for datatype, tolerance in ((FP16, 4e-3), (BF16, 2e-2)):
        kinds = ("Add", "Multiply") if datatype == FP16 else ()
        for kind in kinds:
            made = Payload()
            a, b = (made.given(made.numbers((4, 9)).to(TORCH[datatype]), datatype) for _ in "ab")
            out = made.result((4, 9), datatype)
            made.node(kind, input1_id=a, input2_id=b, output_id=out)
            yield made.case(f"{kind} in type {datatype}", tolerance=tolerance)
        for kind in ("Abs", "Sigmoid", "Tanh", "Negate") if datatype == FP16 else ():
            made = Payload()
            given = made.given(made.numbers((4, 9)).to(TORCH[datatype]), datatype)
            made.node(kind, input_id=given, output_id=made.result((4, 9), datatype))
            yield made.case(f"{kind} in type {datatype}", tolerance=tolerance)
        for source, target in ((FP32, datatype), (datatype, FP32)):
            made = Payload()
            given = made.given(made.numbers((4, 9)).to(TORCH[source]), source)
            made.node("Convert", input_id=given, output_id=made.result((4, 9), target))
            yield made.case(f"Convert {source} {target}", tolerance=0.0)
        made = Payload()
        given = made.given(made.numbers((4, 16)).to(TORCH[datatype]), datatype)
        raw = made.numbers((6, 16)).to(TORCH[datatype]).view(torch.int16).numpy()
        filters = made.value((6, 16), datatype, data=raw)
        made.node(
            "FullyConnected",
            input1_id=given,
            filter_id=filters,
            bias_id=made.weights(6),
            output_id=made.result((4, 6), datatype),
        )
        yield made.case(f"FullyConnected in type {datatype}", tolerance=tolerance)
