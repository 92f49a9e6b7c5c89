"""Kernels of layers: convolution, pooling, normalization, padding, resampling."""

from __future__ import annotations

from runtime.kernels.rule import Rule, result
from runtime.untyped import aten

TABLE: dict[str, Rule] = {
    "aten::_adaptive_avg_pool3d.out": result(aten._adaptive_avg_pool3d.default),
    "aten::_log_softmax.out": result(aten._log_softmax.default),
    "aten::_softmax.out": result(aten._softmax.default),
    "aten::avg_pool2d_backward.grad_input": result(aten.avg_pool2d_backward.default),
    "aten::avg_pool3d.out": result(aten.avg_pool3d.default),
    "aten::constant_pad_nd.out": result(aten.constant_pad_nd.default),
    "aten::convolution_backward.out": result(aten.convolution_backward.default),
    "aten::embedding.out": result(aten.embedding.default),
    "aten::glu.out": result(aten.glu.default),
    "aten::max_pool2d_with_indices.out": result(aten.max_pool2d_with_indices.default),
    "aten::max_pool3d_with_indices.out": result(aten.max_pool3d_with_indices.default),
    "aten::native_dropout.out": result(aten.native_dropout.default),
    "aten::native_layer_norm.out": result(aten.native_layer_norm.default),
    "aten::pixel_shuffle.out": result(aten.pixel_shuffle.default),
    "aten::pixel_unshuffle.out": result(aten.pixel_unshuffle.default),
}
