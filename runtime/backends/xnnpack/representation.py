"""How values are held between nodes, and how bytes and results become that.

Every value is held as float32 (int32 for whole numbers): real numbers as they are, half precision
rounded to what it can hold, integers in steps of a scale as the number of steps from zero. Sums of
such steps are exact below 2**24, so that integer kernels are repeated and not approximated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from runtime.backends.xnnpack.model import (
    BITS,
    REAL,
    STEPPED,
    Datatype,
    Floats,
    Scaling,
    Value,
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
"""Element type of each type outside of the engine; rows in dynamic steps are seen as reals."""


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps that a value may be from zero.

    Attributes:
        scale: what a step stands for
        zero: the integer that stands for zero
        low: least number of steps
        high: largest number of steps
    """

    scale: float
    zero: int
    low: int
    high: int

    def near(self, real: float) -> float:
        """Return the number of steps nearest to a real number."""
        inverse = torch.tensor(1.0) / torch.tensor(self.scale)
        rounded = float(torch.round(torch.tensor(real) * inverse))
        return min(max(rounded, self.low), self.high)


def steps_of(value: Value) -> Steps | None:
    """Return the steps of a value, None for one that is held as real numbers."""
    if value.datatype not in STEPPED or value.scaling is None:
        return None
    low, high = range_of(value.datatype)
    zero = value.scaling.zero_point
    return Steps(value.scaling.scale, zero, low - zero, high - zero)


def to_real(value: Value) -> Change | None:
    """Return what turns a held value into real numbers, None where it is already."""
    steps = steps_of(value)
    if steps is None:
        return None
    scale = steps.scale
    return lambda held: held * scale


def settle(value: Value, bounds: Bounds | None = None) -> Change | None:
    """Return what turns real numbers into the held value, None where nothing is to be done.

    The result is a tensor of its own.
    """
    steps = steps_of(value)
    if steps is not None:
        return _to_steps(steps, bounds)
    if value.datatype == Datatype.QDINT8:
        assert value.scaling is not None
        return rows_in_steps(value.scaling.row_dims)
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
    """Return what keeps a tensor within bounds, None for no bounds; results are new tensors."""
    if bounds is None or bounds == (float("-inf"), float("inf")):
        return None
    low, high = bounds
    if bounds == (0.0, float("inf")):
        return torch.relu
    return lambda real: torch.clamp(real, low, high)


def step_bounds(steps: Steps, bounds: Bounds | None) -> Bounds:
    """Return the least and the largest number of steps a result may be from zero."""
    if bounds is None:
        return steps.low, steps.high
    return steps.near(bounds[0]), steps.near(bounds[1])


def _to_steps(steps: Steps, bounds: Bounds | None) -> Change:
    inverse = float(torch.tensor(1.0) / torch.tensor(steps.scale))
    low, high = step_bounds(steps, bounds)
    return lambda real: (real * inverse).round_().clamp_(low, high)


def rows_in_steps(row_dims: int) -> Change:
    """Return what rounds each row to 256 steps between its least and largest element.

    Source: the asymmetric parameters of dynamically quantised kernels: zero is always a step.
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
    """Return a tensor of the value's stored type as it is held."""
    steps = steps_of(value)
    if steps is not None:
        return stored.float().sub_(steps.zero)
    if value.datatype in REAL:
        real = stored.float()
        return rows_in_steps(1)(real) if value.dynamic else real
    return stored if value.datatype == Datatype.INT32 else stored.float()


def shown(value: Value, carried: Tensor) -> Tensor:
    """Return a held value in its stored type, dense in the order of memory."""
    steps = steps_of(value)
    if steps is not None:
        carried = carried + float(steps.zero)
    return carried.to(STORED[value.datatype]).contiguous()


def real(value: Value, carried: Tensor) -> Tensor:
    """Return a held value as real numbers."""
    change = to_real(value)
    return carried if change is None else change(carried)


def constant(value: Value) -> Tensor:
    """Return a plain or stepped constant as it is held."""
    return held(value, stored_constant(value))


def stored_constant(value: Value) -> Tensor:
    """Return a constant in its stored type; weights of four bits one an element."""
    assert value.data is not None
    if BITS[value.datatype] == 4:
        return _nibbles(value).to(torch.uint8)
    dtype = STORED[value.datatype]
    count = numel(value.dims)
    flat = from_buffer(value.data, dtype, count) if count else torch.empty(0, dtype=dtype)
    return flat.reshape(value.dims)


def weight_steps(value: Value) -> Tensor:
    """Return a quantised weight or bias as numbers of steps from zero, in float32."""
    assert value.scaling is not None
    return stored_constant(value).float().sub_(value.scaling.zero_point)


def weight(value: Value) -> Tensor:
    """Return any weight or bias as real numbers."""
    if value.scaling is None:
        return constant(value)
    return weight_steps(value).mul_(spread_scales(value))


def spread_scales(value: Value) -> Tensor:
    """Return the scales of a weight in a shape that multiplies it element by element."""
    scaling, rank = value.scaling, len(value.dims)
    assert scaling is not None
    scales = _floats(scaling.scales)
    if scaling.group_size:
        return scales.reshape(value.dims[0], -1).repeat_interleave(scaling.group_size, dim=1)
    if len(scales) == 1:
        return scales.reshape(())
    return scales.reshape([-1 if dim == scaling.axis else 1 for dim in range(rank)])


def channel_scales(scaling: Scaling) -> Tensor:
    """Return one scale a channel, or the only one."""
    return _floats(scaling.scales)


def _floats(scales: Floats) -> Tensor:
    return torch.tensor(scales.tolist(), dtype=torch.float32)


def _nibbles(value: Value) -> Tensor:
    assert value.data is not None
    raw = from_buffer(value.data, torch.uint8, len(value.data))
    pairs = torch.stack((raw & 15, raw >> 4), dim=-1)  # the low nibble is the first element
    return pairs.reshape(-1)[: numel(value.dims)].reshape(value.dims).float()
