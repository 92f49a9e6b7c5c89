"""Releases pages to the operating system (madvise) while their mapping stays.

Pages of a mapped file are read again on the next access, pages of a planned buffer become zeros.
"""

from __future__ import annotations

import mmap
import sys
from dataclasses import dataclass
from threading import Lock
from weakref import WeakSet

import torch

from runtime.untyped import from_buffer

_FILES: WeakSet[mmap.mmap] = WeakSet()
_BUFFERS: WeakSet[mmap.mmap] = WeakSet()
_LOCK = Lock()


def track_file(region: mmap.mmap) -> mmap.mmap:
    """Return a mapped read-only file, whose pages may be released from now on."""
    with _LOCK:
        _FILES.add(region)
    return region


def track_buffer(region: mmap.mmap) -> mmap.mmap:
    """Return an anonymous map, whose pages may be released from now on."""
    with _LOCK:
        _BUFFERS.add(region)
    return region


def release_idle_pages(address: int, nbytes: int) -> int:
    """Release the complete pages in a range of a planned buffer; return how many bytes.

    The pages read as zeros afterwards. Other memory, and systems without madvise, are not touched.

    Args:
        address: of the first byte
        nbytes: size of the range
    """
    try:  # shared maps keep their pages under MADV_DONTNEED
        return _release(_BUFFERS, address, nbytes, "MADV_REMOVE")
    except OSError:  # a custom allocator may map privately
        return _release(_BUFFERS, address, nbytes, "MADV_DONTNEED")


def _release(kind: WeakSet[mmap.mmap], address: int, nbytes: int, named: str) -> int:
    advice = getattr(mmap, named, None)
    # on other systems a mere hint, or a different operation
    if advice is None or sys.platform != "linux":
        return 0
    found = _region_of(kind, address, nbytes)
    if found is None:
        return 0
    region, start = found
    return _advise(region, start, start + nbytes, advice)


def _region_of(kind: WeakSet[mmap.mmap], address: int, nbytes: int) -> tuple[mmap.mmap, int] | None:
    """Return the map that contains a range, and the offset in it."""
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


@dataclass(frozen=True, slots=True)
class PlannedRange:
    """A planned buffer.

    Attributes:
        start: address of the first byte
        end: address after the last byte
        region: the buffer, which stays mapped while this object exists
    """

    start: int
    end: int
    region: mmap.mmap


def planned_range(address: int, nbytes: int) -> PlannedRange | None:
    """Return the planned buffer that contains a range, None if it is in other memory."""
    found = _region_of(_BUFFERS, address, nbytes)
    if found is None:
        return None
    region, offset = found
    return PlannedRange(address - offset, address - offset + len(region), region)


def ends_in_page(address: int, nbytes: int, further: int) -> bool:
    """Return whether the bytes after a range lie in the page of its last byte."""
    end = address + nbytes
    return (end - 1) // mmap.PAGESIZE == (end + further - 1) // mmap.PAGESIZE


def can_be_read(address: int, nbytes: int, further: int) -> bool:
    """Return whether the bytes after a readable range can be read as well.

    Args:
        address: of the first byte
        nbytes: size of the range
        further: number of bytes after it
    """
    if ends_in_page(address, nbytes, further):
        return True
    return _region_of(_BUFFERS, address, nbytes + further) is not None


def _advise(region: mmap.mmap, start: int, end: int, advice: int) -> int:
    first = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
    size = end // mmap.PAGESIZE * mmap.PAGESIZE - first
    if size <= 0:
        return 0
    region.madvise(advice, first, size)
    return size


def release_constant(tensor: torch.Tensor) -> int:
    """Release the pages of a constant in a mapped file; return how many bytes.

    A later access reads them from the file again. Constants in other memory, and views that are not
    dense, are not touched.
    """
    order = sorted(range(tensor.dim()), key=tensor.stride, reverse=True)
    if not tensor.permute(order).is_contiguous():
        return 0
    return _release(_FILES, tensor.data_ptr(), tensor.nbytes, "MADV_DONTNEED")
