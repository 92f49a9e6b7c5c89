"""Quantization parameters that the instructions of a program name for their values."""

from __future__ import annotations

import re

import numpy as np

from schema.dtypes.scalar_type import to_float64
from schema.errors import FormatError
from schema.graph import QuantizationParameters
from schema.objects.identity_cache import identity_cache
from schema.program import ProgramFile, instructions, operator_name
from schema.program import model as m

_OPERATOR = re.compile(r"quantized_decomposed::(?P<way>de)?quantize_per_(?P<by>tensor|channel)\.")


@identity_cache
def plan_quantization(program: ProgramFile, method: str) -> dict[int, QuantizationParameters]:
    """Return value -> parameters of the integers that quantize and dequantize kernels name."""
    plan = program.plan(method)
    found: dict[int, QuantizationParameters] = {}
    for _, _, instruction in instructions(plan):
        args = instruction.instr_args
        if not isinstance(args, m.KernelCall):
            continue
        kind = _OPERATOR.match(operator_name(plan, args))
        if kind is None or len(args.args) < 4:
            continue
        value = args.args[0] if kind["way"] else args.args[-1]
        given = _parameters(program, plan, args.args, per_channel=kind["by"] == "channel")
        if given is not None:
            found[value] = given
    return found


def _parameters(
    program: ProgramFile, plan: m.ExecutionPlan, args: tuple[int, ...], *, per_channel: bool
) -> QuantizationParameters | None:
    scale, zero = (_numbers(program, plan, index) for index in args[1:3])
    if not scale:
        return None
    points = tuple(round(one) for one in zero)
    if not per_channel:
        return QuantizationParameters("per_tensor", scale[:1], points[:1])
    axis = _numbers(program, plan, args[3])
    return QuantizationParameters("per_channel", scale, points, int(axis[0]) if axis else 0)


def _numbers(program: ProgramFile, plan: m.ExecutionPlan, index: int) -> tuple[float, ...]:
    """Return the values of a constant operand, empty for one that is computed."""
    value = plan.values[index].val if 0 <= index < len(plan.values) else None
    if isinstance(value, m.Double):
        return (float(value.double_val),)
    if isinstance(value, m.Int):
        return (float(value.int_val),)
    if not isinstance(value, m.Tensor) or value.allocation_info is not None:
        return ()
    try:
        data = program.constant_data(value)
    except FormatError:
        data = None
    if data is None:
        return ()
    numbers = to_float64(np.frombuffer(data, np.uint8), value.scalar_type)
    return () if numbers is None else tuple(float(one) for one in numbers)
