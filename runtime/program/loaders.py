"""Loaders of programs and data files: from memory, and from files that are read or mapped."""

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
from runtime.memory.release import track_file
from runtime.platform import LogLevel, log
from runtime.untyped import from_buffer

Buffer = bytes | bytearray | memoryview | mmap.mmap


class LoadMode(Enum):
    """How a file is loaded.

    Attributes:
        File: read
        Mmap: mapped; pages are read on first access
        MmapUseMlock: mapped and locked in memory; an error where locking fails
        MmapUseMlockIgnoreErrors: mapped, and locked where possible
    """

    File = 0
    Mmap = 1
    MmapUseMlock = 2
    MmapUseMlockIgnoreErrors = 3


class DataLoader(ABC):
    """Loads the bytes of a program or data file; subclass it for other sources.

    Attributes:
        name: where the bytes come from, for errors; empty if they are in memory
    """

    name: str = ""

    @abstractmethod
    def size(self) -> int:
        """Return the number of bytes."""
        ...

    @abstractmethod
    def load(self, offset: int, size: int) -> Buffer:
        """Return a range of bytes, which must not change while it is referenced.

        Args:
            offset: of the first byte
            size: number of bytes

        Raises: ExecutionError
        """
        ...

    def _check(self, offset: int, size: int) -> None:
        if offset < 0 or size < 0 or offset + size > self.size():
            raise invalid_argument(
                f"bytes {offset} to {offset + size} of {self.name or 'a buffer'} were requested, "
                f"which has {self.size()}"
            )


class BufferDataLoader(DataLoader):
    """Loads bytes from memory.

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
    """Loads a file by reading it.

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
    """Maps a file copy-on-write, so that a program never changes it.

    Args:
        path: the file; rewriting it in place kills the process that maps it (SIGBUS)
        mode: one of the mapping modes

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
            track_file(region)  # locked pages are not released

    def _locked(self, region: mmap.mmap, mode: LoadMode) -> bool:
        """Return whether all pages are locked in memory."""
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
    """Return the loader of a file for a mode.

    Raises: ExecutionError AccessFailed; NotSupported where it cannot be locked
    """
    return FileDataLoader(path) if mode is LoadMode.File else MmapDataLoader(path, mode)


def lock_memory(address: int, size: int) -> str:
    """Lock pages in memory until they are unmapped; return the failure, empty on success.

    Args:
        address: of the first byte
        size: number of bytes
    """
    try:
        libc: Any = ctypes.CDLL(None, use_errno=True)
        mlock = libc.mlock
    except (AttributeError, OSError, TypeError):  # Windows has no mlock
        return "this system has no mlock"
    mlock.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return os.strerror(ctypes.get_errno()) if mlock(address, size) else ""


def _unreadable(path: str | Path, error: OSError) -> ExecutionError:
    reason = f"{path} cannot be read: {error.strerror or error}"
    return ExecutionError(ErrorCode.AccessFailed, reason)
