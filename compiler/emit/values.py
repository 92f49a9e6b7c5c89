"""The value table of one method; equal literals share an entry, since they are never written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from compiler.errors import UnsupportedError
from compiler.memory.specs import FrozenSpec, scalar_type_of
from schema.program import model as m

_MEMORY_FORMATS = {torch.contiguous_format: 0, torch.preserve_format: 1}


class ValueBuilder:
    """Creates the values of a method in order of first use.

    Attributes:
        values: created so far
    """

    def __init__(self, index_of: Callable[[torch.fx.Node], int]) -> None:
        """Begin an empty table.

        Args:
            index_of: returns the value of a node that was emitted before
        """
        self.values: list[m.EValue] = []
        self._index_of = index_of
        self._shared: dict[Any, int] = {}

    def add(self, value: m.KernelType) -> int:
        """Return the index of a new value."""
        self.values.append(m.EValue(value))
        return len(self.values) - 1

    def tensor(
        self,
        spec: FrozenSpec,
        buffer: int,
        place: tuple[int, int] | None,
        extra: m.ExtraTensorInfo | None = None,
    ) -> int:
        """Return the index of a new tensor.

        Args:
            spec: shape and type
            buffer: index of its stored bytes, 0 for none
            place: planned buffer and offset, None for constants and memory of the caller
            extra: its name, and whether its bytes are in another file
        """
        details = None
        if place is not None:
            arena, offset = place
            details = m.AllocationDetails(arena, offset & 0xFFFF_FFFF, offset >> 32)
        return self.add(
            m.Tensor(
                scalar_type=spec.scalar_type,
                storage_offset=0,
                sizes=spec.sizes,
                dim_order=spec.dim_order,
                requires_grad=False,
                data_buffer_idx=buffer,
                allocation_info=details,
                layout=0,
                shape_dynamism=spec.dynamism,
                extra_tensor_info=extra,
            )
        )

    def literal(self, value: Any, kind: str = "") -> int:  # noqa: ANN401
        """Return the index of an argument of a declared kind, such as ``Optional[List[int]]``.

        Raises: UnsupportedError if the runtime has no such value
        """
        if isinstance(value, torch.fx.Node):
            return self._index_of(value)
        if isinstance(value, (list, tuple)):
            return self._list(value, kind)  # pyright: ignore[reportUnknownArgumentType]
        if "List[" in kind and value is not None and "Tensor" not in kind:
            return self._list([value], kind)
        return self._share(scalar_value(value, kind))

    def literal_indices(self, indices: Sequence[int]) -> int:
        """Return the index of a list of tensors that were emitted before."""
        return self._share(m.TensorList(tuple(indices)))

    def _share(self, value: m.KernelType) -> int:
        key = (type(value), repr(value))  # repr distinguishes -0.0 from 0.0, and NaN equals itself
        if key not in self._shared:
            self._shared[key] = self.add(value)
        return self._shared[key]

    def _list(self, items: Sequence[Any], kind: str) -> int:
        if "Optional[Tensor" in kind.removeprefix("Optional[List") or "List[Optional" in kind:
            places = tuple(-1 if item is None else self._index_of(item) for item in items)
            return self._share(m.OptionalTensorList(places))
        if "Tensor" in kind:
            return self._share(m.TensorList(tuple(self._index_of(item) for item in items)))
        if "float" in kind:
            return self._share(m.DoubleList(tuple(float(item) for item in items)))
        if "bool" in kind:
            return self._share(m.BoolList(tuple(bool(item) for item in items)))
        return self._share(m.IntList(tuple(self.literal(item, "int") for item in items)))


def scalar_value(value: Any, kind: str = "") -> m.KernelType:  # noqa: ANN401 - a case each
    """Return the runtime value of a literal that is neither a node nor a list.

    Raises: UnsupportedError for any other type
    """
    if value is None:
        return m.Null()
    if isinstance(value, bool):
        return m.Bool(value)
    if isinstance(value, int):
        return m.Double(float(value)) if "float" in kind else m.Int(value)
    if isinstance(value, float):
        return m.Double(value)
    if isinstance(value, str):
        return m.String(value)
    if isinstance(value, torch.dtype):
        return m.Int(scalar_type_of(value))
    if isinstance(value, torch.layout) and value is torch.strided:
        return m.Int(0)
    if value in _MEMORY_FORMATS:
        return m.Int(_MEMORY_FORMATS[value])
    raise UnsupportedError(f"{value!r} cannot be an argument in a program file")
