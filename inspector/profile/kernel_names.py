"""Names of the kernels that ran the events inside delegates, as their backend logged them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inspector.trace.blocks import Block
from schema.origins import SHORTEST_NAMED, kernel_of_mark


def kernel_names(block: Block) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Return for each event an index into names; the first name is empty, for events without."""
    names = {"": 0}
    codes = np.zeros(len(block), np.int64)
    table, last = block.runs[0], block.layouts[0].last
    blobs = np.where(last >= 0, table.metadata[last], -1)
    marked = np.flatnonzero(blobs >= 0)
    long = table.blobs.sizes[blobs[marked]] >= SHORTEST_NAMED
    for event in marked[long].tolist():
        name = kernel_of_mark(bytes(table.blobs[int(blobs[event])]))
        codes[event] = names.setdefault(name, len(names))
    return codes, tuple(names)
