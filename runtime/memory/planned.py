"""The planned buffers of a method, as real memory that its tensors view into."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable

from runtime.errors import ErrorCode, ExecutionError
from runtime.memory.release import known_arena
from runtime.platform import current
from schema.program import model as m

_SHARED_FROM = 2  # arenas from this number on hold state that methods of a program share


def new_arena(size: int) -> mmap.mmap | None:
    """Return that many zero bytes; pages are taken when they are touched. None for no bytes.

    Raises: ExecutionError MemoryAllocationFailed if the machine has not that many
    """
    if size <= 0:
        return None
    if size > _machine_bytes():
        raise _failed(size)
    try:
        return known_arena(current().allocate(size))
    except (OSError, ValueError, OverflowError, MemoryError):
        raise _failed(size) from None


def _failed(size: int) -> ExecutionError:
    return ExecutionError(
        ErrorCode.MemoryAllocationFailed, f"a planned buffer of {size:,} bytes cannot be allocated"
    )


def _machine_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not a POSIX machine
        return 1 << 40


class SharedArenas:
    """The planned buffers that all methods of a program see, as large as any of them needs."""

    def __init__(self, plans: Iterable[m.ExecutionPlan]) -> None:
        self._sizes: dict[int, int] = {}
        self._made: dict[int, mmap.mmap | None] = {}
        for plan in plans:
            for number, size in enumerate(plan.non_const_buffer_sizes):
                if number >= _SHARED_FROM:
                    self._sizes[number] = max(size, self._sizes.get(number, 0))

    def arena(self, number: int) -> mmap.mmap | None:
        """Return a buffer, made when it is first asked for."""
        if number not in self._made:
            self._made[number] = new_arena(self._sizes[number])
        return self._made[number]


class Arenas:
    """The planned buffers of one method.

    Attributes:
        sizes: bytes of each buffer; entry 0 is reserved
    """

    def __init__(self, plan: m.ExecutionPlan, shared: SharedArenas) -> None:
        self.sizes = plan.non_const_buffer_sizes
        self._own: dict[int, mmap.mmap | None] = {}
        self._shared = shared

    def place(self, allocation: m.AllocationDetails, nbytes: int) -> tuple[mmap.mmap, int] | None:
        """Return the buffer and byte offset of a tensor, None for one without bytes.

        Raises: ExecutionError MemoryAllocationFailed if it does not lie inside the plan
        """
        number, offset = allocation.memory_id, allocation.offset
        if not 0 < number < len(self.sizes):
            raise ExecutionError(
                ErrorCode.InvalidProgram,
                f"a tensor is planned in buffer {number}; there are {len(self.sizes) - 1}",
            )
        if offset < 0 or offset + nbytes > self.sizes[number]:
            raise ExecutionError(
                ErrorCode.MemoryAllocationFailed,
                f"a tensor of {nbytes:,} bytes at {offset:,} does not fit into planned buffer "
                f"{number} of {self.sizes[number]:,} bytes",
            )
        arena = self._arena(number)
        return None if arena is None or nbytes == 0 else (arena, offset)

    def _arena(self, number: int) -> mmap.mmap | None:
        if number >= _SHARED_FROM:
            return self._shared.arena(number)
        if number not in self._own:
            self._own[number] = new_arena(self.sizes[number])
        return self._own[number]
