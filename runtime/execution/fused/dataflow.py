"""Who writes and who reads each tensor of a plan, and whether their memory is theirs alone."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from runtime.execution.binding import Step
from runtime.kernels.rule import Kernel, Style
from runtime.memory.slots import Slot, TensorShapeDynamism
from runtime.program.values import Boxed, ValueTable
from schema.program import model as m

ALWAYS = 1 << 60
BEFORE = -1
_SHARED_FROM = 2  # buffers from this number on may hold state of other methods
VIEW = "executorch_prim::et_view.default"
_LOOKED_AT = 64  # writes compared for one view; more, and it is copied as in a traced run


@dataclass(slots=True)
class Tensor:
    """What happens to a tensor value in one run.

    Attributes:
        index: number in the value table
        slot: its slot
        writes: instructions that write it
        reads: instructions that read it
        last: last instruction that needs its contents, those of its other names included
        names: values never written that are the same memory, read as something else
        fixed: whether its contents must lie in its slot, in the order the plan says
        state: whether it is read before it is written, or changed in place
        same: the value whose memory it is a name of, itself for all others
        reused: whether its memory is an input's of the instruction that writes it
    """

    index: int
    slot: Slot
    writes: list[int] = field(default_factory=list[int])
    reads: list[int] = field(default_factory=list[int])
    last: int = BEFORE
    names: list[Tensor] = field(default_factory=list["Tensor"])
    fixed: bool = False
    state: bool = False
    same: int = -1
    reused: bool = False


Range = tuple[int, int, int]
"""Number of a planned buffer, first byte, byte behind the last."""


class Flow:
    """The tensors of a plan whose instructions run one after the other.

    Attributes:
        tensors: by number in the value table
        steps: the instructions
        sound: whether no two tensors that are needed at the same time share memory
    """

    def __init__(self, plan: m.ExecutionPlan, table: ValueTable, steps: Sequence[Step]) -> None:
        self.steps = steps
        self.tensors: dict[int, Tensor] = {}
        self._plan = plan
        self._table = table
        for number, item in enumerate(table.items):
            slot = table.slots.get(id(item))
            if slot is not None:
                self.tensors[number] = Tensor(number, slot, same=number)
        self._inputs, self._outputs = self._all(plan.inputs), set(self._all(plan.outputs))
        self._events: dict[int, list[tuple[int, int, int]]] = {}
        self._views: list[tuple[Tensor, Tensor]] = []
        self.sound = self._follow() and self._name() and self._apart()

    def _all(self, indices: Sequence[int]) -> list[int]:
        found: list[int] = []
        for index in indices:
            item: Any = self._table.items[index]
            found += item.items if isinstance(item, Boxed) else (index,)
        return [index for index in found if index in self.tensors]

    def static(self, index: int) -> bool:
        """Return whether a tensor has the same sizes in every run."""
        slot = self.tensors[index].slot
        return slot.constant or slot.dynamism == TensorShapeDynamism.STATIC

    def tensors_of(self, indices: Sequence[int]) -> list[int]:
        """Return the tensors among values, those inside of lists too."""
        return self._all(indices)

    def _follow(self) -> bool:
        for index in self._inputs:
            self.tensors[index].writes.append(BEFORE)
        for place, step in enumerate(self.steps):
            if not self._followed(place, step):
                return False
        for index in self._outputs:
            self.tensors[index].fixed = True
        for tensor in self.tensors.values():
            first_read = tensor.reads[0] if tensor.reads else ALWAYS
            tensor.state = len(tensor.writes) > 1 or bool(
                tensor.writes and first_read <= tensor.writes[0]
            )
            tensor.last = max((*tensor.reads, *tensor.writes), default=BEFORE)
        return True

    def _followed(self, place: int, step: Step) -> bool:
        if step.parts is None:
            reads = writes = self._all(step.logged) if step.event == "DELEGATE_CALL" else None
            if reads is None or writes is None:
                return False
            for index in reads:
                self.tensors[index].fixed = self.tensors[index].state = True
        elif step.parts.kernel.writes:  # a custom kernel that writes to its inputs
            return False
        else:
            reads, writes = self._kernel(step)
        for index in reads:
            self.tensors[index].reads.append(place)
        for index in writes:
            self.tensors[index].writes.append(place)
        return True

    def _kernel(self, step: Step) -> tuple[list[int], list[int]]:
        parts = step.parts
        assert parts is not None
        count, style = len(parts.kernel.inputs), parts.kernel.rule.style
        if style is Style.NUMBER:
            return self._all(parts.args[:-1]), []
        if style is Style.SLOTS:
            return self._slots(parts.args, parts.kernel)
        reads = self._all(parts.args[:count])
        if style is Style.IN_PLACE:
            target = self._all(parts.args[:1])
            for index in target:
                self.tensors[index].fixed = self.tensors[index].state = True
            return reads, target
        if parts.kernel.name == "aten::as_strided_copy.out":
            for index in reads:
                self.tensors[index].fixed = True
        return reads, self._all(parts.args[count : count + parts.kernel.outs])

    def _slots(self, args: Sequence[int], kernel: Kernel) -> tuple[list[int], list[int]]:
        letters = zip(args, kernel.rule.schema, strict=True)
        written = self._all([index for index, letter in letters if letter == "s"])
        if kernel.name == VIEW and all(self.range_of(self.tensors[i]) is None for i in written):
            self._views.append((self.tensors[args[0]], self.tensors[args[-1]]))
            return [args[0]], [args[-1]]
        for index in self._all(args):
            self.tensors[index].fixed = self.tensors[index].state = True
        return self._all(args), written

    def range_of(self, tensor: Tensor) -> Range | None:
        """Return the planned memory of a tensor, None where it has none."""
        value = self._plan.values[tensor.index].val
        info = value.allocation_info if isinstance(value, m.Tensor) else None
        size = tensor.slot.capacity * tensor.slot.tensor.element_size()
        if info is None or not size:
            return None
        return info.memory_id, info.offset, info.offset + size

    def _name(self) -> bool:
        """Find the values that are other names of a value; false where one has no such value."""
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
            needed = bool(tensor.reads) or tensor.fixed
            if tensor.writes or not needed or tensor.slot.constant or place is None:
                continue
            entries = owners.get((*place, tensor.slot.tensor.dtype), [])
            first = tensor.reads[0] if tensor.reads else ALWAYS
            found = bisect_left(entries, (first, -1)) - 1
            if found < 0:
                tensor.state = True
                continue
            self._also(self.tensors[entries[found][1]], tensor)
        for viewed, view in self._views:
            self._also(self.tensors[viewed.same], view)
        return True

    def _also(self, owner: Tensor, name: Tensor) -> None:
        owner.names.append(name)
        name.same = owner.index
        owner.last = max(owner.last, name.last)
        owner.fixed = owner.fixed or name.fixed
        owner.state = owner.state or name.state
        if any(not _plain(one.slot) for one in (owner, name)):
            owner.fixed = True

    def _apart(self) -> bool:
        """Return whether each tensor has its memory for itself while it is needed."""
        starts: list[tuple[int, int, int, int, int]] = []
        for tensor in self.tensors.values():
            place = self.range_of(tensor)
            used = bool(tensor.writes or tensor.reads)
            if place is None or tensor.same != tensor.index or not used:
                continue
            number, low, high = place
            if number >= _SHARED_FROM:
                tensor.fixed = tensor.state = True
            begin = min(tensor.writes, default=BEFORE)
            if tensor.state and (not tensor.writes or min(tensor.reads, default=0) <= begin):
                begin = BEFORE
                tensor.last = ALWAYS
            if not self._outputs.isdisjoint((tensor.index, *(n.index for n in tensor.names))):
                tensor.last = ALWAYS
            starts.append((begin, number, low, high, tensor.index))
            for write in tensor.writes:
                self._events.setdefault(number, []).append((write, low, high))
        for events in self._events.values():
            events.sort()
        return _disjoint(sorted(starts), self.tensors)

    def idle(self, elsewhere: Callable[[Slot], bool]) -> list[tuple[int, int]]:
        """Return address and bytes of the method's own memory that only some tensors were in.

        Args:
            elsewhere: says which are no longer there
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
        """Return whether nothing writes to memory behind one instruction and until another."""
        number, low, high = place
        events = self._events.get(number, [])
        at = bisect_left(events, (after + 1, -1, -1))
        for time, start, end in events[at : at + _LOOKED_AT]:
            if time > until:
                return True
            if start < high and low < end:
                return False
        return at + _LOOKED_AT >= len(events)


def _without(
    spans: Sequence[tuple[int, int]], taken: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Return start and length of what is in some spans and in none of others."""
    edges = [(at, 1, 0) for at, _ in spans] + [(at, -1, 0) for _, at in spans]
    edges += [(at, 0, 1) for at, _ in taken] + [(at, 0, -1) for _, at in taken]
    found: list[tuple[int, int]] = []
    inside = over = begin = 0
    for at, span, other in sorted(edges):
        if inside and not over and at > begin:
            found.append((begin, at - begin))
        inside, over, begin = inside + span, over + other, at
    return found


def _plain(slot: Slot) -> bool:
    return slot.dim_order == tuple(range(len(slot.dim_order)))


def _disjoint(starts: Sequence[tuple[int, int, int, int, int]], tensors: dict[int, Tensor]) -> bool:
    """Go through the tensors as they begin; false as soon as two need the same bytes at once."""
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
