"""Long lists of new objects without looking for garbage among them again and again."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Generator[None, None, None]:
    """Let no garbage be collected meanwhile: graphs and tables are full of cycles that stay.

    Python looks through all objects whenever a quarter more are there; for 50,000 nodes that
    takes longer than the compile. Keep it short.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
