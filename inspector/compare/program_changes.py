"""Differences of two programs: signature, operators, instructions, planned values, delegates."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping

from inspector.compare.change import Change
from inspector.compare.sequences import Alignment, align
from inspector.files.session import Session
from inspector.graph.delegation import DelegateFacts, MethodDelegation, analyse_delegation
from inspector.graph.plan_graph import literal
from inspector.join.operands import plan_operands
from inspector.memory.plan import analyse_memory, instruction_label
from schema.dtypes.scalar_type import scalar_type
from schema.errors import FormatError
from schema.objects.identity_cache import identity_cache
from schema.program import ProgramFile, instructions
from schema.program import model as m


def program_changes(old: Session, new: Session, method: str) -> list[Change]:
    """Return the differences of one method that both programs have."""
    if old.program is None or new.program is None:
        return []
    before, after = old.program.plan(method), new.program.plan(method)
    return [
        *_signature(method, before, after),
        *_operators(method, before, after),
        *_instructions(method, before, after),
        *_values(old.program, new.program, method),
        *_delegates(old, new, method),
    ]


@identity_cache
def labels(plan: m.ExecutionPlan) -> tuple[str, ...]:
    """Return the callee of each instruction; a delegate by its backend, regardless of its index."""
    found: list[str] = []
    for _, _, instruction in instructions(plan):
        args = instruction.instr_args
        if isinstance(args, m.DelegateCall) and 0 <= args.delegate_index < len(plan.delegates):
            found.append(plan.delegates[args.delegate_index].id)
        else:
            found.append(instruction_label(plan, args))
    return tuple(found)


def instruction_alignment(old: Session, new: Session, method: str) -> Alignment:
    """Return which instructions of a method call the same in both; empty without programs."""
    if old.program is None or new.program is None:
        return align((), ())
    return _alignment(old.program.plan(method), new.program.plan(method))


@identity_cache
def _alignment(old: m.ExecutionPlan, new: m.ExecutionPlan) -> Alignment:
    return align(labels(old), labels(new))


def _signature(method: str, old: m.ExecutionPlan, new: m.ExecutionPlan) -> list[Change]:
    found: list[Change] = []
    for word in ("input", "output"):
        before, after = ([_type(p, i) for i in getattr(p, f"{word}s")] for p in (old, new))
        for number in range(max(len(before), len(after))):
            here = before[number] if number < len(before) else None
            there = after[number] if number < len(after) else None
            if here != there:
                found.append(Change("program", f"{method} {word} {number}", here, there))
    return found


def _type(plan: m.ExecutionPlan, index: int) -> str:
    value = plan.values[index].val if 0 <= index < len(plan.values) else None
    if isinstance(value, m.Tensor):
        dynamic = ("", " bounded", " unbounded")[min(value.shape_dynamism, 2)]
        return f"{scalar_type(value.scalar_type).name} {list(value.sizes)}{dynamic}"
    constant = literal(plan, index)
    kind = type(value).__name__.lower() if value is not None else "none"
    return kind if constant is None else f"{kind} {constant}"


def _operators(method: str, old: m.ExecutionPlan, new: m.ExecutionPlan) -> list[Change]:
    return _counted("operators", method, Counter(labels(old)), Counter(labels(new)))


def _counted(
    area: str, method: str, before: Mapping[str, int], after: Mapping[str, int]
) -> list[Change]:
    return [
        Change(area, f"{method} {name}", before.get(name, 0), after.get(name, 0))
        for name in sorted(before.keys() | after.keys())
        if before.get(name, 0) != after.get(name, 0)
    ]


def _instructions(method: str, old: m.ExecutionPlan, new: m.ExecutionPlan) -> list[Change]:
    """Return instructions on one side only, and those with different arguments."""
    alignment = _alignment(old, new)
    before, after = labels(old), labels(new)
    gone = [
        Change(
            "instructions", f"{method} instruction {step} {before[step]}", _called(old, step), None
        )
        for step in alignment.removed
    ]
    come = [
        Change(
            "instructions", f"{method} instruction {step} {after[step]}", None, _called(new, step)
        )
        for step in alignment.added
    ]
    other: list[Change] = []
    for here, there in alignment.pairs:
        one, two = _called(old, here), _called(new, there)
        if one != two:
            place = f"instruction {here}" if here == there else f"instruction {here} and {there}"
            other.append(Change("instructions", f"{method} {place} {before[here]}", one, two))
    return gone + come + other


def _called(plan: m.ExecutionPlan, step: int) -> str:
    """Return the types and literals an instruction reads and writes, without value indices."""
    args = instructions(plan)[step][2].instr_args
    if isinstance(args, m.KernelCall):
        return _types(plan, args.args)
    if isinstance(args, m.DelegateCall):
        return _types(plan, args.args)
    if isinstance(args, m.JumpFalseCall):
        return f"by {args.destination_instruction - step:+d}"
    touched = plan_operands(plan)[step]
    return f"{_types(plan, touched.reads)} -> {_types(plan, touched.writes)}"


def _types(plan: m.ExecutionPlan, values: Iterable[int]) -> str:
    return ", ".join(_argument(plan, index) for index in values)


def _argument(plan: m.ExecutionPlan, index: int) -> str:
    value = plan.values[index].val if 0 <= index < len(plan.values) else None
    if isinstance(value, (m.TensorList, m.OptionalTensorList)):
        return f"[{_types(plan, value.items)}]"
    return _type(plan, index)


def _values(old: ProgramFile, new: ProgramFile, method: str) -> list[Change]:
    """Count planned values by role, type and shape; their indices and offsets are not compared."""
    before, after = (
        Counter(
            f"{value.role} {value.scalar_type} {list(value.sizes)}"
            for arena in analyse_memory(program, method).arenas
            for value in arena.values
        )
        for program in (old, new)
    )
    return _counted("values", method, before, after)


def _delegates(old: Session, new: Session, method: str) -> list[Change]:
    before, after = _facts(old, method), _facts(new, method)
    alignment = align([_kind(one) for one in before], [_kind(one) for one in after])
    gone = [before[index] for index in alignment.removed]
    come = [after[index] for index in alignment.added]
    pairs = [(before[a], after[b]) for a, b in alignment.pairs]
    # What is left is the same delegate with other nodes, where the backend is the same in order.
    again = align([one.backend_id for one in gone], [one.backend_id for one in come])
    pairs += [(gone[a], come[b]) for a, b in again.pairs]
    found = [
        Change("delegates", _delegate(method, gone[i]), _words(gone[i]), None)
        for i in again.removed
    ]
    found += [
        Change("delegates", _delegate(method, come[i]), None, _words(come[i])) for i in again.added
    ]
    for one, two in pairs:
        found += _delegate_pair(old, new, method, one, two)
    return found


def _facts(session: Session, method: str) -> tuple[DelegateFacts, ...]:
    entries: dict[str, MethodDelegation] = {e.method: e for e in analyse_delegation(session)}
    return entries[method].delegates if method in entries else ()


def _inside(one: DelegateFacts) -> tuple[str, ...]:
    graph = one.payload.graph if one.payload is not None else None
    return tuple(node.target for node in graph.calls()) if graph is not None else one.operators


def _kind(one: DelegateFacts) -> tuple[str, tuple[str, ...]]:
    return one.backend_id, _inside(one)


def _delegate(method: str, one: DelegateFacts) -> str:
    return f"{method} delegate {one.index} {one.backend_id}"


def _words(one: DelegateFacts) -> str:
    return f"{len(_inside(one))} nodes, {one.nbytes:,} B"


def _delegate_pair(
    old: Session, new: Session, method: str, one: DelegateFacts, two: DelegateFacts
) -> list[Change]:
    name = _delegate(method, one)
    if one.index != two.index:
        name += f" (now {two.index})"
    found = _counted("delegates", name, Counter(_inside(one)), Counter(_inside(two)))
    if not found and _inside(one) != _inside(two):
        found.append(Change("delegates", f"{name} order of nodes", "one", "another"))
    for key in sorted(one.compile_specs.keys() | two.compile_specs.keys()):
        here, there = one.compile_specs.get(key), two.compile_specs.get(key)
        if here != there:
            found.append(Change("delegates", f"{name} compile spec {key}", here, there))
    if one.nbytes != two.nbytes:
        found.append(Change("delegates", f"{name} payload", one.nbytes, two.nbytes, "bytes"))
    elif not found:
        here, there = _digest(old, method, one.index), _digest(new, method, two.index)
        if here != there:
            note = "as many bytes with other content"
            found.append(Change("delegates", f"{name} payload", here, there, note=note))
    return found


def _digest(session: Session, method: str, index: int) -> str | None:
    program = session.program
    if program is None:
        return None
    try:
        data = program.delegate_data(program.plan(method).delegates[index])
    except FormatError:
        return None
    return f"sha256 {hashlib.sha256(data).hexdigest()[:16]}"
