"""Operators of programs for Cadence that have a reference: the others have no kernel.

Source: the schemas of backends/cadence/aot/ops_registrations.py of release 1.5.1
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from runtime.kernels.rule import Rule, result
from runtime.kernels.vendors.cadence import dense, images, moves
from runtime.kernels.vendors.cadence.dense import of_dtypes, with_numbers
from runtime.kernels.vendors.quantizing import QUANTIZE, dequantize, quantize
from runtime.untyped import aten

Run = Callable[..., Any]
Line = tuple[str, Run, str]
_OUT = "*, Tensor(a!) out) -> Tensor(a!)"
_I8, _U8, _I32 = torch.int8, torch.uint8, torch.int32
_ASYM = {
    "asym8s": _I8,
    "asym8u": _U8,
    "asym16s": torch.int16,
    "asym16u": torch.uint16,
    "asym32s": _I32,
}
_BYTES = {"asym8sxasym8s_asym8s": _I8, "asym8uxasym8u_asym8u": _U8}
_SYMMETRIC = {"asym8sxsym8s_asym8s": _I8, "asym8uxsym8u_asym8u": _U8}


def _conversions() -> Iterator[Line]:
    plain = f"{QUANTIZE}, "
    yield "quantize_per_tensor.out", quantize, plain
    yield "dequantize_per_tensor.out", dequantize, plain
    for name, dtype in _ASYM.items():
        yield f"quantize_per_tensor_{name}.out", _to(dtype), plain
        yield f"dequantize_per_tensor_{name}.out", of_dtypes(dequantize, dtype), plain
    sizes = "(Tensor input, {0} in_scale, {1} in_zero_point, {0} out_scale, {1} out_zero_point, "
    sizes += "ScalarType out_dtype, "
    yield "requantize.per_tensor_out", dense.requantize, sizes.format("float", "int")
    yield (
        "requantize.out",
        with_numbers(dense.requantize, 1, 2, 3, 4),
        sizes.format("Tensor", "Tensor"),
    )


def _to(dtype: torch.dtype) -> Run:
    run: Run = quantize

    def called(*given: Any) -> Tensor:  # noqa: ANN401
        return run(*given[:5], dtype)

    return called


def _binaries() -> Iterator[Line]:
    both = "(Tensor X, {0} X_scale, {1} X_zero_point, Tensor Y, {0} Y_scale, {1} Y_zero_point, "
    both += "float out_scale, int out_zero_point, "
    add, mul = dense.binary(torch.add), dense.binary(torch.mul)
    numbers = both.format("float", "int")
    yield "quantized_add.out", with_numbers(add, 1, 2, 4, 5), both.format("Tensor", "Tensor")
    yield "quantized_add.per_tensor_out", add, numbers
    yield "quantized_mul.per_tensor_out", mul, numbers
    for name, dtype in _BYTES.items():
        yield f"quantized_add_{name}.per_tensor_out", of_dtypes(add, dtype, dtype), numbers


def _matmuls() -> Iterator[Line]:
    layer = "(Tensor src, Tensor weight, Tensor bias, int src_zero_point, {0} weight_zero_point, "
    layer += "{0} out_multiplier, {0} out_shift, int out_zero_point, Tensor? offset, "
    product = "(Tensor X, int X_zero_point, Tensor Y, int Y_zero_point, Tensor? bias, "
    product += "int out_multiplier, int out_shift, int out_zero_point, bool transposed=False, "
    numbers = layer.format("int")
    for name, run in (
        ("quantized_linear", dense.linear),
        ("quantized_fully_connected", dense.fully_connected),
    ):
        yield f"{name}.out", with_numbers(run, 5, 6), layer.format("Tensor")
        yield f"{name}.per_tensor_out", run, numbers
        for kind, dtype in _BYTES.items():
            yield f"{name}_{kind}.per_tensor_out", of_dtypes(run, dtype, dtype, _I32), numbers
    yield "quantized_matmul.out", dense.matmul, product
    for kind, dtype in _BYTES.items():
        yield f"quantized_matmul_{kind}.out", of_dtypes(dense.matmul, dtype, dtype), product
    plain = "(Tensor input, Tensor weight, Tensor? bias=None, "
    yield "fully_connected.out", dense.plain_linear, plain


def _layers() -> Iterator[Line]:
    norm = "(Tensor X, {0} X_scale, {1} X_zero_point, int[] normalized_shape, Tensor weight, "
    norm += "Tensor bias, float eps, float output_scale, int output_zero_point, "
    relu = "(Tensor X, {0} X_zero_point, int out_zero_point, {0} out_multiplier, {0} out_shift, "
    soft = "(Tensor input, Tensor? mask, int dim, int mask_type, Tensor? pos, {0} in_scale, "
    soft += "{1} in_zero_point, {0} out_scale, {1} out_zero_point, "
    yield (
        "quantized_layer_norm.out",
        with_numbers(dense.layer_norm, 1, 2),
        norm.format("Tensor", "Tensor"),
    )
    yield "quantized_layer_norm.per_tensor_out", dense.layer_norm, norm.format("float", "int")
    yield "quantized_relu.out", with_numbers(dense.relu, 1, 3, 4), relu.format("Tensor")
    yield "quantized_relu.per_tensor_out", dense.relu, relu.format("int")
    for kind, dtype in (("asym8s_asym8s", _I8), ("asym8u_asym8u", _U8)):
        name = f"quantized_relu_{kind}.per_tensor_out"
        yield name, of_dtypes(dense.relu, dtype), relu.format("int")
    yield (
        "quantized_softmax.out",
        with_numbers(dense.softmax, 5, 6, 7, 8),
        soft.format("Tensor", "Tensor"),
    )
    yield "quantized_softmax.per_tensor_out", dense.softmax, soft.format("float", "int")
    yield (
        "_softmax_f32_f32.out",
        dense.real_softmax,
        "(Tensor self, int dim, bool? half_to_float=None, ",
    )
    weights = "(Tensor input, Tensor weight, float w_scale, Tensor bias, float b_scale, "
    yield "quantized_w8a32_linear.out", dense.weight_only_linear, weights
    yield "quantized_w8a32_conv.out", images.weight_only_conv, weights
    yield (
        "quantized_w8a32_gru.out",
        dense.weight_only_gru,
        "(Tensor inputs, Tensor hidden, Tensor weights_inputs, float w_i_scale, "
        "Tensor weights_hidden, float w_h_scale, Tensor bias_inputs, float b_scale, "
        "Tensor bias_hidden, ",
    )


_PLACES = (
    "(Tensor input, Tensor weight, Tensor bias, int[] stride, SymInt[] padding, int[] dilation, "
)
_CONV = (
    f"{_PLACES}int groups, int input_zero_point, {{0}} weight_zero_point, {{1}} bias_scale, "
    "float out_scale, int out_zero_point, {0} out_multiplier, {0} out_shift, "
)
_NUMBERS, _TENSORS = _CONV.format("int", "float"), _CONV.format("Tensor", "Tensor")
_OFFSET = "Tensor? offset=None, "


def _quantized_convolutions() -> Iterator[Line]:
    kinds: dict[str, tuple[Run, str]] = {
        "quantized_conv1d_ncl": (images.conv, ""),
        "quantized_conv1d_nlc": (images.channels_last_1d, _OFFSET),
        "quantized_conv2d_nchw": (images.conv, ""),
        "quantized_conv2d_nhwc": (images.channels_last, _OFFSET),
    }
    for name, (run, more) in kinds.items():
        yield f"{name}.out", with_numbers(run, 8, 9, 12, 13), _TENSORS
        yield f"{name}.per_tensor_out", run, _NUMBERS + more
    for layout in ("nchw", "nhwc"):
        run = kinds[f"quantized_conv2d_{layout}"][0]
        for kind in ("", "_dilated", "_depthwise"):
            for types, dtype in _SYMMETRIC.items():
                name = f"quantized_conv2d_{layout}{kind}_{types}.per_tensor_out"
                yield name, of_dtypes(run, dtype, dtype, _I32), _NUMBERS
    for name, run, channel in (
        ("ncl", images.conv, 1),
        ("nlc", images.channels_last_1d, -1),
    ):
        target = f"quantized_depthwise_conv1d_{name}.per_tensor_out"
        yield target, images.depthwise(run, channel), _NUMBERS
    yield "quantized_conv2d_depthwise_nhwc.out", images.channels_last, _NUMBERS


def _images() -> Iterator[Line]:
    for dims in (1, 2, 3):
        sizes = f"(Tensor input, Tensor weight, Tensor bias, int[{dims}] stride, "
        sizes += f"SymInt[{dims}] padding, int[{dims}] dilation, int groups, "
        yield f"conv{dims}d.out", images.plain_conv(dims), sizes
    more = "SymInt[] output_padding, int groups, bool channel_last=False, "
    yield "transposed_convolution.out", images.transposed_conv, _PLACES + more
    yield (
        "avg_pool2d.out",
        images.avg_pool,
        "(Tensor input, int[2] kernel_size, int[2] stride=[], int[2] padding=[], "
        "bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None, "
        "Tensor? in_zero_point=None, bool channel_last=False, ",
    )
    pool = "(Tensor input, int[] kernel_size, int[] stride, int[] padding, int[] dilation, "
    yield "quantized_max_pool2d_nchw.out", images.max_pool, f"{pool}bool ceil_mode, "
    yield "quantized_max_pool2d_nhwc.out", images.max_pool_last, f"{pool}bool ceil_mode, "
    rows = "(Tensor input, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride, "
    zero = "{0} in_zero_point, bool channel_last=False, "
    yield "im2row.out", images.im2row, rows + zero.format("Tensor")
    yield "im2row.per_tensor_out", images.im2row, rows + zero.format("int")
    more = "int[2] output_padding, "
    yield "transposed_im2row.out", images.transposed_im2row, rows + more + zero.format("Tensor")


def _moves() -> Iterator[Line]:
    for name in ("copy", "load", "store"):
        sizes = "(Tensor src, int task_num=0, int channel=0, "
        yield f"idma_{name}.out", moves.copied, sizes
    yield "idma_wait.out", moves.copied, "(Tensor src, int task_num=0, "
    yield "where_Scalar.out", moves.where, "(Tensor condition, float self, float other, "
    yield (
        "quantized_embedding_byte.out",
        moves.embedding,
        "(Tensor weight, Tensor weight_scales, Tensor? weight_zero_points, Tensor indices, "
        "bool pruned_weights=False, ",
    )
    yield "sdpa_bitwise_mask_gen.out", moves.packed_mask, "(Tensor mask, float threshold, "
    angles = "(Tensor input, Tensor sin_tensor, Tensor cos_tensor, Tensor? pos, "
    yield "rope.out", moves.rope, angles
    yield "rope_rotate_stacked_halves.out", moves.rope_halves, angles
    yield (
        "quantized_rope_rotate_stacked_halves.out",
        moves.quantized_rope,
        f"{angles}float in_scale, int in_zero_point, float out_scale, int out_zero_point, ",
    )


_SVD = (
    "(Tensor A, bool full_matrices=False, bool compute_uv=True, str? driver=None, *, "
    "Tensor(a!) U, Tensor(b!) S, Tensor(c!) Vh) -> (Tensor(a!) U, Tensor(b!) S, Tensor(c!) Vh)"
)
# Moves that the plan of the memory has made: the values are in place, and are written once more.
_PLANNED = {
    "_slice_copy_nop.Tensor_out": (
        aten.slice_copy.Tensor,
        "(Tensor self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1, ",
    ),
    "_select_copy_nop.int_out": (
        aten.select_copy.int,
        "(Tensor self, int dim, SymInt index, ",
    ),
    "_cat_nop.out": (aten.cat.default, "(Tensor[] tensors, int dim=0, "),
}
_GROUPS = (_conversions, _binaries, _matmuls, _layers, _quantized_convolutions, _images, _moves)
TABLE: dict[str, Rule] = {
    "cadence::linalg_svd.out": result(moves.svd, _SVD),
    **{f"aten::{name}": result(run, given + _OUT) for name, (run, given) in _PLANNED.items()},
    **{
        f"cadence::{name}": result(run, given + _OUT)
        for group in _GROUPS
        for name, run, given in group()
    },
}
