"""The memory plan as it is in a program file: who occupies which addresses, and when.

Values that share storage (views that became aliases) count once. Lifetimes come from the
instructions, so a lone ``.pte`` is enough.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from inspector.operands import lifetimes, plan_operands
from schema.errors import Issue, Severity
from schema.identity_cache import identity_cache
from schema.program import Program, instructions, operator_name
from schema.program import model as m
from schema.scalar_type import known_nbytes, scalar_type

ALIGNMENT = 16  # of the stock planner
_LARGEST = 1 << 48  # more than any address space; sums of such sizes still fit int64


@dataclass(frozen=True, slots=True)
class PlannedValue:
    """A tensor with a place in an arena.

    Attributes:
        value: index in the plan's value table
        name: fully qualified name when the file has one, else ``v<index>``
        nbytes: bytes of its upper-bound shape
        offset: byte offset in the arena
        first: first instruction that needs it
        last: last instruction that needs it, inclusive
        scalar_type: element type name
        sizes: upper-bound shape
        made_by: instruction that writes it first, None for inputs and state
        operator: what that instruction calls
        role: input, output, state or activation
        storage: number shared by all values on the same bytes at the same time
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


@dataclass(frozen=True, slots=True)
class Arena:
    """One planned buffer.

    Shapes: live_bytes int64[instructions], of one moment where there are none

    Attributes:
        mem_id: 1-based number used by AllocationDetails
        planned_bytes: size the file asks for
        lower_bound_bytes: no plan of these lifetimes can be smaller; each storage rounded up to 16
        peak_bytes: most bytes in use at once, shared storage counted once
        peak_instruction: first instruction of that peak, None when nothing is planned here
        hole_bytes: planned bytes that are free at the peak
        values: everything placed here, by offset and then lifetime
        live_bytes: bytes in use at each instruction
    """

    mem_id: int
    planned_bytes: int
    lower_bound_bytes: int
    peak_bytes: int
    peak_instruction: int | None
    hole_bytes: int
    values: tuple[PlannedValue, ...]
    live_bytes: NDArray[np.int64]

    def at_peak(self) -> tuple[PlannedValue, ...]:
        """Return the values alive at the peak, one a storage, largest first."""
        step = self.peak_instruction
        if step is None:
            return ()
        largest: dict[int, PlannedValue] = {}
        for value in self.values:
            if value.first <= step <= value.last:
                other = largest.get(value.storage)
                if other is None or value.nbytes > other.nbytes:
                    largest[value.storage] = value
        return tuple(sorted(largest.values(), key=lambda value: -value.nbytes))


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """All arenas of one method.

    A method without instructions is one moment, number 0.
    """

    method: str
    arenas: tuple[Arena, ...]
    instruction_count: int
    issues: tuple[Issue, ...]


@identity_cache
def analyse_memory(program: Program, method: str) -> MemoryPlan:
    """Return the memory plan of a method.

    Raises: KeyError if there is no such method
    """
    plan = program.plan(method)
    steps = len(instructions(plan))
    values, issues = _planned_values(plan)
    issues += _impossible_arenas(plan)
    moments = max(steps, 1)  # what only hands its inputs on holds them all the same
    arenas = tuple(
        _arena(mem_id, planned, values.get(mem_id, []), moments)
        for mem_id, planned in _arena_sizes(plan, values)
    )
    return MemoryPlan(method, arenas, steps, tuple(issues))


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


def _planned_values(
    plan: m.ExecutionPlan,
) -> tuple[dict[int, list[PlannedValue]], list[Issue]]:
    lives = lifetimes(plan)
    makers = _makers(plan)
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
        value = PlannedValue(
            value=index,
            name=value_name(plan, index),
            nbytes=nbytes,
            offset=place.offset,
            first=int(lives.first[index]),
            last=int(lives.last[index]),
            scalar_type=scalar_type(tensor.scalar_type).name,
            sizes=tensor.sizes,
            made_by=maker[0] if maker else None,
            operator=maker[1] if maker else "",
            role=_role(plan, index, index in lives.state),
            storage=-1,
        )
        found.setdefault(place.memory_id, []).append(value)
    return found, issues


def value_name(plan: m.ExecutionPlan, index: int) -> str:
    """Return the fully qualified name of a value when the file has it, else ``v<index>``."""
    value = plan.values[index].val if 0 <= index < len(plan.values) else None
    if isinstance(value, m.Tensor) and value.extra_tensor_info is not None:
        return value.extra_tensor_info.fully_qualified_name or f"v{index}"
    return f"v{index}"


def _role(plan: m.ExecutionPlan, index: int, is_state: bool) -> str:
    if is_state:
        return "state"
    if index in plan.inputs:
        return "input"
    return "output" if index in plan.outputs else "activation"


def _makers(plan: m.ExecutionPlan) -> dict[int, tuple[int, str]]:
    makers: dict[int, tuple[int, str]] = {}
    rows = zip(instructions(plan), plan_operands(plan), strict=True)
    for step, ((_, _, instruction), operands) in enumerate(rows):
        for value in operands.writes:
            makers.setdefault(value, (step, instruction_label(plan, instruction.instr_args)))
    return makers


def instruction_label(plan: m.ExecutionPlan, args: m.InstructionArgs) -> str:
    """Return what an instruction does: operator name, backend id or control kind."""
    if isinstance(args, m.KernelCall):
        return operator_name(plan, args)
    if isinstance(args, m.DelegateCall):
        known = 0 <= args.delegate_index < len(plan.delegates)
        backend = plan.delegates[args.delegate_index].id if known else "missing"
        return f"{backend} (delegate {args.delegate_index})"
    return type(args).__name__


def _arena(mem_id: int, planned: int, values: list[PlannedValue], steps: int) -> Arena:
    placed, storages = _share(values)
    live = np.zeros(steps + 1, dtype=np.int64)
    rounded = np.zeros(steps + 1, dtype=np.int64)
    for low, high, first, last in storages:
        if first < 0:
            continue
        nbytes = high - low
        live[first] += nbytes
        live[last + 1] -= nbytes
        rounded[first] += -(-nbytes // ALIGNMENT) * ALIGNMENT
        rounded[last + 1] -= -(-nbytes // ALIGNMENT) * ALIGNMENT
    live_bytes = np.cumsum(live)[:-1]
    live_bytes.setflags(write=False)
    peak = int(live_bytes.max(initial=0))
    return Arena(
        mem_id=mem_id,
        planned_bytes=planned,
        lower_bound_bytes=int(np.cumsum(rounded)[:-1].max(initial=0)),
        peak_bytes=peak,
        peak_instruction=int(np.argmax(live_bytes)) if peak else None,
        hole_bytes=max(planned - peak, 0),
        values=placed,
        live_bytes=live_bytes,
    )


Storage = tuple[int, int, int, int]  # low address, high address, first, last


def _share(values: list[PlannedValue]) -> tuple[tuple[PlannedValue, ...], list[Storage]]:
    """Group values that occupy common bytes at a common time."""
    order = sorted(values, key=lambda value: (value.first, value.offset))
    storages: list[Storage] = []
    parent: dict[int, int] = {}
    active: list[tuple[int, int]] = []  # (low address, storage), disjoint
    numbers: list[int] = []
    for value in order:
        active = [entry for entry in active if storages[entry[1]][3] >= value.first >= 0]
        number = len(storages)
        box: Storage = (value.offset, value.offset + value.nbytes, value.first, value.last)
        for entry in _overlapping(active, storages, box):
            active.remove(entry)
            parent[entry[1]] = number
            box = _union(box, storages[entry[1]])
        storages.append(box)
        bisect.insort(active, (box[0], number))
        numbers.append(number)
    roots = [_root(parent, number) for number in numbers]
    placed = [replace(value, storage=storage) for value, storage in zip(order, roots, strict=True)]
    placed.sort(key=lambda value: (value.offset, value.first))
    return tuple(placed), [box for index, box in enumerate(storages) if index not in parent]


def _overlapping(
    active: list[tuple[int, int]], storages: list[Storage], box: Storage
) -> list[tuple[int, int]]:
    start = bisect.bisect_left(active, (box[0], -1))
    if start > 0 and storages[active[start - 1][1]][1] > box[0]:
        start -= 1
    found: list[tuple[int, int]] = []
    for entry in active[start:]:
        if storages[entry[1]][0] >= box[1]:
            break
        found.append(entry)
    return found


def _union(one: Storage, other: Storage) -> Storage:
    return (
        min(one[0], other[0]),
        max(one[1], other[1]),
        min(one[2], other[2]),
        max(one[3], other[3]),
    )


def _root(parent: dict[int, int], number: int) -> int:
    while number in parent:
        number = parent[number]
    return number
