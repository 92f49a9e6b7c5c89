"""Tables of a program are made without looking for garbage among them again and again."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Generator[None, None, None]:
    """Let no garbage be collected meanwhile; what is made stays as long as its method."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
