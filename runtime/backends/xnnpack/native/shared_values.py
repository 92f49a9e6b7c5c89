"""Values in memory that both processes have, and the runtimes that work on them."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import torch

from runtime.backends.xnnpack.model import Node, Plan, Value
from runtime.backends.xnnpack.native.c_calls import recipe
from runtime.backends.xnnpack.native.constants import ConstantStore
from runtime.backends.xnnpack.native.process import ALIGNMENT, SPARE, Kernels, Region
from runtime.backends.xnnpack.representation import STORED
from schema.dtypes.scalar_type import numel

INPUT, OUTPUT = 1, 2
_PROFILING = 8
_MOST_UNUSED = 8


@dataclass(frozen=True, slots=True)
class Held:
    """A value in shared memory.

    Attributes:
        region: which memory
        offset: where in it
        tensor: the value as a tensor over it
    """

    region: Region
    offset: int
    tensor: torch.Tensor


class SharedValues:
    """Values of a partition in shared memory, each with the shape it was last given."""

    def __init__(self, process: Kernels) -> None:
        self._process = process
        self._regions: list[Region] = []
        self.close = weakref.finalize(self, _discard, process, self._regions)
        """Lets go of the memory; so does the end of this object."""
        self.held: dict[int, Held] = {}

    def reserve(self, wanted: Iterable[tuple[Value, Sequence[int]]]) -> None:
        """Give memory to those values that have none of the shape they need."""
        new: list[tuple[Value, Sequence[int], int]] = []
        size = 0
        for value, shape in wanted:
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
            self.held[value.ident] = Held(region, offset, tensor)
        self._drop_unused()

    def _drop_unused(self) -> None:
        used = {held.region.number for held in self.held.values()}
        unused = [region for region in self._regions if region.number not in used]
        if len(unused) >= _MOST_UNUSED:
            # A runtime that still points there is set up anew before it runs again.
            self._process.discard([], [one.number for one in unused])
            self._regions[:] = [one for one in self._regions if one.number in used]


def _discard(process: Kernels, regions: list[Region]) -> None:
    process.discard([], [region.number for region in regions])


class KernelRuntime:
    """A runtime in the other process, over shared values.

    Args:
        nodes: what it runs
        ends: what goes in and out: INPUT or OUTPUT, by value; numbers are given in this order
            unless the payload has them

    Raises: RefusedError for what the library refuses
    """

    def __init__(
        self,
        process: Kernels,
        plan: Plan,
        nodes: Sequence[Node],
        ends: dict[int, tuple[int, int]],
        store: ConstantStore,
    ) -> None:
        self._process = process
        self.handle = process.number()
        self.close = weakref.finalize(self, process.discard, [self.handle], [])
        """Lets go of the runtime; so does the end of this object."""
        made = recipe(plan, nodes, ends, store.place)
        process.ask("create", handle=self.handle, flags=_PROFILING, **made.question())
        values = plan.values
        self._inputs = [(n, values[at]) for at, (n, side) in ends.items() if side == INPUT]
        self._outputs = [(n, values[at]) for at, (n, side) in ends.items() if side == OUTPUT]
        self._shapes: list[tuple[int, ...]] | None = None
        self._places: list[Any] = []

    def prepare(
        self,
        shared: SharedValues,
        shapes: list[tuple[int, ...]],
        elsewhere: Mapping[int, int] = MappingProxyType({}),
    ) -> None:
        """Bring it to the shapes of its inputs, and its arguments to their places.

        Args:
            shared: where they are
            shapes: of the inputs
            elsewhere: addresses by value, of those that are not there

        Raises: RefusedError for shapes that the kernels refuse
        """
        if self._shapes != shapes:
            self._shapes = None
            made = self._process.ask(
                "shape",
                handle=self.handle,
                inputs=[(n, shape) for (n, _), shape in zip(self._inputs, shapes, strict=True)],
                outputs=[number for number, _ in self._outputs],
            )["shapes"]
            ends = [value for _, value in (*self._inputs, *self._outputs)]
            shared.reserve(zip(ends, [*shapes, *made], strict=True))
            self._shapes, self._places = shapes, []
        places = [
            (n, _place(shared.held[value.ident], elsewhere.get(value.ident)))
            for n, value in (*self._inputs, *self._outputs)
        ]
        if places != self._places:
            self._process.ask("setup", handle=self.handle, places=places)
            self._places = places

    def prepare_held(self, shared: SharedValues) -> None:
        """Bring it to the shapes that its inputs have by now."""
        shapes = [tuple(shared.held[value.ident].tensor.shape) for _, value in self._inputs]
        self.prepare(shared, shapes)

    def invoke(self, *, profile: bool = False) -> dict[str, Any]:
        """Run; return start, end, and times of operators where they are asked for."""
        return self._process.ask("invoke", handle=self.handle, profile=profile)

    def names(self) -> list[str]:
        """Return the library's name of each operator, in the order of their times."""
        return self._process.ask("names", handle=self.handle)["names"]


def _place(held: Held, address: int | None) -> list[int]:
    return [held.region.number, held.offset] if address is None else [0, address]
