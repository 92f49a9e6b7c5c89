"""The arguments of a delegate call: where they are, and whether kernels may read them there."""

from __future__ import annotations

import ctypes as c
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from runtime.backends.xnnpack.native.process import SPARE
from runtime.memory.release import PlannedRange, can_be_read, ends_in_page, planned_range
from runtime.memory.slots import TensorShapeDynamism, TensorSlot


@dataclass(slots=True)
class CallEnd:
    """An argument of a call.

    Attributes:
        number: its id in the runtime
        order: dimensions, outermost in memory first; None where they are in order
        capacity: bytes that it may ever use at one address
        slot: its tensor
        tensor: that of the slot
        fixed: whether its address and sizes never change
        placed: whether its address never changes, and kernels may read past its end there
        readable: whether the kernels may read past its end, None if that depends on its address
        place: its index among the arguments
        address: at the last setup, 0 before
        room: planned buffer that it was last in, if its own page did not suffice
        roomy: address where the kernels may read it in any of its sizes, 0 if unknown
        spare: memory of its own for an argument that the kernels cannot read in place
    """

    number: int
    slot: TensorSlot
    tensor: torch.Tensor
    fixed: bool
    placed: bool
    readable: bool | None
    order: tuple[int, ...] | None
    capacity: int
    place: int = 0
    address: int = 0
    room: PlannedRange | None = None
    roomy: int = 0
    spare: torch.Tensor | None = None

    def ordered(self, sizes: Sequence[int]) -> Sequence[int]:
        """Return sizes in memory order."""
        return sizes if self.order is None else [sizes[dim] for dim in self.order]

    def span(self) -> tuple[int, int]:
        """Return first and end address of the memory that it may ever use."""
        start = self.tensor.data_ptr()
        return start, start + max(self.capacity, self.tensor.nbytes)

    @property
    def is_settled(self) -> bool:
        """Return whether the kernels may read it in any of its sizes where it is."""
        return self.spare is None and (self.readable is True or self.address == self.roomy)

    def set(self, address: int) -> int:
        """Take its address; return that for the kernels, of other memory if they cannot read it."""
        tensor = self.tensor
        self.address, self.spare = address, None
        if self.readable or address == self.roomy:
            return address
        if self.readable is None and self._is_readable(address, tensor.nbytes):
            return address
        self.spare = torch.empty(tensor.nbytes + SPARE, dtype=torch.uint8)
        return self.spare.data_ptr()

    def _is_readable(self, address: int, nbytes: int) -> bool:
        self.roomy = 0
        largest = max(nbytes, self.capacity)
        if ends_in_page(address, largest, SPARE):
            self.roomy = address
            return True
        if ends_in_page(address, nbytes, SPARE):
            return True
        end = address + nbytes + SPARE
        if self.room is None or not (self.room.start <= address and end <= self.room.end):
            self.room = planned_range(address, nbytes + SPARE)
        if self.room is not None and address + largest + SPARE <= self.room.end:
            self.roomy = address
        return self.room is not None

    def copy(self) -> None:
        """Copy an input to where the kernels can read it."""
        if self.spare is not None:
            c.memmove(self.spare.data_ptr(), self.address, self.tensor.nbytes)

    def copy_back(self) -> None:
        """Copy a result to its tensor."""
        if self.spare is not None:
            c.memmove(self.address, self.spare.data_ptr(), self.tensor.nbytes)


def call_end(number: int, slot: TensorSlot, *, write_only: bool) -> CallEnd:
    """Return an argument.

    Args:
        number: its id in the runtime
        slot: its tensor
        write_only: whether no kernel reads it
    """
    capacity = slot.capacity * slot.tensor.element_size()
    held = (slot.planned or slot.constant) and bool(slot.tensor.data_ptr())
    static = slot.constant or slot.dynamism == TensorShapeDynamism.STATIC
    readable = True if write_only else None
    if readable is None and held:
        readable = can_be_read(slot.tensor.data_ptr(), capacity, SPARE)
    return CallEnd(
        number,
        slot,
        slot.tensor,
        fixed=held and static,
        placed=held and readable is True,
        readable=readable,
        order=None if slot.in_order else slot.dim_order,
        capacity=capacity,
    )
