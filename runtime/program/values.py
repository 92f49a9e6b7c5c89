"""The value table of a method as Python objects: tensors, scalars, strings, lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from runtime.errors import ErrorCode, ExecutionError, invalid_program
from runtime.memory.planned import PlannedBuffers, new_buffer
from runtime.memory.slots import TensorShapeDynamism, TensorSlot, check_shape, dtype_of, strides_of
from runtime.program.named_data import NamedDataMap
from runtime.untyped import from_buffer
from schema.dtypes.scalar_type import numel
from schema.errors import FormatError
from schema.program import ProgramFile
from schema.program import model as m
from schema.program.program import EXTERNAL


@dataclass(frozen=True, slots=True)
class Boxed:
    """A list of value indices, resolved when it is used; -1 stands for None."""

    items: tuple[int, ...]


@dataclass(slots=True)
class ValueTable:
    """All values of a method.

    Attributes:
        items: None, int, float, bool, str, torch.Tensor, Boxed, or a tuple of scalars
        slots: slot of each tensor, by the id of the tensor object
    """

    items: list[Any]
    slots: dict[int, TensorSlot] = field(default_factory=dict[int, TensorSlot])

    def slot(self, index: int) -> TensorSlot:
        """Return the slot of the tensor that a value holds.

        Raises: ExecutionError InvalidProgram if it does not hold a tensor
        """
        found = self.slots.get(id(self.items[index]))
        if found is None:
            kind = type(self.items[index]).__name__
            raise invalid_program(f"value {index} is written as a tensor but is {kind}")
        return found

    def resolve(self, value: Any) -> Any:  # noqa: ANN401 - any value
        """Return a value, resolving the items of a list."""
        if isinstance(value, Boxed):
            return [None if index < 0 else self.items[index] for index in value.items]
        return value


class TableBuilder:
    """Builds the value table of one plan."""

    def __init__(
        self,
        plan: m.ExecutionPlan,
        program: ProgramFile,
        buffers: PlannedBuffers,
        data: NamedDataMap,
    ) -> None:
        self._plan = plan
        self._program = program
        self._buffers = buffers
        self._data = data
        self._outside = {*plan.inputs, *plan.outputs}
        self._table = ValueTable([])

    def build(self) -> ValueTable:
        """Return the table.

        Raises: ExecutionError for an invalid value
        """
        for index, value in enumerate(self._plan.values):
            try:
                self._table.items.append(self._value(index, value.val))
            except ExecutionError as error:
                error.reason = f"value {index}: {error.reason}"
                raise
            except FormatError as error:
                raise invalid_program(f"value {index}: {error}") from None
        self._check_lists()
        return self._table

    def _value(self, index: int, value: m.KernelType) -> Any:  # noqa: ANN401 - any value
        if isinstance(value, m.Tensor):
            return self._tensor(index, value)
        if isinstance(value, m.Int):
            return value.int_val
        if isinstance(value, m.Bool):
            return value.bool_val
        if isinstance(value, m.Double):
            return value.double_val
        if isinstance(value, m.String):
            return value.string_val
        if isinstance(value, m.Null):
            return None
        if isinstance(value, m.IntList | m.TensorList | m.OptionalTensorList):
            return Boxed(value.items)
        if isinstance(value, m.DoubleList | m.BoolList):
            return value.items
        raise invalid_program("its kind is unknown")

    def _check_lists(self) -> None:
        items = self._table.items
        for index, value in enumerate(items):
            if isinstance(value, Boxed):
                optional = isinstance(self._plan.values[index].val, m.OptionalTensorList)
                requested = (
                    int if isinstance(self._plan.values[index].val, m.IntList) else torch.Tensor
                )
                for item in value.items:
                    if item == -1 and optional:
                        continue
                    if not 0 <= item < len(items):
                        raise invalid_program(
                            f"value {index} lists value {item}, but the plan has {len(items)}"
                        )
                    if not isinstance(items[item], requested) and not (
                        optional and items[item] is None
                    ):
                        raise invalid_program(
                            f"value {index} lists value {item}, which is not a {requested.__name__}"
                        )

    def _tensor(self, index: int, tensor: m.Tensor) -> torch.Tensor:
        check_shape(tensor.sizes, tensor.dim_order)
        if tensor.storage_offset:
            raise invalid_program(f"storage_offset is {tensor.storage_offset}, it must be 0")
        if tensor.shape_dynamism not in TensorShapeDynamism.__members__.values():
            raise invalid_program(f"unknown shape_dynamism {tensor.shape_dynamism}")
        dtype = dtype_of(tensor.scalar_type)
        count = numel(tensor.sizes)
        base, constant = self._memory(tensor, dtype, count)
        view = self._shaped(index, tensor, dtype, base)
        self._table.slots[id(view)] = TensorSlot(
            view,
            index,
            tensor.scalar_type,
            tensor.dim_order,
            tensor.shape_dynamism,
            count,
            base,
            constant,
            tensor.allocation_info is not None,
        )
        return view

    def _shaped(
        self, index: int, tensor: m.Tensor, dtype: torch.dtype, base: torch.Tensor | None
    ) -> torch.Tensor:
        if base is None and index not in self._outside and numel(tensor.sizes):
            if tensor.shape_dynamism == TensorShapeDynamism.STATIC:
                # Pointed at memory by et_view, or never used: no error in itself.
                return torch.empty(0, dtype=dtype)
            base = torch.empty(0, dtype=dtype)
            sizes = tuple(0 for _ in tensor.sizes)
            return base.as_strided(sizes, strides_of(sizes, tensor.dim_order))
        if base is None:
            buffer = new_buffer(numel(tensor.sizes) * dtype.itemsize)
            base = (
                torch.empty(0, dtype=dtype)
                if buffer is None
                else from_buffer(buffer, dtype, numel(tensor.sizes))
            )
        return base.as_strided(tensor.sizes, strides_of(tensor.sizes, tensor.dim_order))

    def _memory(
        self, tensor: m.Tensor, dtype: torch.dtype, count: int
    ) -> tuple[torch.Tensor | None, bool]:
        """Return the memory of a tensor, None if it has none, and whether it is constant."""
        nbytes = count * dtype.itemsize
        stored = self._stored(tensor, nbytes)
        if tensor.allocation_info is None:
            if stored is None:
                return None, False
            return _elements(stored, dtype, count), True
        place = self._buffers.place(tensor.allocation_info, nbytes)
        if place is None:
            return torch.empty(0, dtype=dtype), False
        base = from_buffer(place[0], dtype, count, place[1])
        if stored is not None:
            base.copy_(_elements(stored, dtype, count))
        return base, False

    def _stored(self, tensor: m.Tensor, nbytes: int) -> memoryview | None:
        extra = tensor.extra_tensor_info
        if extra is not None and extra.location == EXTERNAL:
            return self._data.tensor_data(tensor, extra.fully_qualified_name, nbytes)
        data = self._program.constant_data(tensor)
        if data is not None and len(data) < nbytes:
            raise ExecutionError(
                ErrorCode.InvalidProgram, f"{nbytes} bytes are needed, {len(data)} are stored"
            )
        return data


def _elements(data: memoryview, dtype: torch.dtype, count: int) -> torch.Tensor:
    return from_buffer(data, dtype, count) if count else torch.empty(0, dtype=dtype)


def check_indices(indices: Sequence[int], count: int, what: str) -> None:
    """Reject value indices outside of the table.

    Raises: ExecutionError InvalidProgram
    """
    for index in indices:
        if not 0 <= index < count:
            raise invalid_program(f"{what} refers to value {index}, but the plan has {count}")
