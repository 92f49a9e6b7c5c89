"""Where the bytes of logged tensors go: memory that grows, or a file."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import IO, Protocol

import torch

from runtime.memory.slots import as_bytes

ALIGNMENT = 64  # kDebugDataAlignment
EMPTY = -1  # offset of a tensor without elements


class DebugSink(Protocol):
    """Takes tensors and says where their bytes are.

    Attributes:
        failure: why bytes could not be kept, empty while all are
    """

    failure: str

    def add(self, tensor: torch.Tensor) -> int | None:
        """Keep a tensor's bytes; return their offset, None when they could not be kept."""
        ...

    def save(self, path: Path) -> None:
        """Write all bytes to a file."""
        ...


class MemorySink:
    """Keeps bytes in memory; it grows as needed, so no run is ever cut short."""

    def __init__(self) -> None:
        self.failure = ""
        self._data = bytearray()

    def __len__(self) -> int:
        return len(self._data)

    def add(self, tensor: torch.Tensor) -> int | None:
        """Keep a tensor's bytes; return their offset, -1 for no elements."""
        if not tensor.numel():
            return EMPTY
        at = -(-len(self._data) // ALIGNMENT) * ALIGNMENT
        try:
            self._data += bytes(at - len(self._data))
            self._data += as_bytes(tensor)
        except MemoryError:
            self.failure = "there is no memory left for logged tensors"
            return None
        return at

    def save(self, path: Path) -> None:
        """Write all bytes to a file."""
        path.write_bytes(self._data)


class FileSink:
    """Streams bytes to a file; a full disk ends the logging, not the run.

    Args:
        path: the file, which is replaced
    """

    def __init__(self, path: str | Path) -> None:
        self.failure = ""
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
            self.failure = f"logged tensors could not be written to {self.path}: {error.strerror}"
            return None
        self._size = at + len(data)
        return at

    def close(self) -> None:
        """Write what is still in memory; a disk that is full by now becomes the failure."""
        try:
            self._file.close()
        except OSError as error:
            self.failure = f"logged tensors could not be written to {self.path}: {error.strerror}"

    def save(self, path: Path) -> None:
        """Write all bytes to a file, nothing when they are in it already."""
        self._file.flush()
        if path.resolve() != self.path.resolve():
            shutil.copyfile(self.path, path)
