"""Linear and convolution nodes, whose weights are unpacked once when a payload is loaded."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

from runtime.backends.xnnpack import representation
from runtime.backends.xnnpack.checks import TRANSPOSED
from runtime.backends.xnnpack.model import PER_TENSOR, REAL, Datatype, PayloadNode, Value
from runtime.backends.xnnpack.node_calls import NodeCall, Values, chain, check_size
from runtime.backends.xnnpack.packed import Activation, Window, convolve, multiply
from runtime.backends.xnnpack.pooling import (
    SAME_PADDING,
    pad_image,
    padding_of,
    same_padding,
    to_channels_first,
    to_channels_last,
)
from runtime.backends.xnnpack.representation import Change, Tensor
from runtime.errors import invalid_argument
from runtime.untyped import aten
from schema.payloads.xnnpack import nodes as n
from schema.payloads.xnnpack.model import NO_VALUE

_SCALED_LAST = frozenset({Datatype.QCINT8, Datatype.QCINT4})


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of a node, and the conversion of its accumulators.

    Attributes:
        filters: as in the file, real or quantized integers
        bias: one value per channel, None if absent
        activation: bounds of the accumulators, None where `from_real` applies them
        from_real: converts accumulators, channels last, to the stored representation of the result;
            None if they need no conversion
    """

    filters: Tensor
    bias: Tensor | None
    activation: Activation | None
    from_real: Change | None


def weights_of(node: PayloadNode, values: Values) -> Weights:
    """Return the weights of a node whose filter is a constant."""
    source, filters = values[node.inputs[0]], values[node.inputs[1]]
    target = values[node.outputs[0]]
    bias = None if node.inputs[2] == NO_VALUE else values[node.inputs[2]]
    if source.datatype in PER_TENSOR and filters.quantization is not None:
        return _integer_weights(node, source, filters, bias, target)
    real_bias = (
        None if bias is None or bias.data is None else representation.weight(bias).reshape(-1)
    )
    is_float = source.datatype in REAL and not source.dynamic
    if real_bias is not None and is_float and filters.datatype in _SCALED_LAST:
        # These kernels scale the sum after the bias was added.
        assert filters.quantization is not None
        real_bias = real_bias * representation.channel_scales(filters.quantization)
    if target.datatype.name == "FLOAT32":
        return Weights(representation.weight(filters), real_bias, node.bounds, None)
    return Weights(
        representation.weight(filters),
        real_bias,
        None,
        representation.from_real(target, node.bounds),
    )


def _integer_weights(
    node: PayloadNode, source: Value, filters: Value, bias: Value | None, target: Value
) -> Weights:
    source_range = representation.quantized_range_of(source)
    assert source_range is not None
    assert filters.quantization is not None
    unit = torch.tensor(source_range.scale) * representation.channel_scales(filters.quantization)
    added = None
    if bias is not None:
        added = (
            representation.weight(bias).reshape(-1) / unit
            if bias.datatype in REAL
            else representation.integer_weight(bias).reshape(-1)
        )
    target_range = representation.quantized_range_of(target)
    if target_range is None:
        convert = representation.from_real(target, node.bounds)
        return Weights(
            representation.integer_weight(filters), added, None, _rescaled(unit, convert)
        )
    factor = unit / torch.tensor(target_range.scale)
    low, high = representation.quantized_bounds(target_range, node.bounds)
    return Weights(
        representation.integer_weight(filters),
        added,
        None,
        lambda sums: sums.mul_(factor).round_().clamp_(low, high),
    )


def _rescaled(unit: Tensor, convert: Change | None) -> Change:
    def scale(sums: Tensor) -> Tensor:
        return sums * unit

    return chain(scale, convert) or scale


def linear(node: PayloadNode, values: Values) -> NodeCall:
    """Bind FullyConnected."""
    assert isinstance(node.form, n.FullyConnected)
    if _has_computed_weights(node, values):
        return _linear_with_computed_weights(node, values)
    weights = weights_of(node, values)
    transposed = bool(node.form.flags & TRANSPOSED)
    filters = weights.filters.t().contiguous() if transposed else weights.filters
    rows = _rows(values[node.inputs[0]])
    call = multiply(filters, weights.bias, weights.activation, rows)
    convert, channels = weights.from_real, filters.shape[1]

    def run(held: Tensor) -> Tensor:
        if not held.dim() or held.shape[-1] != channels:
            raise invalid_argument(f"the shape {list(held.shape)} does not fit {channels} channels")
        found = call(held)
        return found if convert is None else convert(found)

    return NodeCall(run, node.inputs[:1])


def _rows(value: Value) -> int:
    return math.prod(value.dims[:-1])


def _has_computed_weights(node: PayloadNode, values: Values) -> bool:
    return any(values[ident].data is None for ident in node.read[1:])


def _linear_with_computed_weights(node: PayloadNode, values: Values) -> NodeCall:
    """Bind a linear layer whose weights are computed or arguments; all are real values then."""
    assert isinstance(node.form, n.FullyConnected)
    transposed = bool(node.form.flags & TRANSPOSED)
    source = values[node.inputs[0]]
    change = representation.to_real(source)
    others = [values[ident] for ident in node.read[1:]]
    ready = [representation.weight(one) if one.data is not None else None for one in others]
    reals = [representation.to_real(one) for one in others]
    convert = representation.from_real(values[node.outputs[0]], node.bounds)

    def run(held: Tensor, *rest: Tensor) -> Tensor:
        held = held if change is None else change(held)
        later = iter(rest)
        parts: list[Tensor | None] = []
        for fixed, real in zip(ready, reals, strict=True):
            part = next(later) if fixed is None else fixed
            parts.append(real(part) if fixed is None and real is not None else part)
        filters, bias = parts[0], parts[1] if len(parts) > 1 else None
        assert filters is not None
        filters = filters.transpose(-1, -2) if transposed else filters
        found = aten.linear.default(held, filters, None if bias is None else bias.reshape(-1))
        return found if convert is None else convert(found)

    reads = [ident for ident in node.read[1:] if values[ident].data is None]
    return NodeCall(run, (node.inputs[0], *reads))


def convolution(node: PayloadNode, values: Values) -> NodeCall:
    """Bind Conv2d and DepthwiseConv2d."""
    assert isinstance(node.form, n.Convolution)
    form = node.form
    weights = weights_of(node, values)
    depthwise = node.kind == "DepthwiseConv2d"
    order = (3, 0, 1, 2) if depthwise else (0, 3, 1, 2)
    filters = weights.filters.permute(order).contiguous()
    window = Window(
        (form.subsampling_height, form.subsampling_width),
        (form.dilation_height, form.dilation_width),
        form.groups,
        padding_of(form),
    )
    same = bool(form.flags & SAME_PADDING)
    if (
        filters.shape[2:] == (1, 1)
        and window.stride == (1, 1)
        and form.groups == 1
        and (same or not any(window.padding))
    ):
        rows = _rows(values[node.inputs[0]])
        one = multiply(filters[:, :, 0, 0], weights.bias, weights.activation, rows)
        return NodeCall(_pointwise_call(one, filters.shape[1], weights.from_real), node.inputs[:1])
    call = convolve(filters, weights.bias, window, weights.activation, padded_by_caller=same)
    return NodeCall(_conv_call(call, filters, window, same, weights.from_real), node.inputs[:1])


def _pointwise_call(
    call: Callable[[Tensor], Tensor], channels: int, convert: Change | None
) -> Change:
    """Return a 1x1 convolution: a matmul over the channels, which are last."""

    def run(held: Tensor) -> Tensor:
        if held.dim() != 4 or held.shape[3] != channels:
            shape = list(held.shape)
            raise invalid_argument(f"an image of shape {shape}, expected {channels} channels")
        found = call(held)
        return found if convert is None else convert(found)

    return run


def _conv_call(
    call: Callable[[Tensor], Tensor],
    filters: Tensor,
    window: Window,
    same: bool,
    convert: Change | None,
) -> Change:
    channels = filters.shape[1] * window.groups
    reach = (filters.shape[2], filters.shape[3])

    def run(held: Tensor) -> Tensor:
        image = to_channels_first(held)
        if image.shape[1] != channels:
            raise invalid_argument(f"an image has {image.shape[1]} channels, expected {channels}")
        if same:
            padding_now = same_padding(image, reach, window.stride, window.dilation)
            image = pad_image(image, padding_now, 0.0)
        found = to_channels_last(call(image))
        return found if convert is None else convert(found)

    return run


def conv_transpose(node: PayloadNode, values: Values) -> NodeCall:
    """Bind ConvTranspose2d."""
    assert isinstance(node.form, n.Convolution)
    form = node.form
    weights = weights_of(node, values)
    filters = _transpose_filters(weights.filters, form.groups)
    stride = [form.subsampling_height, form.subsampling_width]
    dilation = [form.dilation_height, form.dilation_width]
    left, right, top, bottom = padding_of(form)
    more = (form.adjustment_height, form.adjustment_width)
    bias, channels = weights.bias, form.groups * form.group_output_channels
    convert = weights.from_real or representation.clamping(weights.activation)

    def run(held: Tensor) -> Tensor:
        image = to_channels_first(held)
        if image.shape[1] != filters.shape[0]:
            raise invalid_argument(
                f"an image has {image.shape[1]} channels, expected {filters.shape[0]}"
            )
        sizes = [
            (image.shape[2 + dim] - 1) * stride[dim]
            + dilation[dim] * (filters.shape[2 + dim] - 1)
            + 1
            for dim in (0, 1)
        ]
        check_size(
            image.shape[0] * channels * (sizes[0] + more[0]) * (sizes[1] + more[1]), image.numel()
        )
        full = aten.convolution.default(
            image, filters, None, stride, [0, 0], dilation, True, [0, 0], form.groups
        )
        # Padding crops the result and an adjustment extends it; at the lower end both may apply.
        full = aten.constant_pad_nd.default(
            full, [-left, more[1] - right, -top, more[0] - bottom], 0.0
        )
        found = to_channels_last(full)
        found = found if bias is None else found.add_(bias)
        return found if convert is None else convert(found)

    return NodeCall(run, node.inputs[:1])


def _transpose_filters(filters: Tensor, groups: int) -> Tensor:
    """Return a filter in the layout of torch's transposed convolutions.

    Shapes: (G * O, H, W, I) -> (G * I, O, H, W)
    """
    outputs, height, width, channels = filters.shape
    parts = filters.reshape(groups, outputs // groups, height, width, channels)
    return parts.permute(0, 4, 1, 2, 3).reshape(groups * channels, -1, height, width).contiguous()
