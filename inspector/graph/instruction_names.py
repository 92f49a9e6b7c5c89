"""Short names of instructions."""

from __future__ import annotations

from functools import lru_cache

from inspector.memory.plan import instruction_label
from schema.backends import short_backend
from schema.program import model as m


def call_label(plan: m.ExecutionPlan, args: m.InstructionArgs) -> str:
    """Return a short label of the callee of an instruction: ``aten.add.out`` or ``XNNPACK 0``."""
    if isinstance(args, m.DelegateCall) and 0 <= args.delegate_index < len(plan.delegates):
        return f"{short_backend(plan.delegates[args.delegate_index].id)} {args.delegate_index}"
    return dotted(instruction_label(plan, args)).removesuffix("Call")


@lru_cache(maxsize=4096)  # a program has few operators: tables hold one string for all their calls
def dotted(target: str) -> str:
    """Return ``aten.add.out`` for ``aten::add.out``."""
    return target.replace("::", ".")
