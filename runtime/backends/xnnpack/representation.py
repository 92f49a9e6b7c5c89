"""The representation of values between nodes, and conversions to and from it.

Every value is held as float32 (int32 for integers): real values unchanged, half precision rounded
to its precision, quantized integers minus their zero point. Sums of such integers are exact below
2**24, so that integer kernels are reproduced exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from runtime.backends.xnnpack.model import (
    BITS,
    PER_TENSOR,
    REAL,
    Datatype,
    Floats,
    Value,
    ValueQuantization,
)
from runtime.backends.xnnpack.quant_params import range_of
from runtime.untyped import from_buffer
from schema.dtypes.scalar_type import numel

Tensor = torch.Tensor
Change = Callable[[Tensor], Tensor]
Bounds = tuple[float, float]

STORED: dict[Datatype, torch.dtype] = {
    Datatype.FLOAT32: torch.float32,
    Datatype.FLOAT16: torch.float16,
    Datatype.BFLOAT16: torch.bfloat16,
    Datatype.QINT8: torch.int8,
    Datatype.QUINT8: torch.uint8,
    Datatype.QINT32: torch.int32,
    Datatype.QCINT8: torch.int8,
    Datatype.QCINT32: torch.int32,
    Datatype.QCINT4: torch.uint8,
    Datatype.QBINT4: torch.uint8,
    Datatype.QDINT8: torch.float32,
    Datatype.INT32: torch.int32,
}
"""Dtype of each datatype outside of the engine; dynamically quantized rows are real there."""


@dataclass(frozen=True, slots=True)
class QuantizedRange:
    """Quantization of a value with one scale, in integers minus the zero point.

    Attributes:
        scale: real value of 1
        zero: zero point
        low: smallest integer minus the zero point
        high: largest integer minus the zero point
    """

    scale: float
    zero: int
    low: int
    high: int

    def nearest(self, real: float) -> float:
        """Return the quantized value nearest to a real one, minus the zero point."""
        inverse = torch.tensor(1.0) / torch.tensor(self.scale)
        rounded = float(torch.round(torch.tensor(real) * inverse))
        return min(max(rounded, self.low), self.high)


def quantized_range_of(value: Value) -> QuantizedRange | None:
    """Return the quantization of a value, None if it is stored as real values."""
    if value.datatype not in PER_TENSOR or value.quantization is None:
        return None
    low, high = range_of(value.datatype)
    zero = value.quantization.zero_point
    return QuantizedRange(value.quantization.scale, zero, low - zero, high - zero)


def to_real(value: Value) -> Change | None:
    """Return the conversion of a stored value to real values, None if it is the identity."""
    steps = quantized_range_of(value)
    if steps is None:
        return None
    scale = steps.scale
    return lambda held: held * scale


def from_real(value: Value, bounds: Bounds | None = None) -> Change | None:
    """Return the conversion of real values to the stored value, None if it is the identity.

    The conversion returns a new tensor.
    """
    steps = quantized_range_of(value)
    if steps is not None:
        return _quantize(steps, bounds)
    if value.datatype == Datatype.QDINT8:
        assert value.quantization is not None
        return quantize_rows(value.quantization.row_dims)
    if value.datatype == Datatype.INT32:
        return lambda real: torch.round(real).to(torch.int32)
    clamp = clamping(bounds)
    if value.datatype == Datatype.FLOAT32:
        return clamp
    narrow = STORED[value.datatype]
    if clamp is None:
        return lambda real: real.to(narrow).float()
    return lambda real: clamp(real).to(narrow).float()


def clamping(bounds: Bounds | None) -> Change | None:
    """Return the clamp to bounds, which returns a new tensor; None if there are no bounds."""
    if bounds is None or bounds == (float("-inf"), float("inf")):
        return None
    low, high = bounds
    if bounds == (0.0, float("inf")):
        return torch.relu
    return lambda real: torch.clamp(real, low, high)


def quantized_bounds(steps: QuantizedRange, bounds: Bounds | None) -> Bounds:
    """Return the bounds of a result in quantized values minus the zero point."""
    if bounds is None:
        return steps.low, steps.high
    return steps.nearest(bounds[0]), steps.nearest(bounds[1])


def _quantize(steps: QuantizedRange, bounds: Bounds | None) -> Change:
    inverse = float(torch.tensor(1.0) / torch.tensor(steps.scale))
    low, high = quantized_bounds(steps, bounds)
    return lambda real: (real * inverse).round_().clamp_(low, high)


def quantize_rows(row_dims: int) -> Change:
    """Return the dynamic quantization of rows, each between its smallest and largest element.

    Source: the asymmetric parameters of dynamically quantized kernels; zero is always exact.
    """
    dims = tuple(range(-row_dims, 0))

    def rounded(real: Tensor) -> Tensor:
        low = real.amin(dims, keepdim=True).clamp_(max=0.0)
        high = real.amax(dims, keepdim=True).clamp_(min=0.0)
        spread = high - low
        inverse = torch.where(spread == 0, torch.ones_like(spread), 255.0 / spread)
        least, most = low * inverse, high * inverse
        from_low = (-128.0 + least) + (127.0 + most) > 0
        zero = torch.where(from_low, -128.0 - least, 127.0 - most).clamp_(-128.0, 127.0).round_()
        steps = (real * inverse).round_()
        steps = torch.minimum(torch.maximum(steps, -128.0 - zero), 127.0 - zero)
        return steps.mul_(1.0 / inverse)

    return rounded


def held(value: Value, stored: Tensor) -> Tensor:
    """Return a tensor of the stored dtype in the held representation."""
    steps = quantized_range_of(value)
    if steps is not None:
        return stored.float().sub_(steps.zero)
    if value.datatype in REAL:
        real = stored.float()
        return quantize_rows(1)(real) if value.dynamic else real
    return stored if value.datatype == Datatype.INT32 else stored.float()


def to_stored(value: Value, carried: Tensor) -> Tensor:
    """Return a held value in its stored dtype, contiguous."""
    steps = quantized_range_of(value)
    if steps is not None:
        carried = carried + float(steps.zero)
    return carried.to(STORED[value.datatype]).contiguous()


def real(value: Value, carried: Tensor) -> Tensor:
    """Return a held value as real values."""
    change = to_real(value)
    return carried if change is None else change(carried)


def constant(value: Value) -> Tensor:
    """Return a constant in the held representation."""
    return held(value, stored_constant(value))


def stored_constant(value: Value) -> Tensor:
    """Return a constant in its stored dtype; 4-bit weights unpacked."""
    assert value.data is not None
    if BITS[value.datatype] == 4:
        return _unpack_int4(value).to(torch.uint8)
    dtype = STORED[value.datatype]
    count = numel(value.dims)
    flat = from_buffer(value.data, dtype, count) if count else torch.empty(0, dtype=dtype)
    return flat.reshape(value.dims)


def integer_weight(value: Value) -> Tensor:
    """Return a quantized weight or bias minus its zero point, in float32."""
    assert value.quantization is not None
    return stored_constant(value).float().sub_(value.quantization.zero_point)


def weight(value: Value) -> Tensor:
    """Return any weight or bias as real values."""
    if value.quantization is None:
        return constant(value)
    return integer_weight(value).mul_(broadcast_scales(value))


def broadcast_scales(value: Value) -> Tensor:
    """Return the scales of a weight in a shape that broadcasts to it."""
    quantization, rank = value.quantization, len(value.dims)
    assert quantization is not None
    scales = _floats(quantization.scales)
    if quantization.group_size:
        return scales.reshape(value.dims[0], -1).repeat_interleave(quantization.group_size, dim=1)
    if len(scales) == 1:
        return scales.reshape(())
    return scales.reshape([-1 if dim == quantization.axis else 1 for dim in range(rank)])


def channel_scales(quantization: ValueQuantization) -> Tensor:
    """Return one scale a channel, or the single scale."""
    return _floats(quantization.scales)


def _floats(scales: Floats) -> Tensor:
    return torch.tensor(scales.tolist(), dtype=torch.float32)


def _unpack_int4(value: Value) -> Tensor:
    assert value.data is not None
    raw = from_buffer(value.data, torch.uint8, len(value.data))
    pairs = torch.stack((raw & 15, raw >> 4), dim=-1)  # the low nibble is the first element
    return pairs.reshape(-1)[: numel(value.dims)].reshape(value.dims).float()
