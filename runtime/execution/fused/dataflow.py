"""Reads and writes of each tensor of a plan, its aliases, and overlaps in planned memory."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from runtime.execution.binding import BoundInstruction, BoundKernel
from runtime.kernels.rule import Kernel, Operand, Style
from runtime.memory.slots import TensorShapeDynamism, TensorSlot
from runtime.program.values import Boxed, ValueTable
from schema.program import model as m

ALWAYS = 1 << 60  # after every instruction index
BEFORE = -1
_SHARED_FROM = 2  # memory ids from this one on may hold state of other methods
_NUMBERS = (bool, int, float)
VIEW = "executorch_prim::et_view.default"
# Writes compared for one view; with more it is copied, so that planning stays linear.
_LOOKED_AT = 64


@dataclass(slots=True)
class TensorUse:
    """Uses of a tensor value in one run.

    Attributes:
        index: index in the value table
        slot: its slot
        writes: instructions that write it
        reads: instructions that read it
        last: last instruction that needs its contents, those of its aliases included
        aliases: values over the same memory that no instruction writes
        pinned: whether its contents must be in its slot, in the planned dim order
        state: whether it is read before it is written, or changed in place
        alias_of: value whose memory it shares, its own index if it shares none
        reused: whether it shares memory with an input of the instruction that writes it
    """

    index: int
    slot: TensorSlot
    writes: list[int] = field(default_factory=list[int])
    reads: list[int] = field(default_factory=list[int])
    last: int = BEFORE
    aliases: list[TensorUse] = field(default_factory=list["TensorUse"])
    pinned: bool = False
    state: bool = False
    alias_of: int = -1
    reused: bool = False


Range = tuple[int, int, int]
"""Memory id, first byte, end byte (exclusive)."""


class Dataflow:
    """The tensors of a plan without jumps.

    Attributes:
        tensors: by index in the value table
        instructions: in the order they run
        table: the values
        results: outputs of the plan, those in lists included
        moved: values whose table entry another one may take the place of
        is_sound: whether no two live tensors overlap in memory
    """

    def __init__(
        self, plan: m.ExecutionPlan, table: ValueTable, instructions: Sequence[BoundInstruction]
    ) -> None:
        self.instructions = instructions
        self.tensors: dict[int, TensorUse] = {}
        self._plan = plan
        self.table = table
        for number, item in enumerate(table.items):
            slot = table.slots.get(id(item))
            if slot is not None:
                self.tensors[number] = TensorUse(number, slot, alias_of=number)
        self._inputs, self._outputs = self._all(plan.inputs), set(self._all(plan.outputs))
        self.results = frozenset(_flat(table, plan.outputs))
        self.moved = _moved(plan)
        self._ranges: dict[int, Range | None] = {}
        self._events: dict[int, list[tuple[int, int, int]]] = {}
        self._views: list[tuple[TensorUse, TensorUse]] = []
        self.is_sound = self._collect_uses() and self._find_aliases() and self._do_not_overlap()

    def _all(self, indices: Sequence[int]) -> list[int]:
        return [index for index in _flat(self.table, indices) if index in self.tensors]

    def static(self, index: int) -> bool:
        """Return whether a tensor has the same sizes in every run."""
        slot = self.tensors[index].slot
        return slot.constant or slot.dynamism == TensorShapeDynamism.STATIC

    def is_moved(self, indices: Sequence[int]) -> bool:
        """Return whether one of some values, those in lists included, may be another one's."""
        return bool(self.moved) and not self.moved.isdisjoint(_flat(self.table, indices))

    def tensors_of(self, indices: Sequence[int]) -> list[int]:
        """Return the tensors among values, those in lists included."""
        return self._all(indices)

    def computed_scalars(self) -> frozenset[int]:
        """Return the scalars that instructions compute, those of delegate calls included."""
        bound = [one.bound for one in self.instructions if one.bound is not None]
        calls = [one.logged for one in self.instructions if one.event == "DELEGATE_CALL"]
        return frozenset(
            (
                *(one.args[-1] for one in bound if one.kernel.rule.style is Style.SCALAR),
                *(
                    at
                    for args in calls
                    for at in args
                    if isinstance(self.table.items[at], _NUMBERS)
                ),
            )
        )

    def _collect_uses(self) -> bool:
        for index in self._inputs:
            self.tensors[index].writes.append(BEFORE)
        for place, instruction in enumerate(self.instructions):
            if not self._collect(place, instruction):
                return False
        for index in self._outputs:
            self.tensors[index].pinned = True
        for tensor in self.tensors.values():
            first_read = tensor.reads[0] if tensor.reads else ALWAYS
            tensor.state = len(tensor.writes) > 1 or bool(
                tensor.writes and first_read <= tensor.writes[0]
            )
            tensor.last = max((*tensor.reads, *tensor.writes), default=BEFORE)
        return True

    def _collect(self, place: int, instruction: BoundInstruction) -> bool:
        if instruction.bound is None:
            reads = writes = (
                self._all(instruction.logged) if instruction.event == "DELEGATE_CALL" else None
            )
            if reads is None or writes is None:
                return False
            for index in reads:
                self.tensors[index].pinned = True
            if instruction.written is None:
                for index in reads:
                    self.tensors[index].state = True
            else:
                writes = self._all(instruction.written)
                reads = _without_each(reads, writes)
        elif not self._writes_planned(instruction.bound):
            return False
        else:
            reads, writes = self._kernel(instruction)
        for index in reads:
            self.tensors[index].reads.append(place)
        for index in writes:
            self.tensors[index].writes.append(place)
        return True

    def _writes_planned(self, bound: BoundKernel) -> bool:
        """Return whether what a custom kernel writes to has a known place in planned memory."""
        written = self._all([bound.args[place] for place in bound.kernel.writes])
        return all(self.range_of(self.tensors[index]) is not None for index in written)

    def _kernel(self, instruction: BoundInstruction) -> tuple[list[int], list[int]]:
        bound = instruction.bound
        assert bound is not None
        count, style = len(bound.kernel.inputs), bound.kernel.rule.style
        if style is Style.SCALAR:
            return self._all(bound.args[:-1]), []
        if style is Style.SLOTS:
            return self._slots(bound.args, bound.kernel)
        reads = self._all(bound.args[:count])
        if style is Style.IN_PLACE:
            target = self._all(bound.args[:1])
            for index in target:
                self.tensors[index].pinned = self.tensors[index].state = True
            return reads, target
        written = self._all([bound.args[place] for place in bound.kernel.writes])
        if written:  # as a KV cache is; it stays in its place, and so does all that is read
            for index in (*reads, *written):
                self.tensors[index].pinned = True
            for index in written:
                self.tensors[index].state = True
        if bound.kernel.name == "aten::as_strided_copy.out":
            for index in reads:
                self.tensors[index].pinned = True
        return reads, [*written, *self._all(bound.args[count : count + bound.kernel.outs])]

    def _slots(self, args: Sequence[int], kernel: Kernel) -> tuple[list[int], list[int]]:
        operands = zip(args, kernel.rule.operands, strict=True)
        written = self._all([index for index, kind in operands if kind is Operand.WRITTEN])
        if kernel.name == VIEW and all(self.range_of(self.tensors[i]) is None for i in written):
            self._views.append((self.tensors[args[0]], self.tensors[args[-1]]))
            return [args[0]], [args[-1]]
        for index in self._all(args):
            self.tensors[index].pinned = self.tensors[index].state = True
        return self._all(args), written

    def range_of(self, tensor: TensorUse) -> Range | None:
        """Return the planned memory of a tensor, None if it is not planned."""
        if tensor.index not in self._ranges:
            self._ranges[tensor.index] = self._range_of(tensor)
        return self._ranges[tensor.index]

    def _range_of(self, tensor: TensorUse) -> Range | None:
        value = self._plan.values[tensor.index].val
        info = value.allocation_info if isinstance(value, m.Tensor) else None
        size = tensor.slot.capacity * tensor.slot.tensor.element_size()
        if info is None or not size:
            return None
        return info.memory_id, info.offset, info.offset + size

    def _find_aliases(self) -> bool:
        """Find values that alias another one: same planned memory and dtype, never written."""
        owners: dict[tuple[object, ...], list[tuple[int, int]]] = {}
        for tensor in self.tensors.values():
            place = self.range_of(tensor)
            if tensor.writes and place is not None and not tensor.slot.constant:
                key = (*place, tensor.slot.tensor.dtype)
                owners.setdefault(key, []).append((tensor.writes[0], tensor.index))
        for entries in owners.values():
            entries.sort()
        for tensor in self.tensors.values():
            place = self.range_of(tensor)
            needed = bool(tensor.reads) or tensor.pinned
            if tensor.writes or not needed or tensor.slot.constant or place is None:
                continue
            entries = owners.get((*place, tensor.slot.tensor.dtype), [])
            first = tensor.reads[0] if tensor.reads else ALWAYS
            found = bisect_left(entries, (first, -1)) - 1
            if found < 0:
                tensor.state = True
                continue
            self._add_alias(self.tensors[entries[found][1]], tensor)
        for viewed, view in self._views:
            self._add_alias(self.tensors[viewed.alias_of], view)
        return True

    def _add_alias(self, owner: TensorUse, name: TensorUse) -> None:
        owner.aliases.append(name)
        name.alias_of = owner.index
        owner.last = max(owner.last, name.last)
        owner.pinned = owner.pinned or name.pinned
        owner.state = owner.state or name.state
        if any(not _plain(one.slot) for one in (owner, name)):
            owner.pinned = True

    def _do_not_overlap(self) -> bool:
        """Return whether no two tensors overlap in memory while both are live."""
        starts: list[tuple[int, int, int, int, int]] = []
        for tensor in self.tensors.values():
            place = self.range_of(tensor)
            used = bool(tensor.writes or tensor.reads)
            if place is None or tensor.alias_of != tensor.index or not used:
                continue
            number, low, high = place
            if number >= _SHARED_FROM:
                tensor.pinned = tensor.state = True
            begin = min(tensor.writes, default=BEFORE)
            if tensor.state and (not tensor.writes or min(tensor.reads, default=0) <= begin):
                begin = BEFORE
                tensor.last = ALWAYS
            if not self._outputs.isdisjoint((tensor.index, *(n.index for n in tensor.aliases))):
                tensor.last = ALWAYS
            starts.append((begin, number, low, high, tensor.index))
            for write in tensor.writes:
                self._events.setdefault(number, []).append((write, low, high))
        for events in self._events.values():
            events.sort()
        return _disjoint(sorted(starts), self.tensors)

    def idle(self, elsewhere: Callable[[TensorSlot], bool]) -> list[tuple[int, int]]:
        """Return address and bytes of the method's own planned memory that is no longer used.

        Args:
            elsewhere: returns whether a tensor is kept outside of planned memory
        """
        gone: list[tuple[int, int]] = []
        used: list[tuple[int, int]] = []
        for tensor in self.tensors.values():
            place, base = self.range_of(tensor), tensor.slot.base
            if place is None or base is None or place[0] >= _SHARED_FROM:
                continue
            start = base.data_ptr()
            kept = used if not elsewhere(tensor.slot) else gone
            kept.append((start, start + place[2] - place[1]))
        return _without(gone, used)

    def untouched(self, place: Range, after: int, until: int) -> bool:
        """Return whether no instruction in the half-open range (first, last] writes to memory."""
        number, low, high = place
        events = self._events.get(number, [])
        at = bisect_left(events, (after + 1, -1, -1))
        for time, start, end in events[at : at + _LOOKED_AT]:
            if time > until:
                return True
            if start < high and low < end:
                return False
        return at + _LOOKED_AT >= len(events)


def _moved(plan: m.ExecutionPlan) -> frozenset[int]:
    calls = [one.instr_args for chain in plan.chains for one in chain.instructions]
    return frozenset(one.move_to for one in calls if isinstance(one, m.MoveCall))


def _flat(table: ValueTable, indices: Sequence[int]) -> list[int]:
    """Return value indices, with those in lists instead of the lists."""
    found: list[int] = []
    for index in indices:
        item: Any = table.items[index]
        found += item.items if isinstance(item, Boxed) else (index,)
    return found


def _without_each(indices: Sequence[int], others: Sequence[int]) -> list[int]:
    """Return the different indices that are there more often than among others."""
    left = list(indices)
    for index in others:
        if index in left:
            left.remove(index)
    return [*dict.fromkeys(left)]


def _without(
    spans: Sequence[tuple[int, int]], taken: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Return start and length of the parts of some spans that no other span covers."""
    edges = [(at, 1, 0) for at, _ in spans] + [(at, -1, 0) for _, at in spans]
    edges += [(at, 0, 1) for at, _ in taken] + [(at, 0, -1) for _, at in taken]
    found: list[tuple[int, int]] = []
    inside = over = begin = 0
    for at, span, other in sorted(edges):
        if inside and not over and at > begin:
            found.append((begin, at - begin))
        inside, over, begin = inside + span, over + other, at
    return found


def _plain(slot: TensorSlot) -> bool:
    return slot.dim_order == tuple(range(len(slot.dim_order)))


def _disjoint(
    starts: Sequence[tuple[int, int, int, int, int]], tensors: dict[int, TensorUse]
) -> bool:
    """Sweep over tensors by first write; return False as soon as two live ones overlap."""
    live: dict[int, list[tuple[int, int, int]]] = {}
    for begin, number, low, high, index in starts:
        entries = live.setdefault(number, [])
        at = max(bisect_left(entries, (low, -1, -1)) - 1, 0)
        while at < len(entries) and entries[at][0] < high:
            _, end, other = entries[at]
            if end <= low:
                at += 1
                continue
            if tensors[other].last > begin or begin in tensors[other].writes:
                return False
            if tensors[other].last == begin:
                tensors[index].reused = True
            del entries[at]
        entries.insert(at, (low, high, index))
    return True
