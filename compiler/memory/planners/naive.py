"""The naive planner: blocks never share memory."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.memory.blocks import MemoryBlock, aligned


def naive(blocks: Sequence[MemoryBlock], alignment: int) -> list[int]:
    """Return consecutive offsets of blocks, without reuse."""
    offsets: list[int] = []
    at = 0
    for block in blocks:
        offsets.append(at)
        at += aligned(block.nbytes, alignment)
    return offsets
