"""The function that binds each kind of node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from runtime.backends.xnnpack import conv_linear, elementwise, pooling, shapes
from runtime.backends.xnnpack.model import PayloadNode
from runtime.backends.xnnpack.node_calls import NodeCall, Values

BINDERS: Mapping[str, Callable[[PayloadNode, Values], NodeCall]] = MappingProxyType(
    {
        **dict.fromkeys(elementwise.UNARY, elementwise.unary),
        **dict.fromkeys(elementwise.BINARY, elementwise.binary),
        **{f"Concatenate{count}": shapes.concatenate for count in (2, 3, 4, 5)},
        "ArgMaxPooling2d": pooling.argmax_pool,
        "AvgPooling2d": pooling.average_pool,
        "BatchMatrixMultiply": elementwise.matmul,
        "Clamp": elementwise.clamp,
        "Conv2d": conv_linear.convolution,
        "ConvTranspose2d": conv_linear.conv_transpose,
        "Convert": elementwise.convert,
        "Copy": elementwise.convert,
        "DepthwiseConv2d": conv_linear.convolution,
        "ELU": elementwise.elu,
        "FullyConnected": conv_linear.linear,
        "GlobalAvgPooling2d": pooling.global_average_pool,
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
