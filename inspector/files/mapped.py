"""Mapped files: their list, whether they were rewritten, and surviving truncation.

Reading a page of a truncated mapped file kills the process with SIGBUS,
in any thread: compiling over a large open program is enough. ``guard`` handles that
signal: missing pages become zeros, so that the reader continues, and ``is_rewritten`` is set, since
    the content is no longer that of the opened file. On Windows a mapped file cannot be truncated.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import signal
import sys
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO

_MOST_RETRIES = 1000  # a file that is being rewritten may have grown back before we look at it
_FAILED = ctypes.c_void_p(-1).value
_READ, _PRIVATE, _FIXED = 1, 2, 16  # PROT_READ, MAP_PRIVATE, MAP_FIXED: the same everywhere
_ANONYMOUS = 0x1000 if sys.platform == "darwin" else 0x20
_HANDLER = ctypes.CFUNCTYPE(None, ctypes.c_int)


@dataclass(slots=True)
class _Mapping:
    """A file that is mapped.

    Attributes:
        path: of the file
        mapped: the mapping; a weak reference, so that it ends with its last reader
        address: of its first byte
        size: bytes
        stamp: inode, size and time of change when it was mapped
        whole: bytes from the first that have not been replaced by zeros
    """

    path: str
    mapped: weakref.ref[mmap.mmap]
    address: int
    size: int
    stamp: tuple[int, int, int]
    whole: int


_mappings: dict[int, _Mapping] = {}


def map_file(stream: BinaryIO, path: str) -> memoryview:
    """Return the bytes of an open file as a read-only mapping.

    Raises: OSError
    """
    found = os.fstat(stream.fileno())
    import numpy as np  # not at import: the window asks for the guard before it shows anything

    try:
        mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    except ValueError as error:  # truncated since its size was looked at
        raise OSError(errno.EIO, "it became empty while it was opened", path) from error
    key = id(mapped)
    address = int(np.frombuffer(mapped, np.uint8).ctypes.data)
    reference = weakref.ref(mapped, lambda _gone: _mappings.pop(key, None))
    size = len(mapped)
    _mappings[key] = _Mapping(path, reference, address, size, _stamp(found), size)
    return memoryview(mapped)


def rest(data: memoryview) -> None:
    """Release the memory of a mapped file that was read; pages used later are read again.

    Linux counts every page that was touched as memory of the process.
    """
    mapped = data.obj
    if isinstance(mapped, mmap.mmap) and sys.platform == "linux":  # elsewhere a mere hint
        mapped.madvise(mmap.MADV_DONTNEED)


def is_rewritten(data: memoryview) -> bool:
    """Return whether the file behind some bytes was written to since it was mapped.

    Bytes read into memory do not change, nor does a mapped file that was replaced by another
    one.
    """
    mapping = _mappings.get(id(data.obj))
    if mapping is None:
        return False
    try:
        found = _stamp(os.stat(mapping.path))
    except OSError:
        return False
    return found[0] == mapping.stamp[0] and found != mapping.stamp


def _stamp(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_ino, found.st_size, found.st_mtime_ns


def guard() -> Callable[[], None]:
    """Survive the truncation of mapped files from now on; return a function that ends this."""
    number = getattr(signal, "SIGBUS", None)
    if number is None:
        return lambda: None
    return _Guard(int(number)).end


class _Guard:
    """Our handler of SIGBUS.

    Python's own handlers run between two byte codes, which a faulting read never reaches; this one
    is called by the system at once. A faulting read holds no lock of the interpreter but the global
    one, which a callback may take again, so that it can be written in Python.
    """

    def __init__(self, number: int) -> None:
        self._number = number
        self._retries = 0
        self._process = ctypes.CDLL(None)
        self._process.signal.restype = ctypes.c_void_p
        self._process.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
        self._process.mmap.restype = ctypes.c_void_p
        self._process.mmap.argtypes = [
            *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int),
            *(ctypes.c_int, ctypes.c_int, ctypes.c_long),
        ]
        self._handler = _HANDLER(self._take)  # kept: the system has its address only
        self._old = self._process.signal(number, ctypes.cast(self._handler, ctypes.c_void_p))

    def end(self) -> None:
        """Restore the previous handler."""
        self._process.signal(self._number, self._old)

    def _take(self, _number: int) -> None:
        helped = [self._help(mapping) for mapping in list(_mappings.values())]
        self._retries = 0 if any(helped) else self._retries + 1
        if self._retries > _MOST_RETRIES:  # not ours: the read is tried again and meets the old one
            self.end()

    def _help(self, mapping: _Mapping) -> bool:
        """Replace truncated pages by zeros; return whether there were any."""
        mapped = mapping.mapped()
        if mapped is None:
            return False
        page = mmap.PAGESIZE
        start = -(-mapped.size() // page) * page
        if start >= mapping.whole:
            return False
        flags = _PRIVATE | _ANONYMOUS | _FIXED
        place, length = mapping.address + start, mapping.size - start
        if self._process.mmap(place, length, _READ, flags, -1, 0) == _FAILED:
            return False
        mapping.whole = start
        return True
