"""Integer operators of TOSA 1.0, bit exact: RESCALE, TABLE, MUL, shifts, casts.

Integers are computed in 64 bits. Where the specification saturates, so do these; elsewhere an
overflow is an error of the program, and wraps here.

Source: the pseudocode of the TOSA 1.0 specification, chapter 2
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

Facts = Mapping[str, Any]
BOUNDS = {
    "int4": (-7, 7),
    "int8": (-(1 << 7), (1 << 7) - 1),
    "int16": (-(1 << 15), (1 << 15) - 1),
    "int32": (-(1 << 31), (1 << 31) - 1),
    "int48": (-(1 << 47), (1 << 47) - 1),
}
_TABLE_MIDDLE = 128
_TABLE_MIDDLE_16 = 1 << 15


def wide(x: Tensor) -> Tensor:
    """Return integers in 64 bits, other values as they are."""
    return x if x.is_floating_point() or x.dtype is torch.bool else x.long()


def saturated(x: Tensor, dtype: str) -> Tensor:
    """Return integers within the range of a dtype."""
    return x.clamp(*BOUNDS[dtype]) if dtype in BOUNDS else x


def _unsigned(x: Tensor) -> Tensor:
    bits = 8 * x.dtype.itemsize
    return x.long() & ((1 << bits) - 1)


def scaled(value: Tensor, multiplier: Tensor, shift: Tensor, *, double_round: bool) -> Tensor:
    """Return ``value * multiplier / 2**shift``, rounded as apply_scale_32 does."""
    half = torch.ones_like(shift) << (shift - 1)
    if double_round:
        more = torch.where(value >= 0, 1 << 30, -(1 << 30))
        half = half + torch.where(shift > 31, more, 0)
    return (value * multiplier + half) >> shift


def rescale(facts: Facts, dtypes: tuple[str, str], *given: Tensor) -> Tensor:
    """Return integers of another scale and zero point.

    Args:
        facts: of the node
        dtypes: of input and output
        given: input, multiplier, shift, zero point of the input, and of the output
    """
    x, multiplier, shift, in_zero, out_zero = given
    from_zero = _unsigned if facts["input_unsigned"] else wide
    to_zero = _unsigned if facts["output_unsigned"] else wide
    double = facts["rounding_mode"] == "double_round"
    value = from_zero(x) - from_zero(in_zero)
    made = scaled(value, multiplier.long(), shift.long(), double_round=double) + to_zero(out_zero)
    if facts["output_unsigned"]:
        return made.clamp(0, (1 << int(dtypes[1].removeprefix("int"))) - 1)
    return saturated(made, dtypes[1])


def table(x: Tensor, entries: Tensor) -> Tensor:
    """Return the entries of a table for int8, and between its 513 entries for int16."""
    own = entries.long()
    if x.dtype is not torch.int16:
        return own[x.long() + _TABLE_MIDDLE]
    value = x.long() + _TABLE_MIDDLE_16
    index, part = value >> 7, value & 0x7F
    base = own[index]
    return (base << 7) + (own[index + 1] - base) * part


def mul(a: Tensor, b: Tensor, shift: Tensor) -> Tensor:
    """Return a product, of 32-bit integers shifted right with rounding."""
    if a.is_floating_point():
        return a * b
    made, bits = wide(a) * wide(b), int(shift)
    return (made + (1 << (bits - 1))) >> bits if bits else made


def shift_right(facts: Facts, a: Tensor, b: Tensor) -> Tensor:
    """Return an arithmetic shift, rounded to nearest if requested."""
    value, bits = wide(a), wide(b)
    made = value >> bits
    if not facts["round"]:
        return made
    last = (value >> (bits - 1).clamp(min=0)) & 1
    return made + torch.where(bits > 0, last, 0)


def shift_right_logical(a: Tensor, b: Tensor) -> Tensor:
    """Return a shift of the bits, zeros entering from the left."""
    return _unsigned(a) >> b.long()


def leading_zeros(x: Tensor) -> Tensor:
    """Return the number of leading zero bits of 32."""
    bits = torch.frexp(x.double().clamp(min=0)).exponent
    return torch.where(x < 0, 0, 32 - bits.long())


def negate(dtype: str, x: Tensor, in_zero: Tensor, out_zero: Tensor) -> Tensor:
    """Return the negative around zero points."""
    if x.is_floating_point():
        return -x
    return saturated(wide(out_zero) - (wide(x) - wide(in_zero)), dtype)


def divide(a: Tensor, b: Tensor) -> Tensor:
    """Return the quotient of integers, rounded toward zero."""
    return torch.div(wide(a), wide(b), rounding_mode="trunc")


def cast(dtypes: tuple[str, str], x: Tensor) -> Tensor:
    """Return values in another dtype: real ones are rounded to even and saturated."""
    if dtypes[1] == "bool":
        return x != 0
    if x.is_floating_point() and dtypes[1] in BOUNDS:
        low, high = BOUNDS[dtypes[1]]
        return torch.round(x.double()).clamp(low, high).long()
    return x


def plain(run: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return an operator on integers of 64 bits."""

    def called(*given: Tensor) -> Tensor:
        return run(*map(wide, given))

    return called
