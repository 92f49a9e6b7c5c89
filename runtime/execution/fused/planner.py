"""Chooses for each instruction how it runs without a trace, and binds it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch._ops import OpOverload

from runtime.execution.binding import Call, Parts, Step
from runtime.execution.fused import calls
from runtime.execution.fused.dataflow import ALWAYS, BEFORE, VIEW, Flow, Tensor
from runtime.execution.fused.fuse import Fuser
from runtime.execution.fused.matmul import PackedBudget, Products
from runtime.execution.fused.operators import CONSTANT, DIRECT, FRESH, PRODUCTS, SCALED, VIEWS
from runtime.kernels import built_in
from runtime.kernels.rule import Style
from runtime.kernels.size_guard import GROWING
from runtime.memory.release import give_back_idle
from runtime.program.values import ValueTable

_FOLDED_BYTES = 16 << 20


def _pairs() -> list[tuple[torch.Tensor, torch.Tensor]]:
    return []


@dataclass(slots=True)
class LeanRun:
    """What a run without a trace calls.

    Attributes:
        calls: the calls, in order
        places: the instruction that each call belongs to
        direct: calls that a traced run may make too: they write their result to its slot
        homes: tensors that are pointed elsewhere by the calls, and what they were
        always: tensors that are the same in every run, and what they are
        idle: address and bytes of planned memory that these calls never touch
    """

    calls: list[Call] = field(default_factory=list[Call])
    places: list[int] = field(default_factory=list[int])
    direct: dict[int, Call] = field(default_factory=dict[int, Call])
    homes: list[tuple[torch.Tensor, torch.Tensor]] = field(default_factory=_pairs)
    always: list[tuple[torch.Tensor, torch.Tensor]] = field(default_factory=_pairs)
    idle: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    def add(self, place: int, call: Call) -> None:
        """Append a call."""
        self.calls.append(call)
        self.places.append(place)

    def restore(self) -> None:
        """Let every tensor be its planned memory again."""
        for tensor, home in self.homes:
            tensor.data = home

    def give_back(self) -> None:
        """Let the machine have the memory that only a run with a trace would touch."""
        for address, nbytes in self.idle:
            give_back_idle(address, nbytes)

    def move(self) -> None:
        """Let those tensors that are the same in every run be that again."""
        for tensor, contents in self.always:
            tensor.data = contents


class Planner:
    """Makes the calls of one plan, whose careful run has checked every shape.

    Args:
        flow: who reads and writes what; it must be sound
        table: the values
    """

    def __init__(self, flow: Flow, table: ValueTable) -> None:
        self._flow = flow
        self._table = table
        self._run = LeanRun()
        self._kept: set[int] = set()
        self._folded: set[int] = set()
        self._moved: set[int] = set()
        self._plain: set[int] = set()
        self._roots: dict[int, int] = {}
        self._dying: dict[int, list[torch.Tensor]] = {}
        self._left = _FOLDED_BYTES
        self._viewed = self._view_sources()
        budget = PackedBudget()
        self._fuser = Fuser(flow, table, budget)
        self._products = Products(flow, table, budget)

    def make(self) -> LeanRun:
        """Return the calls."""
        steps = self._flow.steps
        for index, tensor in self._flow.tensors.items():
            if tensor.slot.constant:
                self._folded.add(index)
            if tensor.slot.constant or not tensor.writes or tensor.writes[0] < 0:
                self._plain.add(index)
        place = 0
        while place < len(steps):
            place = self._placed(place, steps[place])
        homes = {id(held) for held, _ in self._run.homes}
        self._run.idle = self._flow.idle(lambda slot: id(slot.tensor) in homes)
        return self._run

    def undo(self) -> None:
        """Let every tensor be its planned memory again."""
        self._run.restore()

    def _view_sources(self) -> set[int]:
        found: set[int] = set()
        for step in self._flow.steps:
            parts = step.parts
            if parts is None or parts.kernel.name not in VIEWS:
                continue
            if self._keepable(self._outs(parts)):
                found.update(self._same(self._flow.tensors_of(parts.args[:1])))
        return found

    def _same(self, indices: Sequence[int]) -> list[int]:
        return [self._flow.tensors[index].same for index in indices]

    def _placed(self, place: int, step: Step) -> int:
        parts = step.parts
        end = place + 1
        if parts is None or parts.make is None or parts.kernel is not built_in(parts.kernel.name):
            self._careful(place, step)
        elif parts.kernel.rule.style is Style.OUT:
            if not self._filled_once(parts):
                self._careful(place, step)
        else:
            fused = self._fuser.at(place) if parts.kernel.rule.style is Style.RESULT else None
            if fused is not None and self._keepable([fused.out]):
                end = fused.end
                self._keep(place, fused.run, [fused.out])
                self._plain.difference_update((fused.out,))
            else:
                self._result(place, step, parts)
        self._drop(place, end)
        return end

    def _careful(self, place: int, step: Step) -> None:
        parts = step.parts
        if parts is not None and parts.kernel.name == VIEW and self._view(place, parts):
            return
        self._run.add(place, step.call)
        if parts is not None:
            self._plain.update(self._outs(parts))

    def _view(self, place: int, parts: Parts) -> bool:
        """Bind `et_view` on what is not in its slot; return whether it is such."""
        view = self._flow.tensors[parts.args[-1]]
        if view.same == view.index or view.same not in self._kept | self._moved:
            return False
        self._home(view)
        call = calls.view(self._table, parts.args, view.slot)
        if view.same in self._moved:
            call()
            self._is_always(view.slot.tensor, view.slot.tensor.detach())
        else:
            self._run.add(place, call)
            self._dies(view)
        return True

    def _outs(self, parts: Parts) -> list[int]:
        count = len(parts.kernel.inputs)
        return self._flow.tensors_of(parts.args[count : count + parts.kernel.outs])

    def _ins(self, parts: Parts) -> list[int]:
        return self._flow.tensors_of(parts.args[: len(parts.kernel.inputs)])

    def _result(self, place: int, step: Step, parts: Parts) -> None:
        name, outs, ins = parts.kernel.name, self._outs(parts), self._ins(parts)
        if self._fold(parts, outs, ins):
            return
        direct = self._direct(parts, outs, ins)
        if direct is not None:
            self._run.direct[place] = direct
        if (direct is not None or self._keepable(outs)) and self._product(place, parts, outs):
            return
        if direct is not None:
            plain = self._plain.issuperset(self._same(ins)) or name in PRODUCTS
            if not self._keepable(outs) or (plain and outs[0] not in self._viewed):
                self._run.add(place, direct)
                self._plain.update(outs)
                return
        if not self._may_keep(place, parts, outs, ins):
            self._careful(place, step)
            return
        self._keep(place, self._function(parts), outs, parts)
        if name not in VIEWS and self._plain.issuperset(self._same(ins)):
            self._plain.update(outs)

    def _product(self, place: int, parts: Parts, outs: list[int]) -> bool:
        """Bind a product with packed weights; return whether it is one."""
        run = self._products.at(parts, self._folded)
        if run is None:
            return False
        if self._keepable(outs):
            self._keep(place, run, outs)
        else:
            self._run.add(place, calls.copied(run, self._flow.tensors[outs[0]].slot.tensor))
        self._plain.update(outs)
        return True

    def _function(self, parts: Parts) -> Callable[[], Any]:
        assert parts.function is not None
        assert parts.make is not None
        name = parts.kernel.name
        if name not in DIRECT or name.endswith("softmax.out") or not is_plain(parts):
            return parts.function
        return _bound(DIRECT[name], parts)

    def _direct(self, parts: Parts, outs: list[int], ins: list[int]) -> Call | None:
        """Return the call of a native out variant, None where it might leave its slot."""
        make = parts.make
        if parts.kernel.name not in DIRECT or make is None or not make.fixed or len(outs) != 1:
            return None
        if not is_plain(parts):
            return None
        out = self._flow.tensors[outs[0]]
        if out.reused or out.state or out.writes != out.writes[:1]:
            return None
        if not all(self._flow.static(index) for index in (*outs, *ins)):
            return None
        return bound_direct(parts, out.slot.tensor)

    def _keepable(self, outs: Sequence[int]) -> bool:
        for index in outs:
            tensor = self._flow.tensors[index]
            named = not self._flow.static(index) and any(not name.writes for name in tensor.names)
            if tensor.fixed or tensor.state or len(tensor.writes) != 1 or named:
                return False
        return bool(outs)

    def _may_keep(self, place: int, parts: Parts, outs: list[int], ins: list[int]) -> bool:
        name = parts.kernel.name
        if not self._keepable(outs) or name not in FRESH | VIEWS:
            return False
        if name in GROWING and not all(self._flow.static(index) for index in (*outs, *ins)):
            return False
        return name in FRESH or self._may_view(place, outs, ins[0])

    def _may_view(self, place: int, outs: Sequence[int], source: int) -> bool:
        """Return whether memory stays as it is while results show it; note whose memory it is."""
        same = self._flow.tensors[source].same
        root = self._roots.get(same, same)
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

    def _fold(self, parts: Parts, outs: list[int], ins: list[int]) -> bool:
        """Compute what is the same in every run now; return whether it is."""
        name, make = parts.kernel.name, parts.make
        if make is None or not make.fixed or not self._folded.issuperset(self._same(ins)):
            return False
        size = 0 if name in VIEWS else sum(map(self._bytes, outs))
        if name not in FRESH | VIEWS or not self._keepable(outs) or size > self._left:
            return False
        if not all(self._flow.static(index) for index in outs):
            return False
        self._left -= size
        assert parts.function is not None
        with torch.no_grad():
            self._always(outs, parts.function())
        return True

    def _filled_once(self, parts: Parts) -> bool:
        outs, make = self._outs(parts), parts.make
        size = sum(map(self._bytes, outs))
        sized = parts.kernel.name == "aten::full_like.out" or self._folded.issuperset(
            self._same(self._ins(parts))
        )
        if make is None or not make.fixed or parts.kernel.name not in CONSTANT or not sized:
            return False
        if len(outs) != 1 or not self._keepable(outs) or size > self._left:
            return False
        if not all(self._flow.static(index) for index in (*outs, *self._ins(parts))):
            return False
        self._left -= size
        slot = self._flow.tensors[outs[0]].slot
        self._home(self._flow.tensors[outs[0]])
        slot.tensor.data = torch.empty_like(slot.tensor)
        with torch.no_grad():
            make.call(parts.kernel.rule.run, [slot])
        self._always(outs, slot.tensor)
        return True

    def _always(self, outs: Sequence[int], results: Any) -> None:  # noqa: ANN401 - one or several
        found = [results] if isinstance(results, torch.Tensor) else list(results)
        for index, result in zip(outs, found, strict=True):
            tensor = self._flow.tensors[index]
            self._home(tensor)
            result = calls.fitted(tensor.slot, result)
            self._is_always(tensor.slot.tensor, result)
            self._folded.add(index)
            self._moved.add(index)
            self._plain.add(index)
            for name in self._named(tensor):
                self._is_always(name.slot.tensor, result.reshape(name.slot.tensor.shape))
                self._folded.add(name.index)

    def _is_always(self, tensor: torch.Tensor, contents: torch.Tensor) -> None:
        tensor.data = contents
        self._run.always.append((tensor, contents.detach()))

    def _bytes(self, index: int) -> int:
        slot = self._flow.tensors[index].slot
        return slot.capacity * slot.tensor.element_size()

    def _home(self, tensor: Tensor) -> None:
        held = tensor.slot.tensor
        self._run.homes.append((held, held.detach()))

    def _keep(
        self,
        place: int,
        run: Callable[[], Any],
        outs: Sequence[int],
        parts: Parts | None = None,
    ) -> None:
        tensors = [self._flow.tensors[index] for index in outs]
        several = parts is not None and (parts.kernel.outs > 1 or parts.kernel.out_is_list)
        self._run.add(place, calls.keep(run, tensors, several=several))
        for tensor in tensors:
            self._kept.add(tensor.index)
            self._home(tensor)
            for name in self._named(tensor):
                self._run.add(place, calls.rename(tensor.slot, name.slot))
                self._dies(name)
            self._dies(tensor)

    def _named(self, tensor: Tensor) -> list[Tensor]:
        """Return the other names of a tensor that no instruction makes."""
        names = [name for name in tensor.names if not name.writes]
        for name in names:
            self._home(name)
        return names

    def _dies(self, tensor: Tensor) -> None:
        owner = self._flow.tensors[tensor.same]
        if owner.last < ALWAYS:
            self._dying.setdefault(owner.last, []).append(tensor.slot.tensor)

    def _drop(self, place: int, end: int) -> None:
        for at in range(place, end):
            dead = self._dying.pop(at, None)
            if dead:
                self._run.add(at, calls.drop(dead))


def is_plain(parts: Parts) -> bool:
    """Return whether a kernel is torch's own and nothing more, on numbers that do not change."""
    make = parts.make
    if make is None or not make.fixed or not isinstance(parts.kernel.rule.run, OpOverload):
        return False
    return parts.kernel.name not in SCALED or _is_one(make.current()[0][2])


def _is_one(value: object) -> bool:
    return value == 1 and not isinstance(value, bool)


def bound_direct(parts: Parts, out: torch.Tensor) -> Call:
    """Return the call of a native out variant that writes into a tensor of the right sizes."""
    return _bound(DIRECT[parts.kernel.name], parts, out=out)


def _bound(run: Callable[..., Any], parts: Parts, **more: Any) -> Callable[[], Any]:  # noqa: ANN401
    assert parts.make is not None
    positional, named = parts.make.current()
    named = {
        key: value
        for key, value in named.items()
        if not (key in ("alpha", "beta") and _is_one(value))
    }
    if parts.kernel.name in SCALED:
        positional = positional[:2]  # torch.add takes the factor by name only
    return partial(run, *positional, **named, **more)
