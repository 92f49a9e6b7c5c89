"""A count with its noun, for messages, labels and tables."""

from __future__ import annotations


def plural(count: int, one: str, several: str = "") -> str:
    """Return a count with its noun: ``1 node``, ``1,200 nodes``; several for ``boundaries``."""
    return f"{count:,} {one if count == 1 else several or f'{one}s'}"
