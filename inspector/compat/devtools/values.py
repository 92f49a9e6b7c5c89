"""Lists of logged and recorded values whose tensors are created on access.

Indexing or looping gives torch tensors, as the stock tool's lists hold; `arrays` gives numpy
arrays and needs no torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, cast, overload

from typing_extensions import override

from inspector.compat.devtools.tensors import SavedTensor, TraceTensor, WritableBuffer
from schema.etdump import DebugValue, ValueType
from schema.etrecord import TensorData


class LazyValues(Sequence[Any]):
    """A list of numbers, strings, None, lists and tensors.

    Args:
        load: returns the items as they are kept, tensors as the places of their elements
    """

    def __init__(self, load: Callable[[], Iterable[object]]) -> None:
        self._load = load

    @cached_property
    def sources(self) -> tuple[object, ...]:
        """Return the stored items."""
        return tuple(self._load())

    def __len__(self) -> int:
        return len(self.sources)

    @overload
    def __getitem__(self, index: int) -> Any: ...  # noqa: ANN401 - whatever was logged
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [as_tensor(source) for source in self.sources[index]]
        return as_tensor(self.sources[index])

    @override
    def __iter__(self) -> Iterator[Any]:
        return map(as_tensor, self.sources)  # a Sequence would index until an error ends it

    def arrays(self) -> list[Any]:
        """Return the items with numpy arrays for tensors; torch is not loaded."""
        return [as_array(source) for source in self.sources]

    def __repr__(self) -> str:
        return repr(list(self))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, LazyValues):
            return self.sources == other.sources
        return list(self) == other if isinstance(other, list) else NotImplemented


NO_VALUES = LazyValues(tuple)


def as_tensor(source: object) -> Any:  # noqa: ANN401 - whatever was logged
    """Return a value with torch tensors for its tensors."""
    if isinstance(source, (TraceTensor, SavedTensor)):
        return source.tensor()
    if isinstance(source, tuple):
        return [as_tensor(item) for item in cast("tuple[object, ...]", source)]
    return source


def as_array(source: object) -> Any:  # noqa: ANN401 - whatever was logged
    """Return a value with numpy arrays for its tensors."""
    if isinstance(source, (TraceTensor, SavedTensor)):
        return source.array()
    if isinstance(source, tuple):
        return [as_array(item) for item in cast("tuple[object, ...]", source)]
    return source


def logged_source(value: DebugValue | None, buffer: WritableBuffer | None) -> object:
    """Return one value of a trace as an item of LazyValues; None if it is not readable."""
    if value is None:
        return None
    if value.type == ValueType.TENSOR and value.tensor is not None:
        return TraceTensor(value.tensor, buffer)
    if value.type == ValueType.TENSOR_LIST and value.tensors is not None:
        return tuple(TraceTensor(tensor, buffer) for tensor in value.tensors)
    scalars = {
        ValueType.INT: value.int_value,
        ValueType.BOOL: value.bool_value,
        ValueType.FLOAT: value.float_value,
        ValueType.DOUBLE: value.double_value,
    }
    return next((scalar for kind, scalar in scalars.items() if kind == value.type), None)


def saved_source(tree: object) -> object:
    """Return one value of a record as an item of LazyValues."""
    if isinstance(tree, TensorData):
        return SavedTensor(tree)
    if isinstance(tree, (list, tuple)):
        return tuple(saved_source(item) for item in cast("Iterable[object]", tree))
    return tree
