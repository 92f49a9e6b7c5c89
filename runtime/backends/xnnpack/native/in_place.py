"""Delegate calls without messages and copies: the kernels read and write planned memory."""

from __future__ import annotations

import ctypes as c
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any, cast

import torch

from runtime.backends.xnnpack.model import Value
from runtime.backends.xnnpack.native.call_ends import CallEnd, call_end
from runtime.backends.xnnpack.native.child import MAX_DIMS, KernelModel
from runtime.backends.xnnpack.native.local import LocalKernels
from runtime.backends.xnnpack.native.process import LibraryRefusedError
from runtime.backends.xnnpack.native.room import largest_bytes
from runtime.backends.xnnpack.native.shared_values import KernelRuntime
from runtime.backends.xnnpack.representation import STORED
from runtime.memory.slots import TensorSlot

_MOST_SHAPES = 256  # of a call, whose results are known without asking the library again

_MOST_ROOM = 1 << 28  # bytes; the library writes zeros into all of its working memory

_shape_of = attrgetter("shape")
_address_of = torch.Tensor.data_ptr
_set_data: Any = cast("Any", torch.Tensor.data).__set__

Prepared = Callable[[], int]
"""A function of the library with its arguments, converted once; returns its status."""
Refused = Callable[[Sequence[torch.Tensor], LibraryRefusedError], Exception]
"""Returns the error to raise for inputs that the library refuses."""
Result = tuple[CallEnd, tuple[int, ...], torch.Tensor | None]
"""A result whose sizes may change, its sizes, and its memory in them if it is at one address."""
Taker = tuple[torch.Tensor, tuple[int, ...] | None, Any, Prepared]
"""An input, its order of dimensions, its sizes in memory order, and what lets the library take
them.
"""


@dataclass(slots=True)
class KnownSizes:
    """Sizes of inputs that a call has had.

    Attributes:
        results: in these sizes; what they need to be set faster is made when they come again
        steps: what prepares the call for them where all else is as before, once they came twice
    """

    results: list[Result]
    steps: Sequence[Callable[[], int | None]] = ()


class InPlaceCall:
    """A call of a partition on tensors of a method, by the library in this process.

    Sizes that have changed are reshaped by the library; addresses are set when they have changed.

    Args:
        kernels: the library
        runtime: of the partition, which other calls and other ways to run it share
        inputs: in the order of the payload
        outputs: in the order of the payload
        refused: returns the error for inputs that the library refuses
        makes_room: whether the library takes memory for the largest sizes at once
    """

    def __init__(
        self,
        kernels: LocalKernels,
        runtime: KernelRuntime,
        inputs: Sequence[CallEnd],
        outputs: Sequence[CallEnd],
        refused: Refused,
        *,
        makes_room: bool = True,
    ) -> None:
        self._lock = kernels.lock
        self._runtime = runtime
        self._refused = refused
        self._model: KernelModel = kernels.model(runtime.handle)
        self._inputs = list(inputs)
        self._outputs = list(outputs)
        ends = self._ends = [*self._inputs, *self._outputs]
        self._by_writing = [*self._outputs, *self._inputs]
        self._moving = [end for end in ends if not end.placed]
        self._moving_tensors = [end.tensor for end in self._moving]
        self._sized = [end.tensor for end in self._inputs if not end.fixed]
        # as an array of External: id, address
        self._external = (c.c_uint64 * max(2, 2 * len(ends)))()
        for place, end in enumerate(ends):
            end.place = place
            self._external[2 * place] = end.number
            self._external[2 * place + 1] = end.set(end.tensor.data_ptr())
        self._bind_library()
        self._copied: list[CallEnd] = []
        self._copied_back: list[CallEnd] = []
        self._addresses: list[int] = []
        self._is_settled = False  # whether any sizes may be used at these addresses
        self._needs_room = makes_room and bool(self._sized)
        self._now: KnownSizes | None = None  # that were set last
        self._known: dict[tuple[torch.Size, ...], KnownSizes] = {}

    def _bind_library(self) -> None:
        """Prepare the library's functions: converting an argument takes as long as most of them."""
        library: Any = self._model.library.kernels
        # by index each function is a new one, without the types that convert its arguments
        handle = c.c_void_p(self._model.handle.value)
        self._invoke: Prepared = partial(library["xnn_invoke_runtime"], handle)
        plan = partial(library["xnn_reshape_runtime"], handle)
        self._reshape: Prepared = partial(_planned, self._model, plan)
        count = c.c_size_t(len(self._ends))
        self._setup: Prepared = partial(
            library["xnn_setup_runtime_v2"], handle, count, self._external
        )
        take, give = library["xnn_reshape_external_value"], library["xnn_get_external_value_shape"]
        self._rank, self._found = c.c_size_t(), (c.c_size_t * MAX_DIMS)()
        self._takers: list[Taker] = []
        for end in self._inputs:
            rank = len(end.slot.dim_order)
            sizes = (c.c_size_t * max(1, rank))()
            bound = partial(take, handle, c.c_uint32(end.number), c.c_size_t(rank), sizes)
            self._takers.append((end.tensor, end.order, sizes, bound))
        pairs = zip(self._inputs, self._takers, strict=True)
        self._resized = [one for end, one in pairs if not end.fixed]
        self._givers: list[tuple[CallEnd, Prepared]] = [
            (end, partial(give, handle, c.c_uint32(end.number), c.byref(self._rank), self._found))
            for end in self._outputs
        ]

    def inputs(self) -> list[torch.Tensor]:
        """Return the inputs in memory order."""
        return [end.tensor.permute(end.slot.dim_order) for end in self._inputs]

    def run(self) -> bool:
        """Run the call; return whether it could be run in place.

        Raises: ExecutionError for sizes that the library or the plan does not allow
        """
        with self._lock:
            if not self._prepare():
                return False
            for end in self._copied:
                end.copy()
            status = self._invoke()
            for end in self._copied_back:
                end.copy_back()
        if status:
            raise self._error("xnn_invoke_runtime", status)
        return True

    def run_timed(self) -> tuple[int, list[int]] | None:
        """Run the call; return its start and microseconds of each operator, None as `run`."""
        with self._lock:
            if not self._prepare():
                return None
            start = time.perf_counter_ns()
            for end in self._copied:
                end.copy()
            status = self._invoke()
            for end in self._copied_back:
                end.copy_back()
            if status:
                raise self._error("xnn_invoke_runtime", status)
            return start, self._model.times()

    def _prepare(self) -> bool:
        """Reshape and set addresses where they have changed; return False for shared memory."""
        runtime, given = self._runtime, tuple(map(_shape_of, self._sized))
        known = self._known.get(given)
        if runtime.user is self and self._have_stayed():
            if known is not None and known is self._now and self._have_sizes():
                return True
            if self._is_settled and (known is None or known.steps):
                runtime.user = None  # until all of it is set nobody may rely on it
                self._now = self._take_new(given) if known is None else self._repeat(known)
                runtime.user = self
                return True
        return self._prepare_anew(given, known)

    def _repeat(self, known: KnownSizes) -> KnownSizes:
        """Prepare the call for sizes that came twice, where all else is as before."""
        for step in known.steps:
            if status := step():
                raise self._error(cast("Any", step).func.__name__, status)
        return known

    def _take_new(self, given: tuple[torch.Size, ...]) -> KnownSizes:
        """Prepare the call for sizes that are new, where all else is as before."""
        self._now = None
        self._take_sizes(self._resized)
        known = self._ask(given)
        if status := self._setup():
            raise self._error("xnn_setup_runtime_v2", status)
        return known

    def _prepare_anew(self, given: tuple[torch.Size, ...], known: KnownSizes | None) -> bool:
        runtime = self._runtime
        is_own = runtime.user is self
        runtime.take_over()
        if self._needs_room:
            self._make_room()
        if known is None or known is not self._now or not is_own:
            self._now = None  # until all are taken
            self._take_sizes(self._resized if is_own else self._takers)
            self._now = self._ask(given) if known is None else known
        if known is not None:
            self._set_results(known)
        if not (self._is_settled and self._have_stayed()) and not self._take_addresses():
            return False
        if status := self._setup():
            raise self._error("xnn_setup_runtime_v2", status)
        if known is not None and self._is_settled and not known.steps:
            known.steps = self._steps_of(known)
        runtime.user = self
        return True

    def _set_results(self, known: KnownSizes) -> None:
        """Give the results the sizes that they had before."""
        for place, (end, sizes, held) in enumerate(known.results):
            if held is not None:
                end.tensor.data = held  # a quarter of the time of a resize
                continue
            end.slot.resize(sizes)
            if end.placed and end.slot.planned:
                known.results[place] = end, sizes, end.tensor.detach()

    def _steps_of(self, known: KnownSizes) -> Sequence[Callable[[], int | None]]:
        """Return what prepares the call for its current sizes; nothing if results may move."""
        steps: list[Callable[[], int | None]] = []
        for _, _, sizes, take in self._resized:
            *given, _ = cast("Any", take).args
            steps.append(partial(cast("Any", take).func, *given, type(sizes)(*sizes)))
        steps.append(self._reshape)
        for end, _, held in known.results:
            if held is None:
                return ()
            steps.append(partial(_set_data, end.tensor, held))
        return [*steps, self._setup]

    def _have_stayed(self) -> bool:
        """Return whether all arguments are at the addresses that were set."""
        moving = self._moving_tensors
        return not moving or list(map(_address_of, moving)) == self._addresses

    def _take_sizes(self, takers: Sequence[Taker]) -> None:
        """Let the library take the sizes of inputs."""
        for tensor, order, sizes, take in takers:
            shape = tensor.shape
            if shape:
                sizes[:] = shape if order is None else [shape[dim] for dim in order]
            if status := take():
                raise self._error("xnn_reshape_external_value", status)
        if status := self._reshape():
            raise self._error("xnn_reshape_runtime", status)

    def _have_sizes(self) -> bool:
        """Return whether the results have the sizes that were set."""
        for end, sizes, _ in () if self._now is None else self._now.results:
            if end.tensor.shape != sizes:
                return False
        return True

    def _take_addresses(self) -> bool:
        """Set the address of each argument; return False for tensors that share memory."""
        addresses = list(map(_address_of, self._moving_tensors))
        self._is_settled = False
        is_apart = self._are_apart([end.span() for end in self._by_writing])
        exact = [(end.tensor.data_ptr(), end.tensor.nbytes) for end in self._by_writing]
        if not all(start and nbytes for start, nbytes in exact):
            return False
        if not is_apart and not self._are_apart([(low, low + size) for low, size in exact]):
            return False
        for end, address in zip(self._moving, addresses, strict=True):
            self._external[2 * end.place + 1] = end.set(address)
        self._copied = [end for end in self._inputs if end.spare is not None]
        self._copied_back = [end for end in self._outputs if end.spare is not None]
        self._addresses = addresses
        self._is_settled = is_apart and all(end.is_settled for end in self._moving)
        return True

    def _are_apart(self, spans: Sequence[tuple[int, int]]) -> bool:
        """Return whether no result, which come first, shares memory with another argument."""
        return not any(
            low < end and start < high
            for number, (low, high) in enumerate(spans[: len(self._outputs)])
            for start, end in spans[number + 1 :]
        )

    def _make_room(self) -> None:
        """Let the library take its working memory for the largest sizes of the plan.

        Where it grows, the library prepares all runtimes again that share it: with a size that
        grows in each run, that would be all of them for each of them.
        """
        self._needs_room = False
        for end, (_, _, sizes, take) in zip(self._inputs, self._takers, strict=True):
            sizes[: len(end.slot.sizes)] = end.ordered(end.slot.sizes)
            take()
        if not self._reshape():  # sizes that kernels refuse are no error until given
            self._setup()

    def _ask(self, given: tuple[torch.Size, ...]) -> KnownSizes:
        """Return what is to be known of new sizes, asking the library."""
        results: list[Result] = []
        for end, give in self._givers:
            found = self._result(end, give)
            if not end.fixed:
                results.append(found)
        if len(self._known) >= _MOST_SHAPES:
            del self._known[next(iter(self._known))]
        known = self._known[given] = KnownSizes(results)
        return known

    def _result(self, end: CallEnd, give: Prepared) -> Result:
        """Give a result its sizes; return what is to be known of them.

        Raises: ExecutionError for sizes that the plan does not allow
        """
        if status := give():
            raise self._error("xnn_get_external_value_shape", status)
        order, rank = end.slot.dim_order, self._rank.value
        if len(order) != rank:
            raise self._refused(
                self.inputs(),
                LibraryRefusedError(
                    f"the result has {rank} dimensions, its tensor has {len(order)}", None
                ),
            )
        found = tuple(self._found[:rank])
        if end.order is not None:
            found = tuple([found[order.index(dim)] for dim in range(rank)])
        end.slot.resize(found)
        return end, found, None

    def _error(self, name: str, status: int) -> Exception:
        error = LibraryRefusedError(KernelModel.status(name, status), None)
        return self._refused(self.inputs(), error)


def in_place_call(
    kernels: LocalKernels,
    runtime: KernelRuntime,
    inputs: Sequence[tuple[Value, TensorSlot]],
    outputs: Sequence[tuple[Value, TensorSlot]],
    read: Collection[int],
    refused: Refused,
) -> InPlaceCall | None:
    """Return a call on the tensors of a method, None where they have to be converted.

    Args:
        kernels: the library
        runtime: of the partition
        inputs: value and tensor of each input
        outputs: value and tensor of each result
        read: values that nodes of the partition read
        refused: returns the error for inputs that the library refuses
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
        [call_end(numbers[value.ident], slot, write_only=False) for value, slot in inputs],
        [
            call_end(numbers[value.ident], slot, write_only=value.ident not in read)
            for value, slot in outputs
        ],
        refused,
        makes_room=largest_bytes(runtime.plan, inputs) <= _MOST_ROOM,
    )


def _planned(model: KernelModel, plan: Prepared) -> int:
    """Return the status of planning memory, also where sizes known before are set again."""
    return model.planned(plan())
