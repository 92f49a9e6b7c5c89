"""The calls of a run without a tracer, and the graphs that stand for stretches of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from runtime.execution.binding import Call
from runtime.execution.fused.dataflow import Dataflow
from runtime.execution.fused.one_position import OnePosition
from runtime.execution.fused.stretches import Stretch, scripted_calls
from runtime.execution.fused.symbolic import scope_of
from runtime.memory.release import release_idle_pages
from schema.objects.cyclic_gc import gc_suspended

_MOST_RECORDINGS = 4  # a generation may have prompts where the run before had one position


def _pairs() -> list[tuple[torch.Tensor, torch.Tensor]]:
    return []


@dataclass(slots=True)
class FusedRun:
    """The calls of a run without a tracer.

    While it is active, tensors point at results outside of their planned memory.

    Attributes:
        calls: in order
        places: index of the instruction that each call belongs to
        direct: calls, by instruction, that traced runs may use: they write into the slot
        originals: tensors that the calls redirect, and their planned memory
        constants: tensors with equal contents in every run, and their folded contents
        idle: address and bytes of planned memory that these calls never touch
        active: whether tensors point outside of their planned memory
        flow: reads and writes of each tensor, None once all graphs are made
        runs: how often the calls have run, until all graphs are made
        is_scripted: whether graphs stand for stretches of calls
        has_kernels: whether some calls are more than a delegate's call on tensors in place
        postponed: what has to hold for the graphs that could not be made yet
        recordings: how often graphs were made
        single: the calls and places before that, until all graphs are made
    """

    calls: list[Call] = field(default_factory=list[Call])
    places: list[int] = field(default_factory=list[int])
    direct: dict[int, Call] = field(default_factory=dict[int, Call])
    originals: list[tuple[torch.Tensor, torch.Tensor]] = field(default_factory=_pairs)
    constants: list[tuple[torch.Tensor, torch.Tensor]] = field(default_factory=_pairs)
    idle: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    active: bool = False
    flow: Dataflow | None = None
    runs: int = 0
    is_scripted: bool = False
    has_kernels: bool = True
    postponed: Sequence[OnePosition] = ()
    recordings: int = 0
    single: tuple[list[Call], list[int]] | None = None

    def add(self, place: int, call: Call) -> None:
        """Append a call."""
        self.calls.append(call)
        self.places.append(place)

    @property
    def may_record(self) -> bool:
        """Return whether a run may make graphs that are not there yet.

        A graph of attention is made of one position. Whether a run has one is known within it, so
        the last run decides.
        """
        if self.flow is None:
            return False
        items = self.flow.table.items
        return all(one.has_held(items) for one in self.postponed)

    @gc_suspended()
    def record(self, notice: Callable[[int], None]) -> None:
        """Run the calls, and let graphs stand for stretches of them from the next run on.

        Args:
            notice: called with the instruction that runs next
        """
        flow, self.flow = self.flow, None
        assert flow is not None
        single, self.single = self.single or (self.calls, self.places), None
        made = scripted_calls(*single, scope_of(flow), notice)
        self.calls, self.places, self.postponed = made.calls, made.places, made.postponed
        self.is_scripted = any(isinstance(call, Stretch) for call in self.calls)
        self.recordings += 1
        if made.postponed and self.recordings < _MOST_RECORDINGS:
            self.flow, self.single = flow, single

    def activate(self) -> None:
        """Point folded tensors at their contents, and release the memory that only traces need."""
        if self.active:
            return
        for tensor, contents in self.constants:
            tensor.data = contents
        for address, nbytes in self.idle:
            release_idle_pages(address, nbytes)
        self.active = True

    def deactivate(self) -> None:
        """Point every tensor at its planned memory."""
        if self.active:
            self.restore()

    def restore(self) -> None:
        """Point every tensor at its planned memory again."""
        # the first entry of a tensor is its planned memory
        for tensor, original in reversed(self.originals):
            tensor.data = original
        self.active = False
