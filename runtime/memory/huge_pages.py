"""Puts memory that a library allocates into huge pages, where the system gives them on request.

Reading all of a large weight matrix once goes through a page of the usual size each 4 KiB, and
looking those up takes some per cent of the time.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

_LEAST = 4 << 20  # bytes; reading the map of the process takes a millisecond
_PAGE = 2 << 20  # bytes of a huge page
_HUGEPAGE, _COLLAPSE = 14, 25  # advice of Linux; the second one works at once, since 6.1
_MAPS = Path("/proc/self/maps")

Range = tuple[int, int]
"""Address of the first byte, and of the byte behind the last one."""


@contextmanager
def new_memory_in_huge_pages(expected: int) -> Generator[None]:
    """Ask for huge pages for the private memory that is new at the end of the context.

    Systems without them, and less memory than is worth it, are left as they are.

    Args:
        expected: bytes that will be allocated
    """
    before = private_memory() if expected >= _LEAST else None
    yield
    if before is not None:
        for low, high in without(private_memory(), before):
            _advise(low, high)


def private_memory() -> list[Range]:
    """Return the ranges of this process that are private, writable and of no file, in order."""
    if sys.platform != "linux":
        return []
    try:
        lines = _MAPS.read_text().splitlines()
    except OSError:
        return []
    fields = [line.split() for line in lines]
    return [
        (int(low, 16), int(high, 16))
        for low, high in (
            each[0].split("-") for each in fields if each[1] == "rw-p" and len(each) == 5
        )
    ]


def without(ranges: Sequence[Range], others: Sequence[Range]) -> list[Range]:
    """Return the parts of ranges that are in none of the others; both are in order."""
    found: list[Range] = []
    for low, high in ranges:
        for begin, end in others:
            if end <= low:
                continue
            if begin >= high:
                break
            if begin > low:
                found.append((low, begin))
            low = max(low, end)
        if low < high:
            found.append((low, high))
    return found


def _advise(low: int, high: int) -> None:
    low, high = -(-low // _PAGE) * _PAGE, high // _PAGE * _PAGE
    if low >= high:
        return
    library = ctypes.CDLL(None)
    place = ctypes.c_void_p(low), ctypes.c_size_t(high - low)
    if library.madvise(*place, _HUGEPAGE) == 0:
        library.madvise(*place, _COLLAPSE)  # refused by older systems, which do so later
