"""Tensors of a trace or a record, read on first access, missing when they are not there."""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from inspector.files.load import MAP_FROM_BYTES
from inspector.rebuild.torch_bridge import saved_tensor, tensor_over
from schema.dtypes.scalar_type import numel, scalar_type
from schema.errors import FormatError
from schema.etdump import DebugTensor
from schema.etdump.debug_buffer import DebugBuffer, TensorView
from schema.etrecord import TensorData

NO_BUFFER = "no debug buffer was given"


@dataclass(frozen=True, slots=True)
class MissingTensor:
    """A tensor that was logged or recorded, but whose elements are not there; it is false.

    Attributes:
        shape: its sizes
        dtype: name of its dtype
        reason: why elements are missing
    """

    shape: tuple[int, ...]
    dtype: str
    reason: str

    def __bool__(self) -> bool:
        return False


class WritableBuffer:
    """A debug buffer in private memory: tensors over it may be changed, the file is not.

    Attributes:
        memory: the bytes, mapped copy-on-write when they are many
        buffer: the same as an artifact that finds tensors in it
    """

    def __init__(self, memory: memoryview, file: str = "") -> None:
        self.memory = memory
        self.buffer = DebugBuffer(memory.toreadonly(), file)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> WritableBuffer:
        """Open a file.

        Raises: OSError
        """
        with Path(path).open("rb") as stream:
            if os.fstat(stream.fileno()).st_size < MAP_FROM_BYTES:
                return cls(memoryview(bytearray(stream.read())), os.fspath(path))
            mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY)
            return cls(memoryview(mapped), os.fspath(path))


_NO_BYTES = WritableBuffer(memoryview(bytearray()))


@dataclass(frozen=True, slots=True)
class TraceTensor:
    """A tensor of a trace.

    Attributes:
        logged: its type, shape and place
        buffer: where its bytes are, None without a debug buffer
    """

    logged: DebugTensor
    buffer: WritableBuffer | None

    def tensor(self) -> object:
        """Return a torch tensor over the bytes of the buffer, or a MissingTensor."""
        found = self._find()
        if isinstance(found, MissingTensor):
            return found
        memory, view = found
        built = tensor_over(memory, self.logged.scalar_type, view.sizes, view.strides)
        return self._missing("torch has no such dtype") if built is None else built

    def array(self) -> NDArray[Any] | MissingTensor:
        """Return the elements, narrow floats as float32, or a MissingTensor."""
        found = self._find()
        if isinstance(found, MissingTensor):
            return found
        values = found[1].values()
        return self._missing("its dtype has no numbers") if values is None else values

    def _find(self) -> tuple[memoryview, TensorView] | MissingTensor:
        source = self.buffer
        if source is None:
            if numel(self.logged.sizes):
                return self._missing(NO_BUFFER)
            source = _NO_BYTES  # a tensor without elements misses nothing
        try:
            view = source.buffer.tensor_array(self.logged)
        except FormatError as error:
            return self._missing(str(error))
        start = max(view.offset, 0)
        return source.memory[start : start + len(view.raw)], view

    def _missing(self, reason: str) -> MissingTensor:
        name = scalar_type(self.logged.scalar_type).name
        return MissingTensor(tuple(self.logged.sizes), name, reason)


@dataclass(frozen=True, slots=True)
class SavedTensor:
    """A tensor of a record."""

    saved: TensorData

    def tensor(self) -> object:
        """Return a torch tensor with a copy of the saved elements, or a MissingTensor."""
        found = saved_tensor(self.saved)
        return self._missing() if found is None else found

    def array(self) -> NDArray[Any] | MissingTensor:
        """Return the saved elements, narrow floats as float32, or a MissingTensor."""
        values = self.saved.to_numpy()
        return self._missing() if values is None else values

    def _missing(self) -> MissingTensor:
        return MissingTensor(self.saved.sizes, self.saved.dtype, "its elements are not in the file")
