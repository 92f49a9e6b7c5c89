"""Checks of a node before it is run; each returns the problem, or an empty string."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, cast

from runtime.backends.xnnpack.model import (
    PER_TENSOR,
    REAL,
    WEIGHT_ONLY,
    Datatype,
    PayloadNode,
    Value,
)
from schema.payloads.xnnpack import nodes as n
from schema.payloads.xnnpack.model import NO_VALUE

Values = Mapping[int, Value]
WITH_WEIGHTS = frozenset({"FullyConnected", "Conv2d", "DepthwiseConv2d", "ConvTranspose2d"})
MOST_SIZE = 1 << 24  # damaged sizes and paddings must not allocate large tensors
"""Largest allowed kernel, stride, padding or image, in elements along one dimension."""
TRANSPOSED = 1  # flag of FullyConnected and BatchMatrixMultiply
_OVER_IMAGES = (n.Convolution, n.Pooling, n.StaticResize)
_NOT_RUN = "ScaledDotProductAttention"
_BITS_OF_4 = frozenset({Datatype.QCINT4, Datatype.QBINT4})


def check_node(node: PayloadNode, values: Values, ready: set[int], fixed: frozenset[int]) -> str:
    """Return why a node cannot be run, empty when it can.

    Args:
        node: the node
        values: all values
        ready: ids of the values that are computed before it runs
        fixed: ids of constants and arguments, which must not be written
    """
    if node.kind == _NOT_RUN:
        return "no XNNPACK runtime supports this node"
    return (
        _operands(node, values, ready)
        or _results(node, values, ready, fixed)
        or _bounds(node)
        or _types(node, values)
        or _fields(node, values)
        or _declared_sizes(node, values)
    )


def _operands(node: PayloadNode, values: Values, ready: set[int]) -> str:
    for place, ident in enumerate(node.inputs):
        if ident == NO_VALUE and node.kind in WITH_WEIGHTS and place == 2:
            continue
        if ident not in values:
            return f"operand {place} is value {ident}, which is not among the values"
        if ident not in ready:
            return f"operand {place} is value {ident}, which is not computed yet"
    return ""


def _results(node: PayloadNode, values: Values, ready: set[int], fixed: frozenset[int]) -> str:
    if len(set(node.outputs)) != len(node.outputs):
        return f"value {node.outputs[0]} is both of its results"
    for ident in node.outputs:
        if ident not in values:
            return f"its result is value {ident}, which is not among the values"
        if ident in fixed:
            return f"its result is value {ident}, which is a constant or an argument"
        if ident in ready:
            return f"its result is value {ident}, which another node computes"
    return ""


def _declared_sizes(node: PayloadNode, values: Values) -> str:
    """Return why a result cannot have its declared sizes, for which memory is allocated."""
    input_dims, result_dims = values[node.inputs[0]].dims, values[node.outputs[0]].dims
    if (
        isinstance(node.form, _OVER_IMAGES)
        and len(input_dims) == len(result_dims)
        and result_dims[0] > input_dims[0]
    ):
        return f"its result has {result_dims[0]} images, its operand {input_dims[0]}"
    if isinstance(node.form, n.Unary) and math.prod(result_dims) > math.prod(input_dims):
        return f"its result has the sizes {list(result_dims)}, its operand {list(input_dims)}"
    if isinstance(node.form, n.Binary | n.FullyConnected):
        most = math.prod(max(1, size) for one in node.inputs[:2] for size in values[one].dims)
        if math.prod(result_dims) > most:
            return f"its result has the sizes {list(result_dims)}, its operands do not"
    return ""


def _bounds(node: PayloadNode) -> str:
    if node.bounds is None:
        return ""
    low, high = node.bounds
    return "" if low < high else f"its bounds are {low:g} and {high:g}"


def _types(node: PayloadNode, values: Values) -> str:
    weighted = node.kind in WITH_WEIGHTS
    for place, ident in enumerate(node.inputs):
        if ident == NO_VALUE:
            continue
        datatype = values[ident].datatype
        if datatype in WEIGHT_ONLY and not (weighted and place > 0):
            return f"operand {place} is {datatype.name.lower()}, which only weights can be"
        if datatype == Datatype.QDINT8 and not (weighted and place == 0):
            return f"operand {place} is {datatype.name.lower()}, which it does not support"
    for ident in node.outputs:
        datatype = values[ident].datatype
        if datatype in WEIGHT_ONLY or (datatype == Datatype.QDINT8 and node.kind != "Convert"):
            return f"its result is {datatype.name.lower()}, which it does not return"
    if isinstance(node.form, n.Unary) and node.kind != "Convert":
        given, made = (values[ident].datatype for ident in (*node.inputs, *node.outputs))
        if given != made:  # the kernels would write beyond the table that they make of it
            return f"its result is {made.name.lower()}, its operand {given.name.lower()}"
    return _weights(node, values) if weighted else ""


def _weights(node: PayloadNode, values: Values) -> str:
    source, filters = values[node.inputs[0]], values[node.inputs[1]]
    if source.datatype == Datatype.INT32 or filters.datatype in (Datatype.INT32, Datatype.QDINT8):
        return "it does not multiply these dtypes"
    if source.datatype in PER_TENSOR and filters.datatype in (*REAL, *_BITS_OF_4):
        return f"{source.datatype.name.lower()} times {filters.datatype.name.lower()}"
    if filters.data is None and node.kind != "FullyConnected":
        return "its filter is not a constant"
    bias = values.get(node.inputs[2])
    if bias is not None:
        if bias.data is None and (bias.datatype not in REAL or node.kind != "FullyConnected"):
            return "its bias is not a constant"
        requested = _channels_out(node, filters)
        if math.prod(bias.dims) != requested:
            return f"its bias has the sizes {list(bias.dims)}, expected {requested} channels"
    return ""


def _channels_out(node: PayloadNode, filters: Value) -> int:
    dims = filters.dims
    if isinstance(node.form, n.FullyConnected):
        place = 1 if node.form.flags & TRANSPOSED else 0
        return dims[place] if len(dims) == 2 else -1
    return dims[3 if node.kind == "DepthwiseConv2d" else 0] if len(dims) == 4 else -1


def _fields(node: PayloadNode, values: Values) -> str:
    check = _BY_FORM.get(type(node.form))
    return "" if check is None else check(node, node.form, values)


def _sizes(form: object, names: str, least: int) -> str:
    for name in names.split():
        size = getattr(form, name)
        if not least <= size <= MOST_SIZE:
            return f"{name} is {size}"
    return ""


_PADDING = "padding_top padding_right padding_bottom padding_left"


def _convolution(node: PayloadNode, form: n.Convolution, values: Values) -> str:
    wrong = _sizes(
        form,
        "kernel_height kernel_width subsampling_height subsampling_width dilation_height "
        "dilation_width group_input_channels group_output_channels groups",
        1,
    ) or _sizes(form, f"{_PADDING} adjustment_height adjustment_width", 0)
    if wrong:
        return wrong
    window = (form.kernel_height, form.kernel_width)
    requested = (form.groups * form.group_output_channels, *window, form.group_input_channels)
    if node.kind == "DepthwiseConv2d":
        if form.group_output_channels % form.group_input_channels:
            return (
                f"{form.group_output_channels} output channels for "
                f"{form.group_input_channels} input channels in each group"
            )
        many = form.group_output_channels // form.group_input_channels
        requested = (1, *window, form.groups * many)
    found = values[form.filter_id].dims
    return "" if found == requested else f"its filter is {list(found)}, expected {list(requested)}"


def _linear(node: PayloadNode, form: n.FullyConnected, values: Values) -> str:
    del node
    filters = values[form.filter_id]
    if len(filters.dims) != 2:
        return f"its filter has the sizes {list(filters.dims)}"
    packed = filters.datatype in _BITS_OF_4
    if packed and (filters.dims[1] % 2 or form.flags & TRANSPOSED):
        return f"weights of four bits have the sizes {list(filters.dims)}"
    axis = filters.quantization.axis if filters.quantization is not None else 0
    if filters.datatype == Datatype.QCINT8 and axis != form.flags & TRANSPOSED:
        return f"the scales of its filter are those of dimension {axis}"
    return ""


def _pooling(node: PayloadNode, form: n.Pooling, values: Values) -> str:
    del values
    strides = "" if node.kind == "ArgMaxPooling2d" else " stride_height stride_width"
    dilations = " dilation_height dilation_width" if node.kind == "MaxPooling2d" else ""
    window = f"pooling_height pooling_width{strides}{dilations}"
    return _sizes(form, window, 1) or _sizes(form, _PADDING, 0)


def _transpose(node: PayloadNode, form: n.StaticTranspose, values: Values) -> str:
    del node, values
    if form.num_dims != len(form.perm) or sorted(form.perm) != list(range(len(form.perm))):
        return f"{list(form.perm)} is not a permutation of {form.num_dims} dimensions"
    return ""


def _reshape(node: PayloadNode, form: n.StaticReshape, values: Values) -> str:
    del node, values
    shape = form.new_shape
    if form.num_dims != len(shape) or len(shape) > 6 or shape.count(0) > 1:
        return f"the new shape is {list(shape)} with {form.num_dims} dimensions"
    return ""


def _slice(node: PayloadNode, form: n.StaticSlice, values: Values) -> str:
    del node, values
    if not form.num_dims == len(form.offsets) == len(form.sizes):
        return f"{len(form.offsets)} offsets and {len(form.sizes)} sizes of {form.num_dims}"
    return ""


def _pad(node: PayloadNode, form: n.StaticPad, values: Values) -> str:
    del node
    rank = len(values[form.input_id].dims)
    if not len(form.pre_paddings) == len(form.post_paddings) == rank:
        return (
            f"{len(form.pre_paddings)} and {len(form.post_paddings)} paddings for {rank} dimensions"
        )
    if max((*form.pre_paddings, *form.post_paddings), default=0) > MOST_SIZE:
        return f"the paddings are {list(form.pre_paddings)} and {list(form.post_paddings)}"
    return ""


def _resize(node: PayloadNode, form: n.StaticResize, values: Values) -> str:
    del node, values
    return _sizes(form, "new_height new_width", 1)


def _concatenate(node: PayloadNode, form: n.Concatenate, values: Values) -> str:
    rank = len(values[node.outputs[0]].dims)
    return "" if form.axis < rank else f"the axis is {form.axis} of {rank} dimensions"


def _slope(node: PayloadNode, form: n.LeakyReLU | n.ELU, values: Values) -> str:
    del node, values
    slope = form.negative_slope if isinstance(form, n.LeakyReLU) else form.alpha
    return "" if math.isfinite(slope) else f"its slope is {slope}"


_Check = Callable[[PayloadNode, Any, Values], str]
_BY_FORM: Mapping[type, _Check] = MappingProxyType(
    cast(
        "dict[type, _Check]",
        {
            n.Convolution: _convolution,
            n.FullyConnected: _linear,
            n.Pooling: _pooling,
            n.ArgMaxPooling: _pooling,
            n.StaticTranspose: _transpose,
            n.StaticReshape: _reshape,
            n.StaticSlice: _slice,
            n.StaticPad: _pad,
            n.StaticResize: _resize,
            n.Concatenate: _concatenate,
            n.LeakyReLU: _slope,
            n.ELU: _slope,
        },
    )
)
