"""Where the bytes of programs and data files come from: memory, files that are read or mapped."""

from __future__ import annotations

import ctypes
import mmap
import os
from abc import ABC, abstractmethod
from enum import Enum
from pathlib import Path
from typing import Any

import torch
from typing_extensions import override

from runtime.errors import ErrorCode, ExecutionError, invalid_argument
from runtime.memory.release import known_file
from runtime.platform import LogLevel, log
from runtime.untyped import from_buffer

Buffer = bytes | bytearray | memoryview | mmap.mmap


class LoadMode(Enum):
    """How a file gets into memory.

    Attributes:
        File: it is read
        Mmap: it is mapped; pages are read when they are used
        MmapUseMlock: it is mapped and stays resident; an error where the system refuses that
        MmapUseMlockIgnoreErrors: as far as the system allows it
    """

    File = 0
    Mmap = 1
    MmapUseMlock = 2
    MmapUseMlockIgnoreErrors = 3


class DataLoader(ABC):
    """Gives the bytes of a program or data file; subclass it for other sources.

    Attributes:
        name: where the bytes come from, for errors; empty for memory
    """

    name: str = ""

    @abstractmethod
    def size(self) -> int:
        """Return the number of bytes."""
        ...

    @abstractmethod
    def load(self, offset: int, size: int) -> Buffer:
        """Return some bytes, which stay as they are while they are referenced.

        Args:
            offset: of the first byte
            size: number of bytes

        Raises: ExecutionError
        """
        ...

    def _check(self, offset: int, size: int) -> None:
        if offset < 0 or size < 0 or offset + size > self.size():
            raise invalid_argument(
                f"bytes {offset} to {offset + size} of {self.name or 'a buffer'} were asked for, "
                f"which has {self.size()}"
            )


class BufferDataLoader(DataLoader):
    """Bytes that are in memory.

    Args:
        data: the bytes; those of a bytearray are copied, since it can be resized
    """

    def __init__(self, data: bytes | bytearray | memoryview) -> None:
        self._data = memoryview(bytes(data) if isinstance(data, bytearray) else data)

    @override
    def size(self) -> int:
        return self._data.nbytes

    @override
    def load(self, offset: int, size: int) -> Buffer:
        self._check(offset, size)
        return self._data[offset : offset + size]


class FileDataLoader(DataLoader):
    """A file that is read.

    Raises: ExecutionError AccessFailed
    """

    def __init__(self, path: str | Path) -> None:
        self.name = str(path)
        try:
            self._size = Path(path).stat().st_size
        except OSError as error:
            raise _unreadable(path, error) from None

    @override
    def size(self) -> int:
        return self._size

    @override
    def load(self, offset: int, size: int) -> Buffer:
        self._check(offset, size)
        try:
            with Path(self.name).open("rb") as file:
                file.seek(offset)
                return file.read(size)
        except OSError as error:
            raise _unreadable(self.name, error) from None


class MmapDataLoader(DataLoader):
    """A file that is mapped, copy on write: nothing that a program does reaches the file.

    Args:
        path: the file; one that is rewritten in place ends the process that has it mapped
        mode: one of the modes that map

    Raises: ExecutionError AccessFailed; NotSupported where it cannot be locked
    """

    def __init__(self, path: str | Path, mode: LoadMode = LoadMode.Mmap) -> None:
        if mode is LoadMode.File:
            raise invalid_argument("LoadMode.File does not map a file")
        self.name = str(path)
        try:
            with Path(path).open("rb") as file:
                self._size = os.fstat(file.fileno()).st_size
                # An empty file cannot be mapped.
                size = self._size
                region = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY) if size else None
        except OSError as error:
            raise _unreadable(path, error) from None
        self._map = region
        if region is not None and not (mode is not LoadMode.Mmap and self._locked(region, mode)):
            known_file(region)  # the pages of a locked one are not given back

    def _locked(self, region: mmap.mmap, mode: LoadMode) -> bool:
        """Return whether all pages are resident and stay so until the map is released."""
        refused = lock_memory(from_buffer(region, torch.uint8, 1).data_ptr(), len(region))
        if not refused:
            return True
        reason = f"{self.name}: {len(region):,} bytes cannot be locked in memory: {refused}"
        if mode is LoadMode.MmapUseMlockIgnoreErrors:
            log(LogLevel.INFO, reason)
            return False
        raise ExecutionError(
            ErrorCode.NotSupported,
            reason,
            remedy="Raise the limit of locked memory (ulimit -l), or load with "
            "LoadMode.MmapUseMlockIgnoreErrors or LoadMode.Mmap.",
        )

    @override
    def size(self) -> int:
        return self._size

    @override
    def load(self, offset: int, size: int) -> Buffer:
        self._check(offset, size)
        return b"" if self._map is None else memoryview(self._map)[offset : offset + size]


def loader_of(path: str | Path, mode: LoadMode) -> DataLoader:
    """Return what loads a file in a mode.

    Raises: ExecutionError AccessFailed; NotSupported where it cannot be locked
    """
    return FileDataLoader(path) if mode is LoadMode.File else MmapDataLoader(path, mode)


def lock_memory(address: int, size: int) -> str:
    """Keep pages resident until they are unmapped; return why that is refused, empty if it is not.

    Args:
        address: of the first byte
        size: number of bytes
    """
    try:
        libc: Any = ctypes.CDLL(None, use_errno=True)
        mlock = libc.mlock
    except (AttributeError, OSError, TypeError):  # Windows has no such call
        return "this system has no mlock"
    mlock.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return os.strerror(ctypes.get_errno()) if mlock(address, size) else ""


def _unreadable(path: str | Path, error: OSError) -> ExecutionError:
    reason = f"{path} cannot be read: {error.strerror or error}"
    return ExecutionError(ErrorCode.AccessFailed, reason)
