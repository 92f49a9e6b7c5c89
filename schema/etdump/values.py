"""Logged values of debug events, kept as columns and shown one at a time as dataclasses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class ValueType(IntEnum):
    """Value.val: which kind was logged."""

    NULL = 0
    INT = 1
    BOOL = 2
    FLOAT = 3
    DOUBLE = 4
    TENSOR = 5
    TENSOR_LIST = 6
    STRING = 7


@dataclass(frozen=True, slots=True)
class DebugTensor:
    """A logged tensor.

    Attributes:
        scalar_type: scalar type code
        sizes: size of each dimension
        strides: in elements, one a dimension
        offset: first byte in the debug buffer, -1 for an empty tensor
    """

    scalar_type: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int


@dataclass(frozen=True, slots=True)
class DebugValue:
    """A logged value: a type and the fields that were set, normally the one of that type.

    Attributes:
        type: a `ValueType`; unknown values of a newer schema are kept
        tensor: set for TENSOR
        tensors: set for TENSOR_LIST
        int_value: set for INT
        float_value: set for FLOAT
        double_value: set for DOUBLE
        bool_value: set for BOOL
        output: whether it is an output of the program; None if the field is absent
    """

    type: int
    tensor: DebugTensor | None = None
    tensors: tuple[DebugTensor, ...] | None = None
    int_value: int | None = None
    float_value: float | None = None
    double_value: float | None = None
    bool_value: bool | None = None
    output: bool | None = None

    def all_tensors(self) -> tuple[DebugTensor, ...]:
        """Return the tensor or the tensors of the list, empty for other values."""
        return (self.tensor,) if self.tensor is not None else self.tensors or ()


# Bits of ValueColumns.has
HAS_INT, HAS_FLOAT, HAS_DOUBLE, HAS_BOOL, HAS_LIST = 1, 2, 4, 8, 16


@dataclass(frozen=True, slots=True, eq=False)
class ValueColumns:
    """Logged values as columns, v values with t tensors with k sizes and strides.

    Attributes:
        type: ValueType, int8[v]
        output: 1 or 0, -1 if absent, int8[v]
        has: bits for scalar fields and list that are set, uint8[v]
        int_value: int64[v]
        float_value: float32[v]
        double_value: float64[v]
        bool_value: bool[v]
        tensor: index of the tensor, -1 if none, int32[v]
        list_start: index of the first tensor of the list, int32[v]
        list_count: tensors of the list, int32[v]
        scalar_type: int8[t]
        offset: int64[t]
        sizes_start: index into numbers, int64[t]
        sizes_count: int64[t]
        strides_start: index into numbers, int64[t]
        strides_count: int64[t]
        numbers: all sizes, then all strides, int64[k]
    """

    type: Array
    output: Array
    has: Array
    int_value: Array
    float_value: Array
    double_value: Array
    bool_value: Array
    tensor: Array
    list_start: Array
    list_count: Array
    scalar_type: Array
    offset: Array
    sizes_start: Array
    sizes_count: Array
    strides_start: Array
    strides_count: Array
    numbers: Array

    def tensor_at(self, index: int) -> DebugTensor:
        """Return one tensor by its index."""
        return DebugTensor(
            int(self.scalar_type[index]),
            self._run(self.sizes_start[index], self.sizes_count[index]),
            self._run(self.strides_start[index], self.strides_count[index]),
            int(self.offset[index]),
        )

    def _run(self, start: int, count: int) -> tuple[int, ...]:
        return tuple(self.numbers[start : start + count].tolist())

    def same_as(self, other: ValueColumns) -> bool:
        """Return whether all columns are equal bit by bit, which NaN is too."""
        return all(
            getattr(self, column.name).tobytes() == getattr(other, column.name).tobytes()
            for column in fields(self)
        )


class DebugValues(Sequence[DebugValue]):
    """A read-only sequence of `DebugValue`, each created on access.

    Attributes:
        columns: the values as columns
    """

    def __init__(self, columns: ValueColumns) -> None:
        self.columns = columns

    @classmethod
    def of(cls, values: Iterable[DebugValue]) -> DebugValues:
        """Return the sequence of these values."""
        return cls(_columns_of(list(values)))

    def __len__(self) -> int:
        return len(self.columns.type)

    @overload
    def __getitem__(self, index: int) -> DebugValue: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[DebugValue, ...]: ...
    def __getitem__(self, index: int | slice) -> DebugValue | tuple[DebugValue, ...]:
        if isinstance(index, slice):
            return tuple(self._value(i) for i in range(*index.indices(len(self))))
        if not -len(self) <= index < len(self):
            raise IndexError(f"value {index} of {len(self)}")
        return self._value(index % len(self))

    def _value(self, index: int) -> DebugValue:
        c = self.columns
        has = int(c.has[index])
        tensor, start = int(c.tensor[index]), int(c.list_start[index])
        listed = range(start, start + int(c.list_count[index]))
        output = int(c.output[index])
        return DebugValue(
            int(c.type[index]),
            c.tensor_at(tensor) if tensor >= 0 else None,
            tuple(c.tensor_at(i) for i in listed) if has & HAS_LIST else None,
            int(c.int_value[index]) if has & HAS_INT else None,
            float(c.float_value[index]) if has & HAS_FLOAT else None,
            float(c.double_value[index]) if has & HAS_DOUBLE else None,
            bool(c.bool_value[index]) if has & HAS_BOOL else None,
            None if output < 0 else bool(output),
        )


def _columns_of(values: list[DebugValue]) -> ValueColumns:
    single = [value.tensor for value in values if value.tensor is not None]
    listed = [tensor for value in values for tensor in value.tensors or ()]
    tensors = single + listed
    has_tensor = np.array([value.tensor is not None for value in values], dtype=np.bool_)
    list_count = np.array([len(value.tensors or ()) for value in values], dtype=np.int32)
    sizes_count = np.array([len(tensor.sizes) for tensor in tensors], dtype=np.int64)
    strides_count = np.array([len(tensor.strides) for tensor in tensors], dtype=np.int64)
    flat = [n for tensor in tensors for n in tensor.sizes]
    flat += [n for tensor in tensors for n in tensor.strides]

    def column(name: str, dtype: str) -> Array:
        items = (getattr(value, name) for value in values)
        return np.array([0 if item is None else item for item in items], dtype=dtype)

    return ValueColumns(
        type=column("type", "i1"),
        output=np.array(
            [-1 if value.output is None else value.output for value in values], dtype=np.int8
        ),
        has=np.array([_has(value) for value in values], dtype=np.uint8),
        int_value=column("int_value", "i8"),
        float_value=column("float_value", "f4"),
        double_value=column("double_value", "f8"),
        bool_value=column("bool_value", "?"),
        tensor=np.where(has_tensor, np.cumsum(has_tensor) - 1, -1).astype(np.int32),
        list_start=(len(single) + np.cumsum(list_count) - list_count).astype(np.int32),
        list_count=list_count,
        scalar_type=np.array([tensor.scalar_type for tensor in tensors], dtype=np.int8),
        offset=np.array([tensor.offset for tensor in tensors], dtype=np.int64),
        sizes_start=np.cumsum(sizes_count) - sizes_count,
        sizes_count=sizes_count,
        strides_start=int(sizes_count.sum()) + np.cumsum(strides_count) - strides_count,
        strides_count=strides_count,
        numbers=np.array(flat, dtype=np.int64),
    )


def _has(value: DebugValue) -> int:
    flags = (
        (value.int_value, HAS_INT),
        (value.float_value, HAS_FLOAT),
        (value.double_value, HAS_DOUBLE),
        (value.bool_value, HAS_BOOL),
        (value.tensors, HAS_LIST),
    )
    return sum(bit for item, bit in flags if item is not None)
