"""Which interpreter has the other toolchain."""

from __future__ import annotations

import sys


def interpreter(named: str) -> str:
    """Return the interpreter a user named, else the one ETScope runs in."""
    return named or sys.executable
