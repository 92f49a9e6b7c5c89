"""Delegate calls without messages and copies: the kernels read and write planned memory."""

from __future__ import annotations

import ctypes as c
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from runtime.backends.xnnpack.model import Value
from runtime.backends.xnnpack.native.child import MAX_DIMS, KernelModel
from runtime.backends.xnnpack.native.local import LocalKernels
from runtime.backends.xnnpack.native.process import SPARE, LibraryRefusedError
from runtime.backends.xnnpack.native.shared_values import KernelRuntime
from runtime.backends.xnnpack.representation import STORED
from runtime.memory.release import PlannedRange, can_be_read, ends_in_page, planned_range
from runtime.memory.slots import TensorShapeDynamism, TensorSlot

_MOST_SHAPES = 256  # of a call, whose results are known without asking the library again


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
        shape: at the last setup
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
    shape: Sequence[int] = ()
    room: PlannedRange | None = None
    roomy: int = 0
    spare: torch.Tensor | None = None

    def taken(self, sizes: Sequence[int]) -> tuple[int, int, Any]:
        """Return its id, the number of dimensions, and sizes in memory order for the library."""
        ordered = sizes if self.order is None else [sizes[dim] for dim in self.order]
        return self.number, len(sizes), (c.c_size_t * max(1, len(sizes)))(*ordered)

    def span(self) -> tuple[int, int]:
        """Return first and end address of the memory that it may ever use."""
        start = self.tensor.data_ptr()
        return start, start + max(self.capacity, self.tensor.nbytes)

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


@dataclass(frozen=True, slots=True)
class KnownSizes:
    """Sizes that a call has had.

    Attributes:
        inputs: with its sizes, and what the library takes: id, dimensions, sizes in memory order
        results: with its sizes, and its planned memory in them if that is at one address
    """

    inputs: Sequence[tuple[CallEnd, torch.Size, tuple[int, int, Any]]]
    results: Sequence[tuple[CallEnd, tuple[int, ...], torch.Tensor | None]]


class InPlaceCall:
    """A call of a partition on tensors of a method, by the library in this process.

    Sizes that have changed are reshaped by the library; addresses are set when they have changed.

    Args:
        kernels: the library
        runtime: of the partition, which other calls and other ways to run it share
        inputs: in the order of the payload
        outputs: in the order of the payload
    """

    def __init__(
        self,
        kernels: LocalKernels,
        runtime: KernelRuntime,
        inputs: Sequence[CallEnd],
        outputs: Sequence[CallEnd],
    ) -> None:
        self._kernels = kernels
        self._lock = kernels.lock
        self._runtime = runtime
        self._model: KernelModel = kernels.model(runtime.handle)
        library = self._model.library.kernels
        self._invoke: Any = library.xnn_invoke_runtime
        self._setup: Any = library.xnn_setup_runtime_v2
        self._reshape_value: Any = library.xnn_reshape_external_value
        self._reshape: Any = library.xnn_reshape_runtime
        self._shape_of: Any = library.xnn_get_external_value_shape
        self._handle = self._model.handle
        self._inputs = list(inputs)
        self._outputs = list(outputs)
        ends = self._ends = [*self._inputs, *self._outputs]
        self._by_writing = [*self._outputs, *self._inputs]
        self._count = len(ends)
        self._apart_at: list[int] | None = None
        self._are_copied = False
        self._needs_room = any(not end.fixed for end in self._inputs)
        self._watched = [end for end in ends if not end.fixed]
        self._moving = [end for end in self._watched if not end.placed]
        # as an array of External: id, address
        self._external = (c.c_uint64 * max(2, 2 * len(ends)))()
        for place, end in enumerate(ends):
            end.place = place
            self._external[2 * place] = end.number
            self._external[2 * place + 1] = end.set(end.tensor.data_ptr())
            end.shape = end.tensor.shape
        self._copied = [end for end in self._inputs if end.spare is not None]
        self._copied_back = [end for end in self._outputs if end.spare is not None]
        self._now: KnownSizes | None = None
        self._known: dict[tuple[torch.Size, ...], KnownSizes] = {}
        self._read = [end.tensor for end in self._inputs]

    def inputs(self) -> list[torch.Tensor]:
        """Return the inputs in memory order."""
        return [end.tensor.permute(end.slot.dim_order) for end in self._inputs]

    def run(self) -> bool:
        """Run the call; return whether it could be run in place.

        Raises: LibraryRefusedError with the status of the library; ExecutionError for results that
            the plan does not allow
        """
        with self._lock:
            if not self._is_prepared() and not self._prepare():
                return False
            for end in self._copied:
                end.copy()
            status = self._invoke(self._handle)
            for end in self._copied_back:
                end.copy_back()
        if status:
            raise _refused("xnn_invoke_runtime", status)
        return True

    def run_timed(self) -> tuple[int, list[int]] | None:
        """Run the call; return its start and microseconds of each operator, None as `run`."""
        with self._lock:
            if not self._is_prepared() and not self._prepare():
                return None
            start = time.perf_counter_ns()
            for end in self._copied:
                end.copy()
            status = self._invoke(self._handle)
            for end in self._copied_back:
                end.copy_back()
            if status:
                raise _refused("xnn_invoke_runtime", status)
            return start, self._model.times()

    def _is_prepared(self) -> bool:
        if self._runtime.user is not self:
            return False
        for end in self._watched:
            if end.tensor.shape != end.shape:
                return False
        for end in self._moving:  # noqa: SIM110 - a generator takes longer than the loop
            if end.tensor.data_ptr() != end.address:
                return False
        return True

    def _prepare(self) -> bool:
        """Reshape and set addresses; return False for tensors that share memory."""
        runtime = self._runtime
        before = self._now if runtime.user is self else None
        runtime.take_over()  # until all of it is set nobody may rely on it
        if self._needs_room:
            self._make_room()
            before = None
        given = tuple([tensor.shape for tensor in self._read])
        known = self._known.get(given)
        if known is None or known is not before:
            known = self._take_sizes(given, known, every=before is None)
        for end, sizes, held in known.results:
            if end.tensor.shape != sizes:
                if held is None:
                    end.slot.resize(sizes)
                else:
                    end.tensor.data = held  # a quarter of the time of a resize
            end.shape = sizes
        if (self._moving or self._apart_at is None) and not self._take_addresses():
            return False
        status = self._setup(self._handle, self._count, self._external)
        if status:
            raise _refused("xnn_setup_runtime_v2", status)
        runtime.user = self
        return True

    def _take_addresses(self) -> bool:
        """Note the address of each argument; return False for tensors that share memory."""
        moving = self._moving
        addresses = [end.tensor.data_ptr() for end in moving]
        if self._apart_at != addresses and not self._are_apart():
            return False
        copies = self._are_copied
        for end, address in zip(moving, addresses, strict=True):
            if address == end.address and (end.readable or address == end.roomy):
                continue
            self._external[2 * end.place + 1] = end.set(address)
            copies = copies or end.spare is not None
        if copies:
            self._copied = [end for end in self._inputs if end.spare is not None]
            self._copied_back = [end for end in self._outputs if end.spare is not None]
            self._are_copied = bool(self._copied or self._copied_back)
        return True

    def _make_room(self) -> None:
        """Let the library take its working memory for the largest sizes of the plan.

        Where it grows, the library prepares all runtimes again that share it: with a size that
        grows in each run, that would be all of them for each of them.
        """
        self._needs_room = False
        for end in self._inputs:
            self._reshape_value(self._handle, *end.taken(end.slot.sizes))
        if not self._reshape(self._handle):  # sizes that kernels refuse are no error until given
            self._setup(self._handle, len(self._ends), self._external)

    def _take_sizes(
        self, given: tuple[torch.Size, ...], known: KnownSizes | None, *, every: bool
    ) -> KnownSizes:
        """Let the library take the sizes of the inputs, and return those of the results.

        Args:
            given: of each input
            known: what is known of them, None for sizes that are new
            every: whether to give those that have not changed since the last setup, too
        """
        self._now = None
        inputs = self._rows(given) if known is None else known.inputs
        for end, sizes, taken in inputs:
            if every or end.shape != sizes:
                status = self._reshape_value(self._handle, *taken)
                if status:
                    raise _refused("xnn_reshape_external_value", status)
                end.shape = sizes
        status = self._reshape(self._handle)
        if status:
            raise _refused("xnn_reshape_runtime", status)
        if known is None:
            known = KnownSizes(inputs, [self._result(end) for end in self._outputs])
            if len(self._known) >= _MOST_SHAPES:
                del self._known[next(iter(self._known))]
            self._known[given] = known
        self._now = known
        return known

    def _rows(
        self, given: tuple[torch.Size, ...]
    ) -> list[tuple[CallEnd, torch.Size, tuple[int, int, Any]]]:
        pairs = zip(self._inputs, given, strict=True)
        return [(end, sizes, end.taken(sizes)) for end, sizes in pairs]

    def _result(self, end: CallEnd) -> tuple[CallEnd, tuple[int, ...], torch.Tensor | None]:
        """Give a result its sizes; return what is to be known of them.

        Raises: ExecutionError for sizes that the plan does not allow
        """
        rank, sizes = c.c_size_t(), (c.c_size_t * MAX_DIMS)()
        status = self._shape_of(self._handle, end.number, c.byref(rank), sizes)
        if status:
            raise _refused("xnn_get_external_value_shape", status)
        order = end.slot.dim_order
        if len(order) != rank.value:
            raise LibraryRefusedError(
                f"the result has {rank.value} dimensions, its tensor has {len(order)}", None
            )
        found = tuple(sizes[: rank.value])
        if end.order is not None:
            found = tuple([found[order.index(dim)] for dim in range(len(order))])
        end.slot.resize(found)
        return end, found, end.tensor.detach() if end.placed and end.slot.planned else None

    def _are_apart(self) -> bool:
        """Return whether no result shares memory with another argument, and none is empty."""
        addresses = [end.tensor.data_ptr() for end in self._moving]
        if not all(end.tensor.data_ptr() and end.tensor.nbytes for end in self._ends):
            return False
        if self._disjoint([end.span() for end in self._by_writing]):
            self._apart_at = addresses
            return True
        exact = [(end.tensor.data_ptr(), end.tensor.nbytes) for end in self._by_writing]
        return self._disjoint([(start, start + nbytes) for start, nbytes in exact])

    def _disjoint(self, spans: Sequence[tuple[int, int]]) -> bool:
        return not any(
            low < end and start < high
            for number, (low, high) in enumerate(spans[: len(self._outputs)])
            for start, end in spans[number + 1 :]
        )


def in_place_call(
    kernels: LocalKernels,
    runtime: KernelRuntime,
    inputs: Sequence[tuple[Value, TensorSlot]],
    outputs: Sequence[tuple[Value, TensorSlot]],
    read: Collection[int],
) -> InPlaceCall | None:
    """Return a call on the tensors of a method, None where they have to be converted.

    Args:
        kernels: the library
        runtime: of the partition
        inputs: value and tensor of each input
        outputs: value and tensor of each result
        read: values that nodes of the partition read
    """
    for value, slot in (*inputs, *outputs):
        fits = slot.tensor.dtype is STORED[value.datatype]
        if not fits or len(slot.dim_order) != len(value.dims) or slot.viewed is not None:
            return None
    if any(slot.read_only for _, slot in outputs):
        return None
    numbers = runtime.numbers
    return InPlaceCall(
        kernels,
        runtime,
        [_end(numbers[value.ident], slot, write_only=False) for value, slot in inputs],
        [
            _end(numbers[value.ident], slot, write_only=value.ident not in read)
            for value, slot in outputs
        ],
    )


def _end(number: int, slot: TensorSlot, *, write_only: bool) -> CallEnd:
    capacity = slot.capacity * slot.tensor.element_size()
    held = (slot.planned or slot.constant) and bool(slot.tensor.data_ptr())
    static = slot.constant or slot.dynamism == TensorShapeDynamism.STATIC
    readable = True if write_only else None
    if readable is None and held:
        readable = can_be_read(slot.tensor.data_ptr(), capacity, SPARE)
    in_order = slot.dim_order == tuple(range(len(slot.dim_order)))
    return CallEnd(
        number,
        slot,
        slot.tensor,
        fixed=held and static,
        placed=held and readable is True,
        readable=readable,
        order=None if in_order else slot.dim_order,
        capacity=capacity,
    )


def _refused(name: str, status: int) -> LibraryRefusedError:
    return LibraryRefusedError(KernelModel.status(name, status), None)
