"""Weights and biases of layers as kernels expect them: float, 8 bit or 4 bit."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch

from compiler.backends.xnnpack.facts import argument, op_of
from compiler.backends.xnnpack.lowering import Lowering
from compiler.backends.xnnpack.operators import scale_and_shift
from compiler.backends.xnnpack.patterns import WEIGHT_AT
from compiler.backends.xnnpack.precision import ConfigPrecisionType
from compiler.backends.xnnpack.quantization import Affine, Scales, affine_of, dequantized_weight
from compiler.backends.xnnpack.steps import PayloadStep
from compiler.backends.xnnpack.writer import QBINT4, QCINT4, QCINT8, QCINT32, QINT32
from compiler.errors import UnsupportedError, at
from compiler.untyped import aten
from schema.payloads.xnnpack import model as m
from schema.payloads.xnnpack.model import NO_VALUE

Node = torch.fx.Node
_INT32 = torch.iinfo(torch.int32)
_QINT8 = 3


@dataclass(frozen=True)
class IntegerWeight:
    """The integers of a weight in their memory layout.

    Attributes:
        data: int8
        channels: dimension of the output channels in memory
        outputs: number of output channels
    """

    data: torch.Tensor
    channels: int
    outputs: int


def parameters(
    lowering: Lowering, step: PayloadStep, weight_at: int, bias_at: int
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Return weight and bias with batch norms folded in; int8 if the kernel expects that.

    Shapes: the weight as stored, [out, in] even if it is read transposed
    """
    node, steps = step.node, lowering.steps
    args: Any = node.args
    given = args[bias_at] if 0 <= bias_at < len(args) else None
    bias = None if given is None else steps.constant(given)
    whole = stored(lowering, step)
    if whole is not None:
        return whole, bias
    home: Any = dequantized_weight(args[weight_at]) or steps.facts.weight(args[weight_at])
    weight = steps.constant(home)
    if not step.norms:
        return weight, bias
    dtype = weight.dtype
    transposed = op_of(node) is aten.convolution.default and bool(argument(node, "transposed"))
    groups = int(argument(node, "groups")) if transposed else 1
    wide, shift = weight.double(), 0.0 if bias is None else bias.double()
    for norm in step.norms:
        factor, summand = scale_and_shift(lowering, norm)
        wide = _scaled(wide, factor, groups) if transposed else wide * _tall(factor, wide)
        shift = shift * factor + summand
    assert isinstance(shift, torch.Tensor)
    return wide.to(dtype), shift.to(dtype)


def filed_as_weight(
    lowering: Lowering, step: PayloadStep, weight_at: int
) -> AbstractContextManager[None]:
    """Send constants added in the context to the file of a step's weight."""
    return lowering.filed_with(step.node.args[weight_at])


def filed_as_bias(
    lowering: Lowering, step: PayloadStep, bias_at: int
) -> AbstractContextManager[None]:
    """Send constants added in the context to the file of a step's bias, or of its norm."""
    args = step.node.args
    own = args[bias_at : bias_at + 1] if bias_at >= 0 else ()
    return lowering.filed_with(*own, *(given for norm in step.norms for given in norm.args[1:5]))


def _tall(factor: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return factor.reshape(-1, *[1] * (weight.dim() - 1))


def _scaled(weight: torch.Tensor, factor: torch.Tensor, groups: int) -> torch.Tensor:
    """Scale the filters of a transposed convolution, whose outputs are the second dimension."""
    split = weight.reshape(groups, -1, *weight.shape[1:])
    wide = factor.reshape(groups, 1, -1, *[1] * (weight.dim() - 2))
    return (split * wide).reshape(weight.shape)


def stored(lowering: Lowering, step: PayloadStep) -> torch.Tensor | None:
    """Return the integers of a step's weight, None if its kernel expects floating point."""
    given = dequantized_weight(step.node.args[WEIGHT_AT[op_of(step.node)]])
    scales = step.pattern.weight
    if given is None or scales is None or step.norms:
        return None
    data = lowering.steps.constant(_numbers(given))
    if step.pattern.precision is ConfigPrecisionType.FP32 and not _alone(step, scales, data):
        return None
    return data


def _numbers(given: Node) -> Node:
    source: Any = given.args[0]
    return source


def _alone(step: PayloadStep, scales: Scales, data: torch.Tensor) -> bool:
    """Return whether a floating-point kernel accepts a quantized weight: linear layers only."""
    linear = op_of(step.node) in (aten.linear.default, aten.addmm.default)
    mm = op_of(step.node) is aten.mm.default
    plain = step.node.meta["val"].dtype is torch.float32
    return (linear or mm) and plain and not scales.group and data.dim() == 2


def filter_of(lowering: Lowering, step: PayloadStep, whole: IntegerWeight) -> int:
    """Add an integer weight and return the id of its value."""
    scales = step.pattern.weight
    assert scales is not None
    static = step.pattern.precision is ConfigPrecisionType.STATIC_QUANT
    if scales.axis < 0 and static:
        params = m.PerTensorQuant(float(scales.scale[0]), 0)
        return _value(lowering, _QINT8, whole.data, whole.data.shape, params)
    scale = scales.scale
    if scales.axis < 0:
        scale = scale.expand(whole.outputs).contiguous()
    if scales.bits == 4 and not static:
        built = _nibbles(lowering, step, whole, scales, scale)
        if built is not None:
            return built
    return _value(
        lowering,
        QCINT8,
        whole.data,
        whole.data.shape,
        _per_channel(lowering, scale, whole.channels),
    )


def _nibbles(
    lowering: Lowering, step: PayloadStep, whole: IntegerWeight, scales: Scales, scale: torch.Tensor
) -> int | None:
    inputs = whole.data.shape[-1]
    if inputs % 2:
        return None  # two share a byte
    packed = _packed(whole.data, step)
    if not scales.group:
        params: m.QuantParams = _per_channel(lowering, scale, 0)
        return _value(lowering, QCINT4, packed, whole.data.shape, params)
    count = scale.numel()
    place = lowering.writer.constant(scale.to(torch.bfloat16), "scale_")
    params = m.PerChannelGroupQuant(
        group_size=scales.group, scale_buffer_idx=place, num_scales=count
    )
    return _value(lowering, QBINT4, packed, whole.data.shape, params)


def _packed(data: torch.Tensor, step: PayloadStep) -> torch.Tensor:
    """Return int4 values packed two to a byte, the first one in the low half, with an offset of 8.

    Raises: UnsupportedError if a value exceeds that range
    """
    low, high = int(data.min()), int(data.max())
    if low < -8 or high > 7:
        raise UnsupportedError(
            f"the weight has values from {low} to {high}, expected -8 to 7, {at(step.node)}"
        )
    shifted = (data.to(torch.int16) + 8).to(torch.uint8).reshape(-1)
    return shifted[1::2] << 4 | shifted[::2]


def _per_channel(lowering: Lowering, scale: torch.Tensor, channels: int) -> m.PerChannelQuant:
    place = lowering.writer.constant(scale.float(), "scale_")
    return m.PerChannelQuant(channel_dim=channels, scale_buffer_idx=place, num_scales=scale.numel())


def _value(
    lowering: Lowering,
    datatype: int,
    data: torch.Tensor,
    dims: torch.Size,
    params: m.QuantParams,
) -> int:
    place = lowering.writer.constant(data)
    return lowering.writer.value(datatype, tuple(dims), constant=place, quantization=params)


def bias_of(lowering: Lowering, step: PayloadStep, bias: torch.Tensor | None, source: Node) -> int:
    """Add the bias of a layer with an integer weight and return the id of its value.

    Args:
        lowering: the payload
        step: the layer
        bias: floating point
        source: input of the layer
    """
    if bias is None:
        return NO_VALUE
    plain = bias.float().reshape(-1)
    if step.pattern.precision is not ConfigPrecisionType.STATIC_QUANT:
        return lowering.fixed(plain)
    affine = integers_read(lowering, source)
    scales = step.pattern.weight
    assert scales is not None
    scale = scales.scale.double() * affine.scale
    whole = (plain.double() / scale).round().clamp(_INT32.min, _INT32.max).to(torch.int32)
    if scales.axis < 0:
        params: m.QuantParams = m.PerTensorQuant(float(scale[0]), 0)
        return _value(lowering, QINT32, whole, whole.shape, params)
    return _value(lowering, QCINT32, whole, whole.shape, _per_channel(lowering, scale, 0))


def integers_read(lowering: Lowering, source: Node) -> Affine:
    """Return scale and zero point of the input of a quantized layer."""
    found = affine_of(source) or lowering.steps.affine(source)
    assert found is not None
    return found
