"""Values in shared memory, and the runtimes that use them."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import torch

from runtime.backends.xnnpack.model import PartitionPlan, PayloadNode, Value
from runtime.backends.xnnpack.native.c_calls import library_calls
from runtime.backends.xnnpack.native.constants import ConstantStore
from runtime.backends.xnnpack.native.process import ALIGNMENT, SPARE, Kernels, SharedRegion
from runtime.backends.xnnpack.representation import STORED
from schema.dtypes.scalar_type import numel

INPUT, OUTPUT = 1, 2
_PROFILING = 8  # XNN_FLAG_BASIC_PROFILING
_MOST_UNUSED = 8  # regions kept before unused ones are freed, since freeing costs a setup


@dataclass(frozen=True, slots=True)
class SharedValue:
    """A value in shared memory.

    Attributes:
        region: shared memory
        offset: in the region
        tensor: view of the value
    """

    region: SharedRegion
    offset: int
    tensor: torch.Tensor


class SharedValues:
    """Values of a partition in shared memory, each in its latest shape."""

    def __init__(self, process: Kernels) -> None:
        self._process = process
        self._regions: list[SharedRegion] = []
        self.close = weakref.finalize(self, _discard, process, self._regions)
        """Frees the memory, as does the end of this object."""
        self.held: dict[int, SharedValue] = {}

    def reserve(self, requested: Iterable[tuple[Value, Sequence[int]]]) -> None:
        """Allocate memory for values whose shape has changed."""
        new: list[tuple[Value, Sequence[int], int]] = []
        size = 0
        for value, shape in requested:
            old = self.held.get(value.ident)
            if old is None or tuple(old.tensor.shape) != tuple(shape):
                new.append((value, shape, size))
                nbytes = numel(tuple(shape)) * STORED[value.datatype].itemsize
                size += -(-(nbytes + SPARE) // ALIGNMENT) * ALIGNMENT
        if not new:
            return
        region = self._process.region(size)
        self._regions.append(region)
        for value, shape, offset in new:
            tensor = region.tensor(STORED[value.datatype], shape, offset)
            self.held[value.ident] = SharedValue(region, offset, tensor)
        self._drop_unused()

    def _drop_unused(self) -> None:
        used = {held.region.number for held in self.held.values()}
        unused = [region for region in self._regions if region.number not in used]
        if len(unused) >= _MOST_UNUSED:
            # A runtime that still points there gets new pointers (setup) before it runs.
            self._process.discard([], [one.number for one in unused])
            self._regions[:] = [one for one in self._regions if one.number in used]


def _discard(process: Kernels, regions: list[SharedRegion]) -> None:
    process.discard([], [region.number for region in regions])


class KernelRuntime:
    """A runtime in the other process, over shared values.

    Attributes:
        plan: of the partition
        numbers: id of each argument, by value
        user: who has set the current shapes and addresses

    Args:
        nodes: to run
        ends: by value, id and INPUT or OUTPUT

    Raises: LibraryRefusedError for nodes that the library refuses
    """

    def __init__(
        self,
        process: Kernels,
        plan: PartitionPlan,
        nodes: Sequence[PayloadNode],
        ends: dict[int, tuple[int, int]],
        store: ConstantStore,
    ) -> None:
        self._process = process
        self.plan = plan
        self.handle = process.number()
        self.close = weakref.finalize(self, process.discard, [self.handle], [])
        """Frees the runtime, as does the end of this object."""
        built = library_calls(plan, nodes, ends, store.place)
        process.ask("create", handle=self.handle, flags=_PROFILING, **built.question())
        values = plan.values
        self._inputs = [(n, values[at]) for at, (n, side) in ends.items() if side == INPUT]
        self._outputs = [(n, values[at]) for at, (n, side) in ends.items() if side == OUTPUT]
        self.numbers = {ident: number for ident, (number, _) in ends.items()}
        self.user: object | None = None
        self._shapes: list[tuple[int, ...]] | None = None
        self._places: list[Any] = []

    def take_over(self) -> None:
        """Forget shapes and addresses, since another user sets them."""
        self.user = None
        self._shapes, self._places = None, []

    def prepare(
        self,
        shared: SharedValues,
        shapes: list[tuple[int, ...]],
        elsewhere: Mapping[int, int] = MappingProxyType({}),
    ) -> None:
        """Reshape to the shapes of the inputs, and set the addresses of the arguments.

        Args:
            shared: the arguments
            shapes: of the inputs
            elsewhere: by value, addresses of arguments in other memory

        Raises: LibraryRefusedError for shapes that the kernels refuse
        """
        if self.user is not self:
            self.take_over()
            self.user = self
        if self._shapes != shapes:
            self._shapes = None
            built = self._process.ask(
                "shape",
                handle=self.handle,
                inputs=[(n, shape) for (n, _), shape in zip(self._inputs, shapes, strict=True)],
                outputs=[number for number, _ in self._outputs],
            )["shapes"]
            ends = [value for _, value in (*self._inputs, *self._outputs)]
            shared.reserve(zip(ends, [*shapes, *built], strict=True))
            self._shapes, self._places = shapes, []
        places = [
            (n, _place(shared.held[value.ident], elsewhere.get(value.ident)))
            for n, value in (*self._inputs, *self._outputs)
        ]
        if places != self._places:
            self._process.ask("setup", handle=self.handle, places=places)
            self._places = places

    def prepare_held(self, shared: SharedValues) -> None:
        """Reshape to the current shapes of the inputs."""
        shapes = [tuple(shared.held[value.ident].tensor.shape) for _, value in self._inputs]
        self.prepare(shared, shapes)

    def invoke(self, *, profile: bool = False) -> dict[str, Any]:
        """Run; return start, end, and times of operators if requested."""
        return self._process.ask("invoke", handle=self.handle, profile=profile)

    def names(self) -> list[str]:
        """Return the library's name of each operator, in the order of their times."""
        return self._process.ask("names", handle=self.handle)["names"]


def _place(held: SharedValue, address: int | None) -> list[int]:
    return [held.region.number, held.offset] if address is None else [0, address]
