"""The work of nodes of a payload whose shapes are those of memory: channels last, packed weights.

The kinds are those of XNNPACK's schema; a backend names this table in its traits.
"""

from __future__ import annotations

import math

from inspector.roofline import rules as r
from inspector.roofline.work import Call, Rule, UnknownWorkError, Work

_ELEMENTWISE = {
    1: """Add Div Minimum Multiply Subtract Floor SquareRoot Ceiling Maximum Negate Square Abs
        ReciprocalSquareRoot Log Tanh Exp Sin Cos""",
    2: "Clamp PReLU LeakyReLU",
    4: "Sigmoid ELU",
    5: "Hardswish Gelu Softmax",
    7: "StaticResizeBilinear2D",
}
_MOVED = """StaticTranspose StaticConstantPad StaticReshape Copy Concatenate2 Concatenate3
    Concatenate4 Concatenate5"""


def _fully_connected(call: Call) -> Work:
    """Return two operations for each weight and row; filters are [out, in] or [in, out]."""
    weight, result = call.tensor(1), call.output
    channels = math.prod(result.sizes[-1:])
    inner = weight.count // channels if channels else 0
    return call.work(2 * result.count * inner)


def _convolution(call: Call) -> Work:
    window = call.fact("kernel_height") * call.fact("kernel_width")
    return call.work(2 * call.output.count * window * call.fact("group_input_channels"))


def _transposed(call: Call) -> Work:
    window = call.fact("kernel_height") * call.fact("kernel_width")
    given = call.tensor(0)
    return call.work(2 * given.count * window * call.fact("group_output_channels"))


def _pooling(call: Call) -> Work:
    window = call.fact("pooling_height") * call.fact("pooling_width")
    return call.work(call.output.count * window)


def _convert(call: Call) -> Work:
    """Return the work of a conversion: quantize 4 (6 with its range), dequantize 2, cast none."""
    given, result = call.tensor(0), call.output
    if given.quantization == result.quantization:
        return call.work(0)
    if not result.quantization:
        return call.work(2 * result.count)
    return call.work((6 if result.quantization == "per_token" else 4) * result.count)


def _attention(call: Call) -> Work:
    raise UnknownWorkError(f"{call.target}: no kernel defines its shapes")


RULES: dict[str, Rule] = {
    **{
        kind: r.elementwise(count)
        for count, kinds in _ELEMENTWISE.items()
        for kind in kinds.split()
    },
    **dict.fromkeys(_MOVED.split(), r.copied),
    "StaticSlice": r.part_read,
    "FullyConnected": _fully_connected,
    "Conv2d": _convolution,
    "DepthwiseConv2d": _convolution,
    "ConvTranspose2d": _transposed,
    "BatchMatrixMultiply": r.matmul(0),
    "AvgPooling2d": _pooling,
    "MaxPooling2d": _pooling,
    "ArgMaxPooling2d": _pooling,
    "GlobalAvgPooling2d": r.reduction(1, each_result=1),
    "Convert": _convert,
    "ScaledDotProductAttention": _attention,
}
