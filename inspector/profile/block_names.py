"""Distinct names of the blocks of a trace: the runtime calls most of them Execute."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from inspector.files.run_report import is_sequence
from inspector.trace.blocks import Block
from schema.etdump import ETDump
from schema.objects.plural import plural


def block_labels(blocks: Sequence[Block], traces: Sequence[ETDump] = ()) -> tuple[str, ...]:
    """Return a name for each block; equal names are numbered, with what distinguishes them.

    Args:
        blocks: of traces
        traces: they are in, which show whether a number is that of a call or of a test case
    """
    sequences = {number for number, dump in enumerate(traces) if is_sequence(dump)}
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
            word = "call" if block.dump in sequences else "test case"
            parts.append(f"{word} {block.bundled_input_index}")
        runs = len(block.runs)
        parts.append(plural(runs, "run"))
        found.append(" · ".join(parts))
    return tuple(found)
