"""Planned buffers: the memory that the tensors of a method are views of."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable

from runtime.errors import ErrorCode, ExecutionError
from runtime.memory.release import track_buffer
from runtime.platform import current
from schema.program import model as m

_SHARED_FROM = 2  # memory ids from this one on hold state that the methods of a program share


def new_buffer(size: int) -> mmap.mmap | None:
    """Return zeroed memory whose pages are committed when touched, None for a size of 0.

    Raises: ExecutionError MemoryAllocationFailed if the machine has too little memory
    """
    if size <= 0:
        return None
    if size > _machine_bytes():
        raise _failed(size)
    try:
        return track_buffer(current().allocate(size))
    except (OSError, ValueError, OverflowError, MemoryError):
        raise _failed(size) from None


def _failed(size: int) -> ExecutionError:
    return ExecutionError(
        ErrorCode.MemoryAllocationFailed, f"a planned buffer of {size:,} bytes cannot be allocated"
    )


def _machine_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not a POSIX system
        return 1 << 40


class SharedBuffers:
    """The planned buffers that the methods of a program share, each of the largest planned size."""

    def __init__(self, plans: Iterable[m.ExecutionPlan]) -> None:
        self._sizes: dict[int, int] = {}
        self._buffers: dict[int, mmap.mmap | None] = {}
        for plan in plans:
            for number, size in enumerate(plan.non_const_buffer_sizes):
                if number >= _SHARED_FROM:
                    self._sizes[number] = max(size, self._sizes.get(number, 0))

    def buffer(self, number: int) -> mmap.mmap | None:
        """Return a buffer, allocated at the first call."""
        if number not in self._buffers:
            self._buffers[number] = new_buffer(self._sizes[number])
        return self._buffers[number]


class PlannedBuffers:
    """The planned buffers of one method.

    Attributes:
        sizes: bytes of each buffer; entry 0 is reserved
    """

    def __init__(self, plan: m.ExecutionPlan, shared: SharedBuffers) -> None:
        self.sizes = plan.non_const_buffer_sizes
        self._own: dict[int, mmap.mmap | None] = {}
        self._shared = shared

    def place(self, allocation: m.AllocationDetails, nbytes: int) -> tuple[mmap.mmap, int] | None:
        """Return the buffer and byte offset of a tensor, None if it is empty.

        Raises: ExecutionError MemoryAllocationFailed if it exceeds the plan
        """
        number, offset = allocation.memory_id, allocation.offset
        if not 0 < number < len(self.sizes):
            raise ExecutionError(
                ErrorCode.InvalidProgram,
                f"a tensor is planned in buffer {number}, but the plan has {len(self.sizes) - 1}",
            )
        if offset < 0 or offset + nbytes > self.sizes[number]:
            raise ExecutionError(
                ErrorCode.MemoryAllocationFailed,
                f"a tensor of {nbytes:,} bytes at {offset:,} does not fit into planned buffer "
                f"{number} of {self.sizes[number]:,} bytes",
            )
        buffer = self._buffer(number)
        return None if buffer is None or nbytes == 0 else (buffer, offset)

    def _buffer(self, number: int) -> mmap.mmap | None:
        if number >= _SHARED_FROM:
            return self._shared.buffer(number)
        if number not in self._own:
            self._own[number] = new_buffer(self.sizes[number])
        return self._own[number]
