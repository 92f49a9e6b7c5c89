"""Chooses for each instruction how it runs without a tracer, and binds it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch._ops import OpOverload

from runtime.execution.binding import BoundInstruction, BoundKernel, Call, store_many
from runtime.execution.fused import calls
from runtime.execution.fused.dataflow import ALWAYS, BEFORE, VIEW, Dataflow, TensorUse
from runtime.execution.fused.depthwise import depthwise_taps
from runtime.execution.fused.fuse import Fuser
from runtime.execution.fused.fused_run import FusedRun
from runtime.execution.fused.matmul import PackedBudget, PackedMatmuls
from runtime.execution.fused.operators import CONSTANT, DIRECT, FRESH, MATMULS, SCALED, VIEWS
from runtime.kernels import built_in
from runtime.kernels.rule import Style
from runtime.kernels.size_guard import GROWING
from runtime.program.values import Boxed, ValueTable

_FOLDED_BYTES = 16 << 20  # of folded results, which need memory in addition to the planned buffers


class Planner:
    """Plans the calls of one plan, after a run has checked every shape.

    Args:
        flow: reads and writes of each tensor; it must be sound
        table: the values
    """

    def __init__(self, flow: Dataflow, table: ValueTable) -> None:
        self._flow = flow
        self._table = table
        self._run = FusedRun()
        self._kept: set[int] = set()  # tensors that point at their kernel's result in each run
        self._folded: set[int] = set()  # tensors that are the same in every run
        self._moved: set[int] = set()  # folded results, which are outside of planned memory
        self._plain: set[int] = set()  # tensors in the planned layout, as native kernels like them
        self._roots: dict[int, int] = {}  # of each view, the tensor whose memory it is
        self._drops: dict[int, list[torch.Tensor]] = {}  # by instruction of their last use
        self._left = _FOLDED_BYTES
        self._computed = flow.computed_scalars()
        self._viewed = self._view_sources()
        budget = PackedBudget()
        self._fuser = Fuser(flow, table, budget)
        self._matmuls = PackedMatmuls(flow, table, budget)

    def plan(self) -> FusedRun:
        """Return the calls; tensors point elsewhere until `restore` is called."""
        instructions = self._flow.instructions
        for index, tensor in self._flow.tensors.items():
            if tensor.slot.constant:
                self._folded.add(index)
            if tensor.slot.constant or not tensor.writes or tensor.writes[0] < 0:
                self._plain.add(index)
        place = 0
        while place < len(instructions):
            place = self._plan_instruction(place, instructions[place])
        originals = {id(held) for held, _ in self._run.originals}
        self._run.flow = self._flow
        self._run.has_kernels = any(one.untraced is None for one in instructions)
        self._run.idle = self._flow.idle(lambda slot: id(slot.tensor) in originals)
        return self._run

    def restore(self) -> None:
        """Point every tensor at its planned memory."""
        self._run.restore()

    def _view_sources(self) -> set[int]:
        found: set[int] = set()
        for instruction in self._flow.instructions:
            bound = instruction.bound
            if bound is None or bound.kernel.name not in VIEWS:
                continue
            if self._keepable(self._outs(bound)):
                found.update(self._same(self._flow.tensors_of(bound.args[:1])))
        return found

    def _same(self, indices: Sequence[int]) -> list[int]:
        return [self._flow.tensors[index].alias_of for index in indices]

    def _plan_instruction(self, place: int, instruction: BoundInstruction) -> int:
        bound = instruction.bound
        end = place + 1
        if (
            bound is None
            or bound.arguments is None
            or bound.kernel.writes
            or bound.kernel is not built_in(bound.kernel.name)
        ):
            self._unfused(place, instruction)
        elif bound.kernel.rule.style is Style.OUT:
            if not self._filled_once(bound):
                self._unfused(place, instruction)
        else:
            fused = self._fuser.at(place) if bound.kernel.rule.style is Style.RESULT else None
            if fused is not None and self._keepable([fused.out]):
                end = fused.end
                self._keep(place, fused.run, [fused.out])
                self._plain.difference_update((fused.out,))
            else:
                self._result(place, instruction, bound)
        self._release(place, end)
        return end

    def _unfused(self, place: int, instruction: BoundInstruction) -> None:
        bound = instruction.bound
        call = self._without_unread(instruction)
        if bound is not None and bound.kernel.name == VIEW:
            if self._without_call(place, bound):
                return
            call = self._view_in_memory(bound, call)
        self._run.add(place, call)
        if bound is not None:
            self._plain.update(self._outs(bound))

    def _without_unread(self, instruction: BoundInstruction) -> Call:
        """Return the call of an instruction that does not store results that are never read."""
        call: Any = instruction.untraced or instruction.call
        if instruction.bound is None or getattr(call, "func", None) is not store_many:
            return call
        function, slots = call.args
        used = [self._flow.tensors[index] for index in self._outs(instruction.bound)]
        if len(used) != len(slots):
            return call
        kept = [
            slot if use.reads or use.pinned or use.state or use.aliases else None
            for slot, use in zip(slots, used, strict=True)
        ]
        return partial(store_many, function, kept)

    def _view(self, place: int, bound: BoundKernel) -> bool:
        """Bind `et_view` of a tensor outside of its slot; return whether it is one."""
        view = self._flow.tensors[bound.args[-1]]
        if view.alias_of == view.index or view.alias_of not in self._kept | self._moved:
            return False
        self._keep_original(view)
        call = calls.view(self._table, bound.args, view.slot)
        if view.alias_of in self._moved:
            call()
            self._point_at(view.slot.tensor, view.slot.tensor.detach())
        else:
            self._run.add(place, call)
            self._drop_when_unused(view)
        return True

    def _without_call(self, place: int, bound: BoundKernel) -> bool:
        """Return whether the plan needs no further call of `et_view`."""
        return self._view(place, bound) or self._is_settled(bound)

    def _view_in_memory(self, bound: BoundKernel, checked: Call) -> Call:
        """Return the call of `et_view` of a tensor that is where the plan has it."""
        source, view = (self._flow.tensors[index].slot for index in (bound.args[0], bound.args[-1]))
        sizes = self._table.items[bound.args[1]]
        if not (source.in_order and view.in_order and isinstance(sizes, Boxed)):
            return checked
        return calls.view_in_memory(self._table.items, sizes, (source.tensor, view.tensor), checked)

    def _is_settled(self, bound: BoundKernel) -> bool:
        """Return whether `et_view` has done in the first run all that it ever does."""
        source, size, out = bound.args
        viewed = self._flow.tensors[self._flow.tensors[source].alias_of].slot
        is_held = viewed.constant or (viewed.planned and viewed.base is not None)
        sizes = self._table.items[size]
        items = sizes.items if isinstance(sizes, Boxed) else (size,)
        return (
            is_held
            and self._flow.static(source)
            and self._flow.static(out)
            and self._computed.isdisjoint(items)
        )

    def _outs(self, bound: BoundKernel) -> list[int]:
        count = len(bound.kernel.inputs)
        return self._flow.tensors_of(bound.args[count : count + bound.kernel.outs])

    def _ins(self, bound: BoundKernel) -> list[int]:
        return self._flow.tensors_of(bound.args[: len(bound.kernel.inputs)])

    def _result(self, place: int, instruction: BoundInstruction, bound: BoundKernel) -> None:
        name, outs, ins = bound.kernel.name, self._outs(bound), self._ins(bound)
        if self._fold(bound, outs, ins):
            return
        direct = self._direct(bound, outs, ins)
        if direct is not None:
            self._run.direct[place] = direct
        replaceable = direct is not None or self._keepable(outs)
        if self._faster(place, bound, outs, packs=replaceable):
            return
        if direct is not None:
            plain = self._plain.issuperset(self._same(ins)) or name in MATMULS
            if not self._keepable(outs) or (plain and outs[0] not in self._viewed):
                self._run.add(place, direct)
                self._plain.update(outs)
                return
        if not self._may_keep(place, bound, outs, ins):
            self._unfused(place, instruction)
            return
        self._keep(place, self._function(bound), outs, bound)
        if name not in VIEWS and self._plain.issuperset(self._same(ins)):
            self._plain.update(outs)

    def _in_order(self, outs: list[int]) -> bool:
        """Return whether results of unchanging sizes go to slots in the order of their sizes."""
        slots = [self._flow.tensors[index].slot for index in outs if self._flow.static(index)]
        return len(slots) == len(outs) and all(one.in_order for one in slots)

    def _faster(self, place: int, bound: BoundKernel, outs: list[int], *, packs: bool) -> bool:
        """Bind a matmul with packed weights or a small convolution; return whether it is one."""
        run = self._matmuls.at(bound, self._folded) if packs else None
        if run is None and (packs or self._in_order(outs)):
            run = depthwise_taps(bound, self._flow, self._folded)
        if run is None:
            return False
        if self._keepable(outs):
            self._keep(place, run, outs)
        else:
            self._run.add(place, calls.copied(run, self._flow.tensors[outs[0]].slot.tensor))
        self._plain.update(outs)
        return True

    def _function(self, bound: BoundKernel) -> Callable[[], Any]:
        assert bound.function is not None
        assert bound.arguments is not None
        name = bound.kernel.name
        if name not in DIRECT or name.endswith("softmax.out") or not is_plain(bound):
            return bound.function
        return _bound(DIRECT[name], bound)

    def _direct(self, bound: BoundKernel, outs: list[int], ins: list[int]) -> Call | None:
        """Return the call of a native out variant, None if it might reallocate its slot."""
        arguments = bound.arguments
        if (
            bound.kernel.name not in DIRECT
            or arguments is None
            or not arguments.fixed
            or len(outs) != 1
        ):
            return None
        if not is_plain(bound):
            return None
        out = self._flow.tensors[outs[0]]
        if out.reused or out.state or out.writes != out.writes[:1]:
            return None
        if not all(self._flow.static(index) for index in (*outs, *ins)):
            return None
        return bound_direct(bound, out.slot.tensor)

    def _keepable(self, outs: Sequence[int]) -> bool:
        for index in outs:
            tensor = self._flow.tensors[index]
            resized = not self._flow.static(index)
            has_alias = any(not alias.writes for alias in tensor.aliases)
            if tensor.pinned or tensor.state or len(tensor.writes) != 1 or (resized and has_alias):
                return False
        return bool(outs)

    def _may_keep(self, place: int, bound: BoundKernel, outs: list[int], ins: list[int]) -> bool:
        name = bound.kernel.name
        if not self._keepable(outs) or name not in FRESH | VIEWS:
            return False
        if name in GROWING and not all(self._flow.static(index) for index in (*outs, *ins)):
            return False
        return name in FRESH or self._may_view(place, outs, ins[0])

    def _may_view(self, place: int, outs: Sequence[int], source: int) -> bool:
        """Return whether memory stays unchanged while views of it are live; record its owner."""
        owner = self._flow.tensors[source].alias_of
        root = self._roots.get(owner, owner)
        if root in self._folded or root in self._kept:
            self._roots.update(dict.fromkeys(outs, root))
            return True
        tensor = self._flow.tensors[root]
        where = self._flow.range_of(tensor)
        until = max(self._flow.tensors[out].last for out in outs)
        if tensor.state or (where is None and tensor.writes != [BEFORE]):
            return False
        if where is not None and not self._flow.untouched(where, place, until):
            return False
        self._roots.update(dict.fromkeys(outs, root))
        return True

    def _fold(self, bound: BoundKernel, outs: list[int], ins: list[int]) -> bool:
        """Compute a result that is the same in every run; return whether it is."""
        name, arguments = bound.kernel.name, bound.arguments
        if arguments is None or not arguments.fixed or not self._folded.issuperset(self._same(ins)):
            return False
        size = 0 if name in VIEWS else sum(map(self._bytes, outs))
        if name not in FRESH | VIEWS or not self._keepable(outs) or size > self._left:
            return False
        if not all(self._flow.static(index) for index in outs):
            return False
        self._left -= size
        assert bound.function is not None
        with torch.no_grad():
            self._fold_to(outs, bound.function())
        return True

    def _filled_once(self, bound: BoundKernel) -> bool:
        outs, arguments = self._outs(bound), bound.arguments
        size = sum(map(self._bytes, outs))
        sized = bound.kernel.name == "aten::full_like.out" or self._folded.issuperset(
            self._same(self._ins(bound))
        )
        if (
            arguments is None
            or not arguments.fixed
            or bound.kernel.name not in CONSTANT
            or not sized
        ):
            return False
        if len(outs) != 1 or not self._keepable(outs) or size > self._left:
            return False
        if not all(self._flow.static(index) for index in (*outs, *self._ins(bound))):
            return False
        self._left -= size
        slot = self._flow.tensors[outs[0]].slot
        self._keep_original(self._flow.tensors[outs[0]])
        slot.tensor.data = torch.empty_like(slot.tensor)
        with torch.no_grad():
            arguments.call(bound.kernel.rule.run, [slot])
        self._fold_to(outs, slot.tensor)
        return True

    def _fold_to(self, outs: Sequence[int], results: Any) -> None:  # noqa: ANN401 - one or several
        found = [results] if isinstance(results, torch.Tensor) else list(results)
        for index, result in zip(outs, found, strict=True):
            tensor = self._flow.tensors[index]
            self._keep_original(tensor)
            result = calls.fitted(tensor.slot, result)
            self._point_at(tensor.slot.tensor, result)
            self._folded.add(index)
            self._moved.add(index)
            self._plain.add(index)
            for alias in self._aliases(tensor):
                self._point_at(alias.slot.tensor, result.reshape(alias.slot.tensor.shape))
                self._folded.add(alias.index)

    def _point_at(self, tensor: torch.Tensor, contents: torch.Tensor) -> None:
        tensor.data = contents
        self._run.constants.append((tensor, contents.detach()))

    def _bytes(self, index: int) -> int:
        slot = self._flow.tensors[index].slot
        return slot.capacity * slot.tensor.element_size()

    def _keep_original(self, tensor: TensorUse) -> None:
        held = tensor.slot.tensor
        self._run.originals.append((held, held.detach()))

    def _keep(
        self,
        place: int,
        run: Callable[[], Any],
        outs: Sequence[int],
        bound: BoundKernel | None = None,
    ) -> None:
        tensors = [self._flow.tensors[index] for index in outs]
        several = bound is not None and (bound.kernel.outs > 1 or bound.kernel.out_is_list)
        self._run.add(place, calls.keep(run, tensors, several=several))
        for tensor in tensors:
            self._kept.add(tensor.index)
            self._keep_original(tensor)
            for alias in self._aliases(tensor):
                self._run.add(place, calls.alias(tensor.slot, alias.slot))
                self._drop_when_unused(alias)
            self._drop_when_unused(tensor)

    def _aliases(self, tensor: TensorUse) -> list[TensorUse]:
        """Return the aliases of a tensor that no instruction writes."""
        aliases = [alias for alias in tensor.aliases if not alias.writes]
        for alias in aliases:
            self._keep_original(alias)
        return aliases

    def _drop_when_unused(self, tensor: TensorUse) -> None:
        owner = self._flow.tensors[tensor.alias_of]
        if owner.last < ALWAYS:
            self._drops.setdefault(owner.last, []).append(tensor.slot.tensor)

    def _release(self, place: int, end: int) -> None:
        for at in range(place, end):
            dead = self._drops.pop(at, None)
            if dead:
                self._run.add(at, calls.release(dead))


def is_plain(bound: BoundKernel) -> bool:
    """Return whether a kernel is a plain torch operator with fixed scalars."""
    arguments = bound.arguments
    if (
        arguments is None
        or not arguments.fixed
        or not isinstance(bound.kernel.rule.run, OpOverload)
    ):
        return False
    return bound.kernel.name not in SCALED or _is_one(arguments.current()[0][2])


def _is_one(value: object) -> bool:
    return value == 1 and not isinstance(value, bool)


def bound_direct(bound: BoundKernel, out: torch.Tensor) -> Call:
    """Return the call of a native out variant that writes into a tensor of the exact sizes."""
    return _bound(DIRECT[bound.kernel.name], bound, out=out)


def _bound(run: Callable[..., Any], bound: BoundKernel, **more: Any) -> Callable[[], Any]:  # noqa: ANN401
    assert bound.arguments is not None
    positional, named = bound.arguments.current()
    named = {
        key: value
        for key, value in named.items()
        if not (key in ("alpha", "beta") and _is_one(value))
    }
    if bound.kernel.name in SCALED:
        positional = positional[:2]  # torch.add takes alpha by keyword only
    return partial(run, *positional, **named, **more)
