"""Distinct names of the blocks of a trace: the runtime calls most of them Execute."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from inspector.trace.blocks import Block
from inspector.units import plural


def block_labels(blocks: Sequence[Block]) -> tuple[str, ...]:
    """Return a name for each block; equal names are numbered, with what distinguishes them."""
    count = Counter(block.name for block in blocks)
    dumps = len({block.dump for block in blocks}) > 1
    seen: Counter[str] = Counter()
    found: list[str] = []
    for block in blocks:
        seen[block.name] += 1
        if count[block.name] == 1:
            found.append(block.name)
            continue
        parts = [f"{block.name} #{seen[block.name]}"]
        if dumps:
            parts.append(f"trace {block.dump + 1}")
        if block.bundled_input_index >= 0:
            parts.append(f"test case {block.bundled_input_index}")
        runs = len(block.runs)
        parts.append(plural(runs, "run"))
        found.append(" · ".join(parts))
    return tuple(found)
