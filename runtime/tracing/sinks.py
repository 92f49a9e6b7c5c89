"""Sinks for the bytes of logged tensors: growing memory, or a file."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import IO, Protocol

import torch

from runtime.memory.slots import as_bytes

ALIGNMENT = 64  # kDebugDataAlignment
EMPTY = -1  # offset of a tensor without elements


class DebugSink(Protocol):
    """Stores tensors and returns the offsets of their bytes.

    Attributes:
        failure: why bytes could not be stored, empty while all were
    """

    failure: str

    def add(self, tensor: torch.Tensor) -> int | None:
        """Store a tensor's bytes; return their offset, None if they could not be stored."""
        ...

    def save(self, path: Path) -> None:
        """Write all bytes to a file."""
        ...


class MemorySink:
    """Stores bytes in a growing buffer in memory."""

    def __init__(self) -> None:
        self.failure = ""
        self._data = bytearray()

    def __len__(self) -> int:
        return len(self._data)

    def add(self, tensor: torch.Tensor) -> int | None:
        """Store a tensor's bytes; return their offset, -1 for no elements."""
        if not tensor.numel():
            return EMPTY
        at = -(-len(self._data) // ALIGNMENT) * ALIGNMENT
        try:
            self._data += bytes(at - len(self._data))
            self._data += as_bytes(tensor)
        except MemoryError:
            self.failure = "out of memory for logged tensors"
            return None
        return at

    def save(self, path: Path) -> None:
        """Write all bytes to a file."""
        path.write_bytes(self._data)


class FileSink:
    """Streams bytes to a file; a full disk stops the logging, not the run.

    Args:
        path: the file, which is replaced

    Attributes:
        failure: why bytes could not be stored, empty while all were
        error: of the system then
    """

    def __init__(self, path: str | Path) -> None:
        self.failure = ""
        self.error: OSError | None = None
        self.path = Path(path)
        self._file: IO[bytes] = self.path.open("wb")
        self._size = 0

    def add(self, tensor: torch.Tensor) -> int | None:
        """Write a tensor's bytes; return their offset, None once writing has failed."""
        if not tensor.numel():
            return EMPTY
        if self.failure:
            return None
        at = -(-self._size // ALIGNMENT) * ALIGNMENT
        data = as_bytes(tensor)
        try:
            self._file.write(bytes(at - self._size))
            self._file.write(data)
        except OSError as error:
            self._refused(error)
            return None
        self._size = at + len(data)
        return at

    @property
    def size(self) -> int:
        """Return the bytes so far."""
        return self._size

    def close(self) -> None:
        """Flush and close the file; an error such as a full disk is stored in `failure`."""
        try:
            self._file.close()
        except OSError as error:
            self._refused(error)

    def _refused(self, error: OSError) -> None:
        self.error = error
        self.failure = f"logged tensors could not be written to {self.path}: {error.strerror}"

    def save(self, path: Path) -> None:
        """Write all bytes to a file, unless the sink already writes to it."""
        self._file.flush()
        if path.resolve() != self.path.resolve():
            shutil.copyfile(self.path, path)
