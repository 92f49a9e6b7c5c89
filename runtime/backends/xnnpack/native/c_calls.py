"""A plan as calls of the library's C API."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from runtime.backends.xnnpack.model import Datatype, PartitionPlan, PayloadNode, Value
from schema.payloads.xnnpack import nodes as n
from schema.payloads.xnnpack.model import NO_VALUE

Place = list[int]
"""Id of a region, and an offset in it."""
DefineCall = tuple[int, str, list[Any]]

# The library's enum values differ from those of the file from 10 on.
_DATATYPES = {Datatype.QBINT4: 12, Datatype.INT32: 11}
_UNARY = {
    "Abs": 0,
    "Ceiling": 3,
    "Clamp": 4,
    "Cos": 6,
    "ELU": 7,
    "Floor": 9,
    "Gelu": 10,
    "Hardswish": 11,
    "LeakyReLU": 12,
    "Log": 13,
    "Negate": 14,
    "ReciprocalSquareRoot": 15,
    "Sigmoid": 16,
    "Sin": 17,
    "SquareRoot": 18,
    "Square": 19,
}
_BINARY = {"Add": 0, "Subtract": 1, "Multiply": 2, "Div": 3, "Maximum": 4, "Minimum": 5}
_UNBOUNDED = frozenset({"Maximum", "Minimum"})
_NAMED = {
    "Convert": "xnn_define_convert",
    "Copy": "xnn_define_copy",
    "Exp": "xnn_define_exp",
    "Softmax": "xnn_define_softmax",
    "Tanh": "xnn_define_tanh",
}
_INPUT, _OUTPUT = 1, 2
_BLOCK_ZERO = 8  # 4-bit weights are stored unsigned, with 8 for zero


@dataclass(slots=True)
class LibraryCalls:
    """The calls that create a runtime.

    Attributes:
        externs: number of reserved ids
        values: id, function and arguments
        nodes: index in the payload, function and arguments
    """

    externs: int
    values: list[tuple[int, str, list[Any]]] = field(default_factory=list[Any])
    nodes: list[DefineCall] = field(default_factory=list[DefineCall])

    def question(self) -> dict[str, Any]:
        """Return it as arguments of the child's request."""
        return {"externs": self.externs, "values": self.values, "nodes": self.nodes}


def library_calls(
    plan: PartitionPlan,
    nodes: Iterable[PayloadNode],
    external: dict[int, tuple[int, int]],
    place: Callable[[Value, str], Place],
) -> LibraryCalls:
    """Return the calls that create a runtime for some nodes of a plan.

    Args:
        plan: the checked payload
        nodes: nodes to be run, in order
        external: by value, id in the runtime and flag: input (1) or result (2)
        place: returns the location of ``data`` or ``scales`` of a value
    """
    chosen = list(nodes)
    calls = LibraryCalls(max((ident for ident, _ in external.values()), default=-1) + 1)
    extra = _Extra(max(plan.values, default=0) + 1)
    known = {ident for node in chosen for ident in (*node.read, *node.outputs)}
    for ident in plan.values:
        if ident in known or ident in external:
            _value(calls, plan.values[ident], external.get(ident), place, extra)
    for node in chosen:
        _node(calls, node, plan, extra)
    return calls


@dataclass(slots=True)
class _Extra:
    """Ids of values that are not in the payload."""

    next: int

    def ident(self) -> int:
        self.next += 1
        return self.next - 1


def _value(
    calls: LibraryCalls,
    value: Value,
    end: tuple[int, int] | None,
    place: Callable[[Value, str], Place],
    extra: _Extra,
) -> None:
    dims, rank = list(value.dims), len(value.dims)
    ident, flags = end if end is not None else (NO_VALUE, 0)
    kind = _DATATYPES.get(value.datatype, int(value.datatype))
    if value.dynamic and end is not None:
        # A float argument of the oldest payloads, which nodes read quantized by row.
        given = extra.ident()
        whole = [1, rank, dims, None, ident, flags]
        calls.values.append((given, "xnn_define_tensor_value", whole))
        rows = [int(Datatype.QDINT8), rank, 1, dims, NO_VALUE, 0]
        calls.values.append((value.ident, "xnn_define_dynamically_quantized_tensor_value", rows))
        calls.nodes.append((-1, "xnn_define_convert", [given, value.ident, 0]))
        return
    data = None if value.data is None else place(value, "data")
    quantization = value.quantization
    if quantization is None:
        calls.values.append(
            (value.ident, "xnn_define_tensor_value", [kind, rank, dims, data, ident, flags])
        )
    elif quantization.row_dims:
        args = [kind, rank, quantization.row_dims, dims, ident, flags]
        calls.values.append((value.ident, "xnn_define_dynamically_quantized_tensor_value", args))
    elif quantization.group_size:
        scales = place(value, "scales")
        args = [kind, _BLOCK_ZERO, scales, rank, quantization.axis, quantization.group_size, dims]
        args += [data, ident, flags]
        calls.values.append((value.ident, "xnn_define_blockwise_quantized_tensor_value", args))
    elif value.datatype in (Datatype.QCINT8, Datatype.QCINT32, Datatype.QCINT4):
        scales = place(value, "scales")
        args = [
            kind,
            quantization.zero_point,
            scales,
            rank,
            quantization.axis,
            dims,
            data,
            ident,
            flags,
        ]
        name = "xnn_define_channelwise_quantized_tensor_value_v2"
        calls.values.append((value.ident, name, args))
    else:
        args = [kind, quantization.zero_point, quantization.scale, rank, dims, data, ident, flags]
        calls.values.append((value.ident, "xnn_define_quantized_tensor_value", args))


def _node(calls: LibraryCalls, node: PayloadNode, plan: PartitionPlan, extra: _Extra) -> None:
    bounds = list(node.bounds or (float("-inf"), float("inf")))
    form: Any = node.form
    if node.kind == "FullyConnected" and _all_narrow(node, plan):
        # No kernel maps bfloat16 to bfloat16; the stock runtime converts too.
        whole = extra.ident()
        dims = list(plan.values[node.outputs[0]].dims)
        args = [1, len(dims), dims, None, NO_VALUE, 0]
        calls.values.append((whole, "xnn_define_tensor_value", args))
        name = "xnn_define_fully_connected"
        calls.nodes.append((node.index, name, [*bounds, *node.inputs, whole, form.flags]))
        calls.nodes.append((node.index, "xnn_define_convert", [whole, node.outputs[0], 0]))
        return
    name, args = _call(node, form, bounds)
    calls.nodes.append((node.index, name, args))


def _all_narrow(node: PayloadNode, plan: PartitionPlan) -> bool:
    ids = (*node.inputs[:2], node.outputs[0])
    return all(plan.values[ident].datatype == Datatype.BFLOAT16 for ident in ids)


def _call(node: PayloadNode, form: Any, bounds: list[float]) -> tuple[str, list[Any]]:  # noqa: ANN401
    ends = [*node.inputs, *node.outputs, form.flags]
    if node.kind in _UNARY:
        return "xnn_define_unary", [_UNARY[node.kind], _parameters(node, form, bounds), *ends]
    if node.kind in _BINARY:
        limits = None if node.kind in _UNBOUNDED else bounds
        return "xnn_define_binary", [_BINARY[node.kind], limits, *ends]
    if node.kind in _NAMED:
        return _NAMED[node.kind], ends
    return _BY_FORM[type(form)](node, form, bounds, ends)


def _parameters(node: PayloadNode, form: Any, bounds: list[float]) -> list[float] | None:  # noqa: ANN401
    if node.kind == "Clamp":
        return bounds
    if isinstance(form, n.LeakyReLU):
        return [form.negative_slope, 0.0]
    return [form.alpha, 0.0] if isinstance(form, n.ELU) else None


_Call = tuple[str, list[Any]]


def _padding(form: Any) -> list[int]:  # noqa: ANN401 - any form with paddings
    return [form.padding_top, form.padding_right, form.padding_bottom, form.padding_left]


def _convolution(
    node: PayloadNode, form: n.Convolution, bounds: list[float], ends: list[int]
) -> _Call:
    window = [form.kernel_height, form.kernel_width]
    stride = [form.subsampling_height, form.subsampling_width]
    dilation = [form.dilation_height, form.dilation_width]
    channels = [form.group_input_channels, form.group_output_channels]
    if node.kind == "ConvTranspose2d":
        adjust = [form.adjustment_height, form.adjustment_width]
        args = [*_padding(form), *adjust, *window, *stride, *dilation, form.groups, *channels]
        return "xnn_define_deconvolution_2d", [*args, *bounds, *ends]
    if node.kind == "DepthwiseConv2d":
        many = form.group_output_channels // form.group_input_channels
        args = [*_padding(form), *window, *stride, *dilation, many, form.groups]
        return "xnn_define_depthwise_convolution_2d", [*args, *bounds, *ends]
    args = [*_padding(form), *window, *stride, *dilation, form.groups, *channels]
    return "xnn_define_convolution_2d", [*args, *bounds, *ends]


def _linear(
    node: PayloadNode, form: n.FullyConnected, bounds: list[float], ends: list[int]
) -> _Call:
    del node, form
    return "xnn_define_fully_connected", [*bounds, *ends]


def _pooling(node: PayloadNode, form: n.Pooling, bounds: list[float], ends: list[int]) -> _Call:
    window = [form.pooling_height, form.pooling_width, form.stride_height, form.stride_width]
    if node.kind == "AvgPooling2d":
        return "xnn_define_average_pooling_2d", [*_padding(form), *window, *bounds, *ends]
    window += [form.dilation_height, form.dilation_width]
    return "xnn_define_max_pooling_2d", [*_padding(form), *window, *bounds, *ends]


def _largest(
    node: PayloadNode, form: n.ArgMaxPooling, bounds: list[float], ends: list[int]
) -> _Call:
    del node, bounds
    window = [form.pooling_height, form.pooling_width]
    return "xnn_define_argmax_pooling_2d", [*_padding(form), *window, *ends]


def _mean(node: PayloadNode, form: n.Unary, bounds: list[float], ends: list[int]) -> _Call:
    del node, form
    return "xnn_define_global_average_pooling_2d", [*bounds, *ends]


def _binary(node: PayloadNode, form: n.Binary, bounds: list[float], ends: list[int]) -> _Call:
    del form, bounds
    name = "prelu" if node.kind == "PReLU" else "batch_matrix_multiply"
    return f"xnn_define_{name}", list(ends)


def _transpose(
    node: PayloadNode, form: n.StaticTranspose, bounds: list[float], ends: list[int]
) -> _Call:
    del node, bounds
    return "xnn_define_static_transpose", [len(form.perm), list(form.perm), *ends]


def _reshape(
    node: PayloadNode, form: n.StaticReshape, bounds: list[float], ends: list[int]
) -> _Call:
    del node, bounds
    return "xnn_define_static_reshape", [len(form.new_shape), list(form.new_shape), *ends]


def _slice(node: PayloadNode, form: n.StaticSlice, bounds: list[float], ends: list[int]) -> _Call:
    del node, bounds
    parts = [len(form.offsets), list(form.offsets), list(form.sizes)]
    return "xnn_define_static_slice", [*parts, *ends]


def _pad(node: PayloadNode, form: n.StaticPad, bounds: list[float], ends: list[int]) -> _Call:
    del node, bounds
    padding = [list(form.pre_paddings), list(form.post_paddings), form.padding_value]
    return "xnn_define_static_constant_pad", [*padding, *ends]


def _resize(node: PayloadNode, form: n.StaticResize, bounds: list[float], ends: list[int]) -> _Call:
    del node, bounds
    return "xnn_define_static_resize_bilinear_2d", [form.new_height, form.new_width, *ends]


def _concatenate(
    node: PayloadNode, form: n.Concatenate, bounds: list[float], ends: list[int]
) -> _Call:
    del bounds
    return f"xnn_define_concatenate{len(node.inputs)}", [form.axis, *ends]


_BY_FORM: dict[type, Callable[[PayloadNode, Any, list[float], list[int]], _Call]] = {
    n.ArgMaxPooling: _largest,
    n.Binary: _binary,
    n.Concatenate: _concatenate,
    n.Convolution: _convolution,
    n.FullyConnected: _linear,
    n.Pooling: _pooling,
    n.StaticPad: _pad,
    n.StaticReshape: _reshape,
    n.StaticResize: _resize,
    n.StaticSlice: _slice,
    n.StaticTranspose: _transpose,
    n.Unary: _mean,
}
