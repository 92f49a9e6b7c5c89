"""Pages that are given back to the machine while the memory they belong to stays.

A page of a mapped file comes back from the file when it is read again, a page of an arena as zeros.
"""

from __future__ import annotations

import mmap
import sys
from threading import Lock
from weakref import WeakSet

import torch

from runtime.untyped import from_buffer

_FILES: WeakSet[mmap.mmap] = WeakSet()
_ARENAS: WeakSet[mmap.mmap] = WeakSet()
_LOCK = Lock()


def known_file(region: mmap.mmap) -> mmap.mmap:
    """Return a map of a file that nobody writes to; its pages may be given back from now on."""
    with _LOCK:
        _FILES.add(region)
    return region


def known_arena(region: mmap.mmap) -> mmap.mmap:
    """Return a map of zeros; its pages may be given back from now on."""
    with _LOCK:
        _ARENAS.add(region)
    return region


def give_back_idle(address: int, nbytes: int) -> int:
    """Let the machine have the whole pages of some bytes of an arena; return how many those are.

    They are zeros afterwards. Nothing happens to other memory, or where the system cannot do it.

    Args:
        address: of the first byte
        nbytes: how many there are
    """
    try:  # arenas are shared maps, whose pages would outlive the other advice
        return _given_back(_ARENAS, address, nbytes, "MADV_REMOVE")
    except OSError:  # but not those of a user's own allocator
        return _given_back(_ARENAS, address, nbytes, "MADV_DONTNEED")


def _given_back(kind: WeakSet[mmap.mmap], address: int, nbytes: int, named: str) -> int:
    advice = getattr(mmap, named, None)
    if advice is None or sys.platform != "linux":  # elsewhere a hint, or another meaning
        return 0
    found = _around(kind, address, nbytes)
    if found is None:
        return 0
    region, start = found
    return _advised(region, start, start + nbytes, advice)


def _around(kind: WeakSet[mmap.mmap], address: int, nbytes: int) -> tuple[mmap.mmap, int] | None:
    """Return the map in which some bytes are, and where in it."""
    with _LOCK:
        regions = list(kind)
    for region in regions:
        try:
            start = address - from_buffer(region, torch.uint8, 1).data_ptr()
        except ValueError:  # it is closed
            continue
        if start >= 0 and start + nbytes <= len(region):
            return region, start
    return None


def may_be_read(address: int, nbytes: int, further: int) -> bool:
    """Return whether what follows some readable bytes can be read as well.

    Args:
        address: of the first byte
        nbytes: how many there are
        further: how many follow
    """
    end = address + nbytes
    same_page = (end - 1) // mmap.PAGESIZE == (end + further - 1) // mmap.PAGESIZE
    return same_page or _around(_ARENAS, address, nbytes + further) is not None


def _advised(region: mmap.mmap, start: int, end: int, advice: int) -> int:
    first = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
    size = end // mmap.PAGESIZE * mmap.PAGESIZE - first
    if size <= 0:
        return 0
    region.madvise(advice, first, size)
    return size


def give_back_constant(tensor: torch.Tensor) -> int:
    """Let the machine have the pages of a constant in a mapped file; return how many bytes.

    They are read from the file again when somebody wants them after all. Nothing happens to
    constants elsewhere, nor to those that are only part of what they lie in.
    """
    order = sorted(range(tensor.dim()), key=tensor.stride, reverse=True)
    if not tensor.permute(order).is_contiguous():
        return 0
    return _given_back(_FILES, tensor.data_ptr(), tensor.nbytes, "MADV_DONTNEED")
