"""Which function binds which node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from runtime.backends.xnnpack import elementwise, shapes, weighted, windows
from runtime.backends.xnnpack.bound import Bound, Values
from runtime.backends.xnnpack.model import Node

BINDERS: Mapping[str, Callable[[Node, Values], Bound]] = MappingProxyType(
    {
        **dict.fromkeys(elementwise.UNARY, elementwise.unary),
        **dict.fromkeys(elementwise.BINARY, elementwise.binary),
        **{f"Concatenate{count}": shapes.concatenate for count in (2, 3, 4, 5)},
        "ArgMaxPooling2d": windows.largest,
        "AvgPooling2d": windows.average_pool,
        "BatchMatrixMultiply": elementwise.product,
        "Clamp": elementwise.clamp,
        "Conv2d": weighted.convolution,
        "ConvTranspose2d": weighted.transposed,
        "Convert": elementwise.convert,
        "Copy": elementwise.convert,
        "DepthwiseConv2d": weighted.convolution,
        "ELU": elementwise.elu,
        "FullyConnected": weighted.linear,
        "GlobalAvgPooling2d": windows.global_mean,
        "LeakyReLU": elementwise.leaky_relu,
        "MaxPooling2d": windows.max_pool,
        "Softmax": elementwise.softmax,
        "StaticConstantPad": shapes.pad,
        "StaticReshape": shapes.reshape,
        "StaticResizeBilinear2D": shapes.resize,
        "StaticSlice": shapes.slices,
        "StaticTranspose": shapes.transpose,
    }
)
