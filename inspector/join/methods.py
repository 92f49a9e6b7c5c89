"""Which method of the program a block of events is a run of, and the first fact against it."""

from __future__ import annotations

from dataclasses import dataclass

from inspector.join.kernels import kernels_against, logs_every_node
from inspector.trace.blocks import Block
from inspector.trace.event_kinds import DELEGATE_CALL, KERNEL_PREFIX, OPERATOR_CALL
from schema.objects.identity_cache import identity_cache
from schema.program import ProgramFile, instruction_kind, instructions, operator_name
from schema.program import model as m

EVENT_OF_KIND = {
    "KernelCall": OPERATOR_CALL,
    "DelegateCall": DELEGATE_CALL,
    "MoveCall": "MOVE_CALL",
    "JumpFalseCall": "JF_CALL",
    "FreeCall": "FREE_CALL",
}
KIND_OF_EVENT = {event: kind for kind, event in EVENT_OF_KIND.items()}
FRAMEWORK = ("Method::init", "Program::load_method", "Method::execute", "Method::step")


@dataclass(frozen=True, slots=True)
class MethodMatch:
    """How well a block fits a method.

    Attributes:
        method: name of the method
        matched: instructions that have an event of their kind
        mismatch: the first contradiction, empty if none
    """

    method: str
    matched: int
    mismatch: str


@identity_cache
def match_methods(program: ProgramFile, block: Block) -> tuple[MethodMatch, ...]:
    """Return how well the block fits each method that has instructions, best first."""
    found = [
        match_method(plan, block)
        for plan in program.plans
        if any(c.instructions for c in plan.chains)
    ]
    return tuple(sorted(found, key=lambda match: (bool(match.mismatch), -match.matched)))


def block_method(program: ProgramFile | None, block: Block) -> str | None:
    """Return the method a block ran, None if no method fits, or several fit equally well.

    Of methods that fit, it is the one that the report of the run names.
    """
    if program is None or not is_execution(block):
        return None
    matches = [match for match in match_methods(program, block) if not match.mismatch]
    if not matches:
        return None
    if block.ran in (match.method for match in matches):
        return block.ran
    best = [match.method for match in matches if match.matched == matches[0].matched]
    if len(best) > 1:  # the same instructions: events inside their delegates may decide
        best = [
            method
            for method in best
            if not kernels_against(program, program.plan(method), block)[1]
        ]
    if len(best) > 1:
        whole = [name for name in best if logs_every_node(program, program.plan(name), block)]
        best = whole if len(whole) == 1 else best
    return best[0] if len(best) == 1 else None


def is_execution(block: Block) -> bool:
    """Return whether the block has events of instructions."""
    return bool((block.layout.chain >= 0).any())


def match_method(plan: m.ExecutionPlan, block: Block) -> MethodMatch:
    """Compare every event of an instruction with the instruction it names."""
    steps = instructions(plan)
    starts = _chain_starts(plan)
    seen: set[int] = set()
    fits: set[tuple[object, str]] = set()  # a program has few operators
    chains: list[int] = block.layout.chain.tolist()
    numbers: list[int] = block.layout.instruction.tolist()
    for event, (chain, number) in enumerate(zip(chains, numbers, strict=True)):
        if chain < 0 or block.delegate_id(event) is not None:
            continue
        if chain >= len(plan.chains) or not 0 <= number < len(plan.chains[chain].instructions):
            return MethodMatch(plan.name, len(seen), _outside(plan, chain, number, len(steps)))
        step = starts[chain] + number
        args, name = steps[step][2].instr_args, block.event_name(event)
        kind = instruction_kind(steps[step][2])
        called = (args.op_index if isinstance(args, m.KernelCall) else kind, name)
        if called not in fits:
            against = _contradiction(plan, steps[step][2], name)
            if against:
                return MethodMatch(plan.name, len(seen), f"instruction {number}: {against}")
            fits.add(called)
        seen.add(step)
    missing = _never_run(plan, seen, len(steps))
    return MethodMatch(plan.name, len(seen), missing)


def _chain_starts(plan: m.ExecutionPlan) -> list[int]:
    starts, total = [0], 0
    for chain in plan.chains:
        total += len(chain.instructions)
        starts.append(total)
    return starts


def _outside(plan: m.ExecutionPlan, chain: int, number: int, count: int) -> str:
    return (
        f"the trace has an event of chain {chain} instruction {number},"
        f" method {plan.name} has {len(plan.chains)} chain(s) and {count} instructions"
    )


def _contradiction(plan: m.ExecutionPlan, instruction: m.Instruction, event: str) -> str:
    kind = instruction_kind(instruction)
    if event in KIND_OF_EVENT:
        if KIND_OF_EVENT[event] == kind:
            return ""
        return f"the trace has {event}, the program a {kind}"
    args = instruction.instr_args
    if not isinstance(args, m.KernelCall):
        return f"the trace has {event}, the program a {kind}" if event else ""
    operator = operator_name(plan, args)
    if same_operator(event, operator):
        return ""
    return f"the trace has {event}, the program calls {operator}"


def same_operator(event: str, operator: str) -> bool:
    """Return whether a kernel event is of an operator of the program.

    Generated kernels drop the namespace; others log a custom name, which
    may differ from the operator's and is then not a contradiction.
    """
    if not event.startswith(KERNEL_PREFIX):
        return True
    return event.removeprefix(KERNEL_PREFIX) == operator.split("::")[-1]


def _never_run(plan: m.ExecutionPlan, seen: set[int], count: int) -> str:
    jumps = any(
        isinstance(instruction.instr_args, m.JumpFalseCall)
        for _, _, instruction in instructions(plan)
    )
    if jumps or not seen or len(seen) == count:
        return ""
    first = next(step for step in range(count) if step not in seen)
    return (
        f"method {plan.name} has {count} instructions, the trace has none for instruction {first}"
    )
