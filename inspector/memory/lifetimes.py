"""Lifetimes of the values of a plan: from the first write of their bytes to the last use.

A view that shares memory with its base is not an instruction of the program, so its bytes are
tracked: a value that no instruction writes is created where its bytes were last written.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from inspector.join.operands import PART_WRITERS, STATE_WRITERS, Operands, plan_operands, spread
from schema.dtypes.scalar_type import known_nbytes
from schema.objects.identity_cache import identity_cache
from schema.program import instructions, operator_name
from schema.program import model as m

_BEFORE = -1  # inputs and state are there before the first instruction
_SIZED_VIEW = "executorch_prim::et_view"
# Cadence's slices and concatenations whose result is planned where its elements are already.
_MOVES_NOTHING = "_nop"


@dataclass(frozen=True, slots=True)
class Overwrite:
    """Bytes that are lost although an instruction still needs them.

    Attributes:
        lost: the overwritten value
        writer: value written over it
        step: instruction that writes, -1 for the caller
        needed: next instruction that reads the lost value; the number of instructions for the
            caller
    """

    lost: int
    writer: int
    step: int
    needed: int


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """First and last instruction that needs each value, both inclusive.

    Shapes: first int64[values], last int64[values]; -1 for values no instruction needs
    Units:  instruction index over all chains in order

    Attributes:
        state: values that keep their content from one execution to the next
        views: instruction that writes the bytes of each value that is not a result, -1
            for bytes that exist before
        overwrites: values lost to another value that the plan places on the same bytes
    """

    first: NDArray[np.int64]
    last: NDArray[np.int64]
    state: frozenset[int]
    views: Mapping[int, int]
    overwrites: tuple[Overwrite, ...]


@dataclass(frozen=True, slots=True)
class _ByteRange:
    """A range of bytes and its last writer."""

    low: int
    high: int
    step: int
    value: int


@dataclass(slots=True)
class _Contents:
    """The last writer of each byte of one planned buffer; entries are disjoint and ordered."""

    entries: list[_ByteRange] = field(default_factory=list[_ByteRange])

    def over(self, low: int, high: int) -> slice:
        """Return which entries have bytes in a range."""
        start = bisect.bisect_right(self.entries, low, key=lambda entry: entry.low)
        if start and self.entries[start - 1].high > low:
            start -= 1
        end = bisect.bisect_left(self.entries, high, lo=start, key=lambda entry: entry.low)
        return slice(start, end)

    def put(self, new: _ByteRange) -> list[_ByteRange]:
        """Write a range and return the entries it overwrites, partly or entirely."""
        place = self.over(new.low, new.high)
        lost = self.entries[place]
        kept = [new]
        if lost and lost[0].low < new.low:
            kept.insert(0, _ByteRange(lost[0].low, new.low, lost[0].step, lost[0].value))
        if lost and lost[-1].high > new.high:
            kept.append(_ByteRange(new.high, lost[-1].high, lost[-1].step, lost[-1].value))
        self.entries[place] = kept
        return lost


Place = tuple[int, int, int]  # planned buffer, first byte, end


def planned_place(value: m.EValue) -> Place | None:
    """Return the byte range that a plan assigns to a value, None if it is unplanned or empty."""
    tensor = value.val
    if not isinstance(tensor, m.Tensor) or tensor.allocation_info is None:
        return None
    nbytes = known_nbytes(tensor.scalar_type, tensor.sizes)
    if not nbytes:
        return None
    place = tensor.allocation_info
    return place.memory_id, place.offset, place.offset + nbytes


class _LifetimeWalk:
    """Follows the bytes of all planned buffers through the instructions of a method."""

    def __init__(self, plan: m.ExecutionPlan, operands: tuple[Operands, ...]) -> None:
        self.plan = plan
        self.operands = operands
        self.inputs = set(spread(plan, plan.inputs))
        self.outputs = set(spread(plan, plan.outputs))
        self.places = [planned_place(value) for value in plan.values]
        self.kept = {i for i, v in enumerate(plan.values) if self.places[i] and _has_content(v)}
        self.contents: dict[int, _Contents] = {}
        self.written: set[int] = set()
        self.created_at: dict[int, int] = {}  # of values that are read but never written directly
        self.unwritten: dict[int, int] = {}  # read without being written in this execution
        self.lost: dict[tuple[int, int], Overwrite] = {}
        self.needs: list[list[tuple[int, bool]]] = [[] for _ in plan.values]

    def run(self) -> None:
        """Walk through all instructions once."""
        self._note_needs()
        for value in (*self.kept, *self.inputs):
            self._write(value, _BEFORE, fresh=value in self.inputs)
            self.written.add(value)
        steps = zip(instructions(self.plan), self.operands, strict=True)
        for step, ((_, _, instruction), touched) in enumerate(steps):
            for value in touched.reads:
                self._read(value, step)
            fresh = self._is_fresh(instruction.instr_args)
            for value in touched.writes:
                self._write(value, step, fresh=fresh)
                self.written.add(value)
        for value in self.outputs:
            self._read(value, len(self.operands))

    def _note_needs(self) -> None:
        for step, touched in enumerate(self.operands):
            for value in touched.reads:
                self.needs[value].append((step, True))
            for value in touched.writes:
                self.needs[value].append((step, False))
        for value in self.outputs:
            self.needs[value].append((len(self.operands), True))

    def _is_fresh(self, args: m.InstructionArgs) -> bool:
        """Return whether an instruction writes a new value instead of mutating an argument."""
        if isinstance(args, m.KernelCall):
            if not 0 <= args.op_index < len(self.plan.operators):
                return False
            called = self.plan.operators[args.op_index]
            return "out" in called.overload and not called.name.endswith(_MOVES_NOTHING)
        return isinstance(args, (m.DelegateCall, m.MoveCall))

    def _read(self, value: int, step: int) -> None:
        place = self.places[value]
        if place is None or value in self.written or value in self.created_at:
            return
        contents = self.contents.get(place[0])
        found = contents.entries[contents.over(*place[1:])] if contents is not None else []
        if found:
            self.created_at[value] = min(entry.step for entry in found)
        else:
            self.unwritten.setdefault(value, step)

    def _write(self, value: int, step: int, *, fresh: bool) -> None:
        place = self.places[value]
        if place is None:
            return
        new = _ByteRange(place[1], place[2], step, value)
        for old in self.contents.setdefault(place[0], _Contents()).put(new):
            if fresh and old.value not in self.kept and old.value != value:
                self._lose(old.value, value, step)

    def _lose(self, lost: int, writer: int, step: int) -> None:
        if (lost, writer) in self.lost:
            return
        needs = self.needs[lost]
        at = bisect.bisect_right(needs, step, key=lambda need: need[0])
        if at < len(needs) and needs[at][1]:
            self.lost[lost, writer] = Overwrite(lost, writer, step, needs[at][0])
        elif at and needs[at - 1] == (step, True) and self._in_part(lost, writer):
            self.lost[lost, writer] = Overwrite(lost, writer, step, step)

    def _in_part(self, one: int, other: int) -> bool:
        """Return whether neither of two places holds the other."""
        a, b = self.places[one], self.places[other]
        if a is None or b is None:
            return False
        return not (a[1] <= b[1] and b[2] <= a[2]) and not (b[1] <= a[1] and a[2] <= b[2])

    def state(self) -> frozenset[int]:
        """Return the values that persist between executions.

        A value that is read before it is written is state if it shares its bytes with no other.
        """
        copied = {
            value
            for (_, _, one), touched in zip(instructions(self.plan), self.operands, strict=True)
            if isinstance(one.instr_args, m.KernelCall)
            and operator_name(self.plan, one.instr_args) in STATE_WRITERS
            for value in touched.writes
            if self.places[value]
        }
        own = {value for value in self.unwritten if value in self.written or self._is_alone(value)}
        return frozenset((self.kept | copied | own) - self.inputs)

    def _is_alone(self, value: int) -> bool:
        place = self.places[value]
        contents = self.contents.get(place[0]) if place else None
        if place is None or contents is None:
            return True
        return not contents.entries[contents.over(*place[1:])]


def _has_content(value: m.EValue) -> bool:
    return isinstance(value.val, m.Tensor) and value.val.data_buffer_idx > 0


@identity_cache
def lifetimes(plan: m.ExecutionPlan) -> Lifetimes:
    """Return when each value is needed, views, loops and state between executions included."""
    operands = plan_operands(plan)
    count, steps = len(plan.values), len(operands)
    first = np.full(count, -1, dtype=np.int64)
    last = np.full(count, -1, dtype=np.int64)
    for step, touched in enumerate(operands):
        for value in (*touched.reads, *touched.writes):
            if first[value] < 0:
                first[value] = step
            last[value] = step
    walk = _LifetimeWalk(plan, operands)
    walk.run()
    for value in walk.inputs:
        first[value] = 0
        last[value] = max(int(last[value]), 0)
    for value in walk.outputs:
        first[value] = max(int(first[value]), 0)
        last[value] = max(steps - 1, 0)  # a method without instructions is one moment
    for value, built in walk.created_at.items():
        first[value] = max(built, 0)
    _extend_over_sized_views(plan, last)
    state = walk.state()
    for value in state:
        first[value], last[value] = 0, max(steps - 1, 0)
    _extend_over_loops(plan, operands, first, last)
    first.setflags(write=False)
    last.setflags(write=False)
    return Lifetimes(first, last, state, walk.created_at, tuple(walk.lost.values()))


def _extend_over_sized_views(plan: m.ExecutionPlan, last: NDArray[np.int64]) -> None:
    """Extend the base of a resized view to the lifetime of the view."""
    for _, _, instruction in reversed(instructions(plan)):
        args = instruction.instr_args
        if not isinstance(args, m.KernelCall) or len(args.args) < 2:
            continue
        if operator_name(plan, args).partition(".")[0] == _SIZED_VIEW:
            base, shown = args.args[0], args.args[-1]
            if 0 <= base < len(last) and 0 <= shown < len(last):
                last[base] = max(int(last[base]), int(last[shown]))


def _extend_over_loops(
    plan: m.ExecutionPlan,
    operands: tuple[Operands, ...],
    first: NDArray[np.int64],
    last: NDArray[np.int64],
) -> None:
    # A value created before a loop and needed inside it is needed until the loop's last iteration;
    # a value
    # that an iteration reads before it writes is carried between iterations, and so is one that
    # each iteration
    # writes a part of.
    parts = _written_in_parts(plan)
    for start, end in _loops(plan):
        fresh: set[int] = set()
        for step in range(start, end + 1):
            carried = {v for v in operands[step].reads if first[v] < start or v not in fresh}
            for value in carried | parts.get(step, set()):
                first[value] = min(int(first[value]), start)
                last[value] = max(int(last[value]), end)
            fresh.update(operands[step].writes)


def _written_in_parts(plan: m.ExecutionPlan) -> dict[int, set[int]]:
    return {
        step: set(spread(plan, args.args[:1]))
        for step, (_, _, instruction) in enumerate(instructions(plan))
        if isinstance(args := instruction.instr_args, m.KernelCall)
        and operator_name(plan, args) in PART_WRITERS
    }


def _loops(plan: m.ExecutionPlan) -> list[tuple[int, int]]:
    """Return (first, last) instruction of every backward jump, inner loops first."""
    found: list[tuple[int, int]] = []
    base = 0
    for chain in plan.chains:
        for index, instruction in enumerate(chain.instructions):
            args = instruction.instr_args
            if isinstance(args, m.JumpFalseCall) and 0 <= args.destination_instruction <= index:
                found.append((base + args.destination_instruction, base + index))
        base += len(chain.instructions)
    return sorted(found, key=lambda loop: loop[1] - loop[0])
