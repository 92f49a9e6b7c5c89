"""Getter methods: methods without instructions that return constants, as vocabulary sizes."""

from __future__ import annotations

import numpy as np

from schema.dtypes.scalar_type import numel, scalar_type, to_float64
from schema.errors import FormatError
from schema.objects.identity_cache import identity_cache
from schema.program import ProgramFile, instructions
from schema.program import model as m

_MOST_ELEMENTS = 16
_NO_VALUE = "value not in this file"


@identity_cache
def getters(program: ProgramFile) -> dict[str, str]:
    """Return the values of all getter methods by name, as text.

    A getter takes no input, has no instruction and returns only constants. Several outputs are a
    list, as the compiler flattens one.
    """
    found: dict[str, str] = {}
    for plan in program.plans:
        if plan.inputs or instructions(plan) or not plan.outputs:
            continue
        words = [constant_text(program, plan, index) for index in plan.outputs]
        if all(word is not None for word in words):
            texts = [word for word in words if word is not None]
            found[plan.name] = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    return found


def constant_text(program: ProgramFile, plan: m.ExecutionPlan, index: int) -> str | None:
    """Return a constant value of a plan as text; None for a value that is computed."""
    value = plan.values[index].val if 0 <= index < len(plan.values) else None
    if isinstance(value, m.Int):
        return str(value.int_val)
    if isinstance(value, m.Double):
        return repr(value.double_val)
    if isinstance(value, m.Bool):
        return str(value.bool_val)
    if isinstance(value, m.String):
        return repr(value.string_val)
    if isinstance(value, m.DoubleList | m.BoolList):
        return str(list(value.items))
    if isinstance(value, m.Null):
        return "None"
    return _tensor_text(program, value) if isinstance(value, m.Tensor) else None


def _tensor_text(program: ProgramFile, value: m.Tensor) -> str | None:
    if value.data_buffer_idx == 0 or value.allocation_info is not None:
        return None
    kind = scalar_type(value.scalar_type).short
    head = f"{kind} [{', '.join(map(str, value.sizes))}]"
    count = numel(value.sizes)
    if count > _MOST_ELEMENTS:
        return f"{head}, {count:,} elements"
    try:
        data = program.constant_data(value)
    except FormatError:
        data = None
    if data is None:
        return f"{head}, {_NO_VALUE}"
    values = to_float64(np.frombuffer(data, np.uint8), value.scalar_type)
    if values is None:
        return head
    return f"{head} = {', '.join(f'{one:.9g}' for one in values.tolist())}"
