"""The memory plan stored in a program file: which value occupies which addresses, and when.

All sizes are exact, without alignment, and each address counts once, even if several values share
it (views that became aliases): live bytes never exceed planned bytes. Lifetimes are derived from
the instructions, so a ``.pte`` is sufficient.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from inspector.join.operands import plan_operands
from inspector.memory.lifetimes import Overwrite, Place, lifetimes, planned_place
from inspector.memory.shared_bytes import Box, counted_once, live_bytes, storages
from schema.dtypes.scalar_type import known_nbytes, scalar_type
from schema.errors import Issue, Severity
from schema.objects.identity_cache import identity_cache
from schema.program import ProgramFile, instructions, operator_name
from schema.program import model as m

_MOST_NAMED = 8  # limits of values sharing bytes with one, and of issues of one kind
_MOST_COMPARED = 64  # the largest of those on the same bytes
_STATE = "state"
_LARGEST = 1 << 48  # more than any address space; sums of such sizes still fit int64


@dataclass(frozen=True, slots=True)
class PlannedValue:
    """A tensor placed in a planned buffer.

    Attributes:
        value: index in the plan's value table
        name: fully qualified name if the file has one, else ``v<index>``
        nbytes: bytes of its upper-bound shape
        offset: byte offset in the buffer
        first: first instruction that needs its bytes, -1 if none does
        last: last instruction that needs them, inclusive
        scalar_type: name of the dtype
        sizes: upper-bound shape
        made_by: instruction that first writes it, or its bytes if it is a view; None for inputs and
            state
        operator: called by that instruction
        role: input, output, state, activation, or unused if no instruction needs it
        storage: id shared by all values on the same bytes at the same time
        peak_bytes: its bytes counted at the peak: 0 if it is not live then, without bytes already
            counted
            for a larger value
        shares_with: values live at the peak that have bytes in common with it
    """

    value: int
    name: str
    nbytes: int
    offset: int
    first: int
    last: int
    scalar_type: str
    sizes: tuple[int, ...]
    made_by: int | None
    operator: str
    role: str
    storage: int
    peak_bytes: int = 0
    shares_with: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Arena:
    """One planned buffer.

    Shapes: live_bytes int64[instructions], one entry without instructions

    Attributes:
        mem_id: 1-based number used by AllocationDetails
        planned_bytes: size in the file
        peak_bytes: largest number of bytes in use at an instruction, each address once
        peak_instruction: first instruction of that peak, None for an empty plan
        values: all values in the buffer, by offset and then lifetime
        live_bytes: bytes in use at each instruction
    """

    mem_id: int
    planned_bytes: int
    peak_bytes: int
    peak_instruction: int | None
    values: tuple[PlannedValue, ...]
    live_bytes: NDArray[np.int64]

    @property
    def lower_bound_bytes(self) -> int:
        """Return the bytes that any plan of these lifetimes needs, without alignment.

        Values that are live together cannot share memory, so this is the peak.
        """
        return self.peak_bytes

    @property
    def hole_bytes(self) -> int:
        """Return the planned bytes that are free at the peak."""
        return self.planned_bytes - self.peak_bytes

    def at_peak(self) -> tuple[PlannedValue, ...]:
        """Return the values live at the peak, whose ``peak_bytes`` add up to it.

        Largest first; a value that shares bytes with a larger one follows it.
        """
        step = self.peak_instruction
        if step is None:
            return ()
        alive = [value for value in self.values if 0 <= value.first <= step <= value.last]
        largest: dict[int, int] = {}
        for value in alive:
            largest[value.storage] = max(value.nbytes, largest.get(value.storage, 0))
        return tuple(
            sorted(alive, key=lambda v: (-largest[v.storage], v.storage, -v.peak_bytes, v.value))
        )


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """All planned buffers of one method.

    A method without instructions counts as one instruction, index 0.
    """

    method: str
    arenas: tuple[Arena, ...]
    instruction_count: int
    issues: tuple[Issue, ...]

    @property
    def planned_bytes(self) -> int:
        """Return the size of all planned buffers."""
        return sum(arena.planned_bytes for arena in self.arenas)

    @property
    def peak_bytes(self) -> int:
        """Return the peaks of all arenas together, which may be at different instructions."""
        return sum(arena.peak_bytes for arena in self.arenas)

    @property
    def lower_bound_bytes(self) -> int:
        """Return the size that any plan with these buffers needs."""
        return sum(arena.lower_bound_bytes for arena in self.arenas)


@identity_cache
def analyse_memory(program: ProgramFile, method: str) -> MemoryPlan:
    """Return the memory plan of a method.

    Raises: KeyError for an unknown method
    """
    plan = program.plan(method)
    return plan_memory(plan, tuple(other for other in program.plans if other is not plan))


def plan_memory(plan: m.ExecutionPlan, others: Sequence[m.ExecutionPlan] = ()) -> MemoryPlan:
    """Return the memory plan of a method, not cached.

    Args:
        plan: the method
        others: the other methods of the program, for the state they share
    """
    steps = len(instructions(plan))
    values, issues = _planned_values(plan, _state_places(others))
    issues += _impossible_arenas(plan)
    moments = max(steps, 1)  # a method that only returns its inputs still occupies their memory
    arenas = tuple(
        placed_arena(mem_id, planned, values.get(mem_id, []), moments)
        for mem_id, planned in _arena_sizes(plan, values)
    )
    return MemoryPlan(plan.name, arenas, steps, tuple(issues))


def _arena_sizes(
    plan: m.ExecutionPlan, values: Mapping[int, list[PlannedValue]]
) -> list[tuple[int, int]]:
    planned = enumerate(plan.non_const_buffer_sizes)
    sizes = {index: max(size, 0) for index, size in planned if index > 0}
    for mem_id in values:
        sizes.setdefault(mem_id, 0)
    return sorted(sizes.items())


def _impossible_arenas(plan: m.ExecutionPlan) -> list[Issue]:
    return [
        Issue(Severity.ERROR, plan.name, f"arena {index} has {size:,} bytes and is taken as empty")
        for index, size in enumerate(plan.non_const_buffer_sizes)
        if size < 0
    ]


def _state_places(plans: Sequence[m.ExecutionPlan]) -> frozenset[Place | None]:
    """Return the memory ranges where other methods keep state."""
    return frozenset(
        planned_place(plan.values[value]) for plan in plans for value in lifetimes(plan).state
    )


def state_values(program: ProgramFile, method: str) -> tuple[int, ...]:
    """Return the indices of the planned values that a method carries from run to run."""
    arenas = analyse_memory(program, method).arenas
    return tuple(one.value for arena in arenas for one in arena.values if one.role == _STATE)


def _planned_values(
    plan: m.ExecutionPlan, kept: frozenset[Place | None]
) -> tuple[dict[int, list[PlannedValue]], list[Issue]]:
    lives = lifetimes(plan)
    makers, names = _makers(plan, lives.views), plan_value_names(plan)
    whole = (0, max(len(instructions(plan)) - 1, 0))
    found: dict[int, list[PlannedValue]] = {}
    issues: list[Issue] = []
    for index, entry in enumerate(plan.values):
        tensor = entry.val
        if not isinstance(tensor, m.Tensor) or tensor.allocation_info is None:
            continue
        place = tensor.allocation_info
        nbytes = known_nbytes(tensor.scalar_type, tensor.sizes)
        if nbytes is None or nbytes > _LARGEST or place.offset > _LARGEST:
            message = f"value {index} has an impossible size or place and is left out"
            issues.append(Issue(Severity.ERROR, plan.name, message))
            continue
        arena = plan.non_const_buffer_sizes
        if place.memory_id >= len(arena) or place.offset + nbytes > arena[place.memory_id]:
            message = f"value {index} ends outside arena {place.memory_id}"
            issues.append(Issue(Severity.ERROR, plan.name, message))
        maker = makers.get(index)
        role = _role(plan, index, int(lives.first[index]), index in lives.state)
        if role == "unused" and planned_place(entry) in kept:
            role = _STATE  # of another method, which it must outlive
        first, last = int(lives.first[index]), int(lives.last[index])
        value = PlannedValue(
            value=index,
            name=names[index],
            nbytes=nbytes,
            offset=place.offset,
            first=whole[0] if role == _STATE else first,
            last=whole[1] if role == _STATE else last,
            scalar_type=scalar_type(tensor.scalar_type).name,
            sizes=tensor.sizes,
            made_by=maker[0] if maker else None,
            operator=maker[1] if maker else "",
            role=role,
            storage=-1,
        )
        found.setdefault(place.memory_id, []).append(value)
    lost = [_overwritten(plan, one) for one in lives.overwrites[:_MOST_NAMED]]
    if len(lives.overwrites) > len(lost):
        more = f"{len(lives.overwrites) - len(lost):,} more values are overwritten like this"
        lost.append(Issue(Severity.WARNING, plan.name, more))
    return found, [*issues, *lost]


def _overwritten(plan: m.ExecutionPlan, one: Overwrite) -> Issue:
    lost, writer = value_name(plan, one.lost), value_name(plan, one.writer)
    steps = len(instructions(plan))
    how = f"instruction {one.step} writes {writer} over it" if one.step >= 0 else "both are inputs"
    needed = f"instruction {one.needed} still reads it" if one.needed < steps else "it is an output"
    message = f"the plan places {lost} and {writer} on the same bytes at the same time: {how}, and"
    return Issue(Severity.WARNING, plan.name, f"{message} {needed}; results may be wrong")


def value_name(plan: m.ExecutionPlan, index: int) -> str:
    """Return the fully qualified name of a value when the file has it, else ``v<index>``."""
    value = plan.values[index].val if 0 <= index < len(plan.values) else None
    if isinstance(value, m.Tensor) and value.extra_tensor_info is not None:
        return value.extra_tensor_info.fully_qualified_name or f"v{index}"
    return f"v{index}"


@identity_cache
def plan_value_names(plan: m.ExecutionPlan) -> tuple[str, ...]:
    """Return the name of each value, once for the plan of the memory, the graph and the gap."""
    return tuple([value_name(plan, index) for index in range(len(plan.values))])


def _role(plan: m.ExecutionPlan, index: int, first: int, is_state: bool) -> str:
    if is_state:
        return _STATE
    if index in plan.inputs:
        return "input"
    if index in plan.outputs:
        return "output"
    return "activation" if first >= 0 else "unused"


def _makers(plan: m.ExecutionPlan, views: Mapping[int, int]) -> dict[int, tuple[int, str]]:
    labels = [instruction_label(plan, row.instr_args) for _, _, row in instructions(plan)]
    makers: dict[int, tuple[int, str]] = {}
    for step, operands in enumerate(plan_operands(plan)):
        for value in operands.writes:
            makers.setdefault(value, (step, labels[step]))
    return makers | {value: (step, labels[step]) for value, step in views.items() if step >= 0}


def instruction_label(plan: m.ExecutionPlan, args: m.InstructionArgs) -> str:
    """Return a label for an instruction: operator name, backend id or control kind."""
    if isinstance(args, m.KernelCall):
        return operator_name(plan, args)
    if isinstance(args, m.DelegateCall):
        known = 0 <= args.delegate_index < len(plan.delegates)
        backend = plan.delegates[args.delegate_index].id if known else "missing"
        return f"{backend} (delegate {args.delegate_index})"
    return type(args).__name__


def placed_arena(mem_id: int, planned: int, values: Sequence[PlannedValue], steps: int) -> Arena:
    """Return a planned buffer with values at their offsets: its live bytes and its peak."""
    ordered = sorted(values, key=lambda value: (value.offset, value.first))
    boxes = [_box(value, planned) for value in ordered]
    numbers = storages(boxes)
    live = live_bytes(boxes, numbers, steps)
    live.setflags(write=False)
    peak = int(live.max(initial=0))
    step = int(np.argmax(live)) if peak else None
    placed = [replace(v, storage=number) for v, number in zip(ordered, numbers, strict=True)]
    if step is not None:
        _count_at_peak(placed, boxes, step)
    return Arena(mem_id, planned, peak, step, tuple(placed), live)


def _box(value: PlannedValue, planned: int) -> Box:
    """Return the part of a buffer that a value occupies; bytes outside become an issue."""
    low = min(value.offset, planned)
    return low, min(value.offset + value.nbytes, planned), value.first, value.last


def _count_at_peak(placed: list[PlannedValue], boxes: Sequence[Box], step: int) -> None:
    """Assign each value its share of the peak, the largest first."""
    alive = [i for i, (_, _, first, last) in enumerate(boxes) if 0 <= first <= step <= last]
    alive.sort(key=lambda i: (-placed[i].nbytes, placed[i].first, placed[i].value))
    shares = counted_once([boxes[i][:2] for i in alive])
    for i, nbytes in zip(alive, shares, strict=True):
        placed[i] = replace(placed[i], peak_bytes=nbytes)
    by_storage: dict[int, list[int]] = {}
    for i in alive:
        by_storage.setdefault(placed[i].storage, []).append(i)
    for group in by_storage.values():
        for i in group if len(group) > 1 else ():
            largest = group[:_MOST_COMPARED]
            with_it = [j for j in largest if j != i and _touch(boxes[i], boxes[j])][:_MOST_NAMED]
            placed[i] = replace(placed[i], shares_with=tuple(placed[j].value for j in with_it))


def _touch(one: Box, other: Box) -> bool:
    return max(one[0], other[0]) < min(one[1], other[1])
