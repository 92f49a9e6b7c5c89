"""Short names of instructions."""

from __future__ import annotations

from inspector.memory.plan import instruction_label
from schema.backends import short_backend
from schema.program import model as m


def call_label(plan: m.ExecutionPlan, args: m.InstructionArgs) -> str:
    """Return a short label of the callee of an instruction: ``aten.add.out`` or ``XNNPACK 0``."""
    if isinstance(args, m.DelegateCall) and 0 <= args.delegate_index < len(plan.delegates):
        return f"{short_backend(plan.delegates[args.delegate_index].id)} {args.delegate_index}"
    return instruction_label(plan, args).replace("::", ".").removesuffix("Call")
