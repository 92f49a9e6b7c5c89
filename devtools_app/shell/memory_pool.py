"""How the C library keeps memory that was freed: once for the process, and not for ever."""

from __future__ import annotations

import ctypes
import sys

# names of malloc.h
_MMAP_THRESHOLD, _ARENA_MAX = -3, -8
_LARGE = 1 << 18  # bytes; arrays of this size go back to the system at once


def share_free_memory() -> bool:
    """Let all threads share one pool of free memory; return whether the C library can.

    Each view computes in a thread of its own. The GNU C library gives each thread a pool that
    other threads do not use, so that what one view has freed is taken from the system again by the
    next; large arrays that are freed stay there, too. Python runs one thread at a time anyway.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):  # another C library
        return False
    return all(mallopt(*one) == 1 for one in ((_ARENA_MAX, 1), (_MMAP_THRESHOLD, _LARGE)))
