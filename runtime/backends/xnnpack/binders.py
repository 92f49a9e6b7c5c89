"""Which function binds which node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from runtime.backends.xnnpack import conv_linear, elementwise, pooling, shapes
from runtime.backends.xnnpack.model import Node
from runtime.backends.xnnpack.node_calls import Bound, Values

BINDERS: Mapping[str, Callable[[Node, Values], Bound]] = MappingProxyType(
    {
        **dict.fromkeys(elementwise.UNARY, elementwise.unary),
        **dict.fromkeys(elementwise.BINARY, elementwise.binary),
        **{f"Concatenate{count}": shapes.concatenate for count in (2, 3, 4, 5)},
        "ArgMaxPooling2d": pooling.largest,
        "AvgPooling2d": pooling.average_pool,
        "BatchMatrixMultiply": elementwise.product,
        "Clamp": elementwise.clamp,
        "Conv2d": conv_linear.convolution,
        "ConvTranspose2d": conv_linear.transposed,
        "Convert": elementwise.convert,
        "Copy": elementwise.convert,
        "DepthwiseConv2d": conv_linear.convolution,
        "ELU": elementwise.elu,
        "FullyConnected": conv_linear.linear,
        "GlobalAvgPooling2d": pooling.global_mean,
        "LeakyReLU": elementwise.leaky_relu,
        "MaxPooling2d": pooling.max_pool,
        "Softmax": elementwise.softmax,
        "StaticConstantPad": shapes.pad,
        "StaticReshape": shapes.reshape,
        "StaticResizeBilinear2D": shapes.resize,
        "StaticSlice": shapes.slices,
        "StaticTranspose": shapes.transpose,
    }
)
