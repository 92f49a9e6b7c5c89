"""Logged tensors of the instructions of a run, by output and pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from inspector.join.operands import delegate_output_counts, plan_operands
from inspector.trace.blocks import Block
from schema.dtypes.scalar_type import numel
from schema.etdump import DebugTensor, DebugValue
from schema.objects.identity_cache import identity_cache
from schema.program import ProgramFile, backend_id, instructions, operator_name
from schema.program import model as m

MOVE = "move"
VIEW, COPY_INDEX = "executorch_prim::et_view.default", "executorch_prim::et_copy_index.tensor"
KERNEL, DELEGATE = "kernel", "delegate"
_STATIC = 0


@dataclass(frozen=True, slots=True)
class InstructionOutput:
    """A tensor output of an instruction.

    Attributes:
        instruction: index over all chains of the method
        slot: place among the tensor outputs of the instruction
        value: index in the value table
        kind: kernel, delegate or move
        operator: operator with its overload, backend id, or ``move``
        code: scalar type code
        sizes: shape, an upper bound unless static
        static: whether the shape is fixed
    """

    instruction: int
    slot: int
    value: int
    kind: str
    operator: str
    code: int
    sizes: tuple[int, ...]
    static: bool


Bytes = DebugTensor | tuple[DebugTensor, ...]
"""A logged tensor, or the tensors that a loop has stacked into one."""


@dataclass(frozen=True, slots=True)
class LoggedRun:
    """The tensors of one run.

    Attributes:
        executed: instructions that ran; None if the trace does not show it
        outputs: instruction -> its passes, each slot -> tensor; of moves, views and the stacks of
            loops, which are not logged, the tensor of their source
        arguments: instruction of a delegate -> its passes, each value -> tensor that went in
        mismatched: instructions whose logged values do not fit their outputs
        inner: whether values besides the outputs of the method were logged
    """

    executed: frozenset[int] | None
    outputs: Mapping[int, tuple[Mapping[int, Bytes], ...]]
    arguments: Mapping[int, tuple[Mapping[int, DebugTensor], ...]] = field(
        default_factory=dict[int, tuple[Mapping[int, DebugTensor], ...]]
    )
    mismatched: frozenset[int] = frozenset()
    inner: bool = True


@identity_cache
def instruction_outputs(program: ProgramFile, method: str) -> tuple[InstructionOutput, ...]:
    """Return the tensor outputs of a method's instructions, in order.

    Raises: KeyError for an unknown method
    """
    plan = program.plan(method)
    operands = plan_operands(plan, delegate_output_counts(program, plan))
    found: list[InstructionOutput] = []
    rows = zip(instructions(plan), operands, strict=True)
    for step, ((_, _, instruction), touched) in enumerate(rows):
        args = instruction.instr_args
        if isinstance(args, (m.KernelCall, m.DelegateCall, m.MoveCall)):
            kind, operator = _named(plan, args)
            tensors = [index for index in touched.writes if tensor_of(plan, index) is not None]
            found += [
                _output(plan, step, slot, index, kind, operator)
                for slot, index in enumerate(tensors)
            ]
    return tuple(found)


def tensor_of(plan: m.ExecutionPlan, index: int) -> m.Tensor | None:
    """Return a value that is a tensor, None for other kinds and indices out of range."""
    value = plan.values[index].val if 0 <= index < len(plan.values) else None
    return value if isinstance(value, m.Tensor) else None


def _named(
    plan: m.ExecutionPlan, args: m.KernelCall | m.DelegateCall | m.MoveCall
) -> tuple[str, str]:
    if isinstance(args, m.KernelCall):
        return KERNEL, operator_name(plan, args)
    if isinstance(args, m.DelegateCall):
        return DELEGATE, backend_id(plan, args)
    return MOVE, MOVE


def _output(
    plan: m.ExecutionPlan, step: int, slot: int, index: int, kind: str, operator: str
) -> InstructionOutput:
    tensor = tensor_of(plan, index)
    assert tensor is not None
    static = int(tensor.shape_dynamism) == _STATIC
    return InstructionOutput(
        step, slot, index, kind, operator, tensor.scalar_type, tensor.sizes, static
    )


def logged_run(program: ProgramFile, method: str, block: Block, run: int) -> LoggedRun:
    """Return the tensors that one run of a block logged, by instruction, pass and slot."""
    plan = program.plan(method)
    steps = instructions(plan)
    by_step: dict[int, list[InstructionOutput]] = {}
    for output in instruction_outputs(program, method):
        by_step.setdefault(output.instruction, []).append(output)
    found: dict[int, tuple[Mapping[int, Bytes], ...]] = {}
    arguments: dict[int, tuple[Mapping[int, DebugTensor], ...]] = {}
    mismatched: set[int] = set()
    by_instruction = _by_instruction(block, run)
    for step, tensors in by_instruction.items():
        outputs = by_step.get(step, [])
        args = steps[step][2].instr_args if 0 <= step < len(steps) else None
        if not outputs or not tensors:
            continue
        requested = _logged(plan, args, outputs)
        passes = _passes(plan, requested, tensors)
        if passes is None:
            mismatched.add(step)
            continue
        slots = {output.value: output.slot for output in outputs}
        found[step] = tuple(
            {slots[value]: tensor for value, tensor in each.items() if value in slots}
            for each in passes
        )
        if isinstance(args, m.DelegateCall):
            arguments[step] = tuple(
                {value: tensor for value, tensor in each.items() if value not in slots}
                for each in passes
            )
    executed = _executed(plan, block, run)
    _add_results(plan, by_step, block.outputs(run), found, mismatched)
    _derive(plan, by_step, executed, found)
    inner = any(by_instruction.values())
    return LoggedRun(executed, found, arguments, frozenset(mismatched), inner)


def _add_results(
    plan: m.ExecutionPlan,
    outputs: Mapping[int, Sequence[InstructionOutput]],
    logged: Sequence[DebugValue | None],
    found: dict[int, tuple[Mapping[int, Bytes], ...]],
    mismatched: Collection[int],
) -> None:
    """Add the outputs of the method, if their instructions have no logged values.

    In a program with jumps the last pass would have to be
    distinguished from those before: it is left out.
    """
    if any(isinstance(each[2].instr_args, m.JumpFalseCall) for each in instructions(plan)):
        return
    tensors = [tensor for value in logged if value is not None for tensor in value.all_tensors()]
    requested = [index for index in plan.outputs if tensor_of(plan, index) is not None]
    passes = _passes(plan, requested, tensors) or []
    if len(passes) != 1:
        return
    makers = {output.value: output for step in sorted(outputs) for output in outputs[step]}
    added: dict[int, dict[int, Bytes]] = {}
    for index, tensor in passes[0].items():
        maker = makers.get(index)
        if (
            maker is not None
            and maker.instruction not in found
            and maker.instruction not in mismatched
        ):
            added.setdefault(maker.instruction, {})[maker.slot] = tensor
    found.update((step, (slots,)) for step, slots in added.items())


def _derive(
    plan: m.ExecutionPlan,
    outputs: Mapping[int, Sequence[InstructionOutput]],
    executed: frozenset[int] | None,
    found: dict[int, tuple[Mapping[int, Bytes], ...]],
) -> None:
    """Add the values behind moves, views and stacks: the tensors of the instructions they read."""
    definer: dict[int, tuple[int, int]] = {}
    writers = Counter(
        output.value
        for step, each in outputs.items()
        for output in each
        if executed is None or step in executed
    )
    for step, (_, _, instruction) in enumerate(instructions(plan)):
        if executed is not None and step not in executed:
            continue
        args = instruction.instr_args
        if step not in found and len(outputs.get(step, ())) == 1:
            derived = _derived(plan, args, definer, found)
            if writers[_stacked(plan, args)] > 1:
                derived = []  # branches took turns in an unknown order
            if derived:
                found[step] = tuple({0: each} for each in derived)
        for output in outputs.get(step, ()):
            definer[output.value] = (step, output.slot)


def _stacked(plan: m.ExecutionPlan, args: object) -> int:
    """Return the value of which an instruction puts each pass into a stack, -1 for none."""
    if isinstance(args, m.KernelCall) and len(args.args) > 1:
        return args.args[1] if operator_name(plan, args) == COPY_INDEX else -1
    return -1


def _derived(
    plan: m.ExecutionPlan,
    args: object,
    definer: Mapping[int, tuple[int, int]],
    found: Mapping[int, tuple[Mapping[int, Bytes], ...]],
) -> list[Bytes]:
    source = -1
    if isinstance(args, m.MoveCall):
        source = args.move_from
    elif isinstance(args, m.KernelCall) and args.args:
        name = operator_name(plan, args)
        source = args.args[1] if name == COPY_INDEX else args.args[0] if name == VIEW else -1
    step, slot = definer.get(source, (-1, -1))
    passes = [each[slot] for each in found.get(step, ()) if slot in each]
    if isinstance(args, m.MoveCall) or not passes:
        return passes
    assert isinstance(args, m.KernelCall)
    if operator_name(plan, args) == COPY_INDEX:
        rows = tuple(each for each in passes if isinstance(each, DebugTensor))
        return [rows] if len(rows) == len(passes) else []
    viewed = [_viewed(plan, args.args[-1], each) for each in passes]
    return [each for each in viewed if each is not None]


def _viewed(plan: m.ExecutionPlan, value: int, source: Bytes) -> DebugTensor | None:
    """Return a dense tensor in the shape of a view, None where its shape is not known."""
    tensor = tensor_of(plan, value)
    if tensor is None or not isinstance(source, DebugTensor):
        return None
    dense = strides_of(source.sizes) == tuple(source.strides)
    if not dense or numel(source.sizes) != numel(tensor.sizes):
        return None
    return replace(source, sizes=tensor.sizes, strides=strides_of(tensor.sizes))


def strides_of(sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a dense tensor in elements, the last dimension densest."""
    strides: list[int] = []
    step = 1
    for size in reversed(sizes):
        strides.insert(0, step)
        step *= max(size, 1)
    return tuple(strides)


def is_dense(tensor: DebugTensor) -> bool:
    """Return whether elements lie in the order of their dimensions; of one, no stride matters."""
    dense = strides_of(tensor.sizes)
    longer = [place for place, size in enumerate(tensor.sizes) if size != 1]
    alike = len(tensor.strides) == len(dense)
    return alike and all(tensor.strides[place] == dense[place] for place in longer)


def _by_instruction(block: Block, run: int) -> dict[int, list[DebugTensor]]:
    """Return the tensors logged for each instruction itself, excluding those inside a delegate."""
    found: dict[int, list[DebugTensor]] = {}
    seen: set[int] = set()
    for event in range(len(block)):
        group, number = int(block.layout.group[event]), block.instruction(event)
        if group in seen or number is None or block.layout.chain[event] < 0:
            continue
        if block.delegate_id(event) is not None:
            continue
        seen.add(group)
        values = [value for value in block.debug_values(event, run) if value is not None]
        tensors = [tensor for value in values for tensor in value.all_tensors()]
        found.setdefault(number, []).extend(tensors)
    return found


def _logged(plan: m.ExecutionPlan, args: object, outputs: Sequence[InstructionOutput]) -> list[int]:
    """Return the values an instruction logs, in order."""
    if isinstance(args, m.DelegateCall):
        return [index for index in args.args if tensor_of(plan, index) is not None]
    return [output.value for output in outputs]


def values_logged(
    program: ProgramFile, method: str, step: int, tensors: Sequence[DebugTensor]
) -> list[int] | None:
    """Return which value each logged tensor of an instruction is; None where that is unknown."""
    plan = program.plan(method)
    steps = instructions(plan)
    if not 0 <= step < len(steps):
        return None
    outputs = [one for one in instruction_outputs(program, method) if one.instruction == step]
    passes = _passes(plan, _logged(plan, steps[step][2].instr_args, outputs), tensors)
    return None if passes is None else [value for each in passes for value in each]


def _passes(
    plan: m.ExecutionPlan, requested: Sequence[int], tensors: Sequence[DebugTensor]
) -> list[dict[int, DebugTensor]] | None:
    """Tell which logged tensor is which value; None where that is unknown.

    Runtimes leave out values of dtypes they do not log, so that fewer may be there.
    """
    codes = {tensor.scalar_type for tensor in tensors}
    for chosen in (requested, [value for value in requested if _code(plan, value) in codes]):
        width = len(chosen)
        if not width or len(tensors) % width:
            continue
        rounds = [tensors[start : start + width] for start in range(0, len(tensors), width)]
        if all(_fits(plan, chosen, each) for each in rounds):
            return [dict(zip(chosen, each, strict=True)) for each in rounds]
    return None


def _fits(plan: m.ExecutionPlan, values: Iterable[int], tensors: Iterable[DebugTensor]) -> bool:
    for value, tensor in zip(values, tensors, strict=True):
        known = tensor_of(plan, value)
        assert known is not None
        if known.scalar_type != tensor.scalar_type or len(known.sizes) != len(tensor.sizes):
            return False
        if any(found > most for found, most in zip(tensor.sizes, known.sizes, strict=True)):
            return False
    return True


def _code(plan: m.ExecutionPlan, value: int) -> int:
    tensor = tensor_of(plan, value)
    return tensor.scalar_type if tensor is not None else -1


def _executed(plan: m.ExecutionPlan, block: Block, run: int) -> frozenset[int] | None:
    """Return the instructions with an event; without jumps, all instructions of the program."""
    steps = instructions(plan)
    if not any(isinstance(each[2].instr_args, m.JumpFalseCall) for each in steps):
        return frozenset(range(len(steps)))
    timed = block.layouts[run].first >= 0
    if not timed.any():
        return None
    indices = (block.instruction(event) for event in range(len(block)) if timed[event])
    return frozenset(index for index in indices if index is not None)
