"""The flow of data on a timeline: calls that wrote what a call reads, and those that read it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from inspector.join.operands import Operands

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
_MOST = 24  # arrows of one event in each direction


class DataFlow:
    """Writers and readers of each value, by instruction.

    Args:
        operands: what each instruction reads and writes
    """

    def __init__(self, operands: Sequence[Operands]) -> None:
        self._operands = operands
        self._writers: dict[int, list[int]] = {}
        self._readers: dict[int, list[int]] = {}
        for step, touched in enumerate(operands):
            for value in touched.writes:
                self._writers.setdefault(value, []).append(step)
            for value in touched.reads:
                self._readers.setdefault(value, []).append(step)

    def producers(self, step: int) -> tuple[int, ...]:
        """Return the instructions that last wrote what an instruction reads."""
        if not 0 <= step < len(self._operands):
            return ()
        found: dict[int, None] = {}
        for value in self._operands[step].reads:
            writers = self._writers.get(value, [])
            place = bisect_left(writers, step) - 1
            if place >= 0:
                found[writers[place]] = None
        return tuple(found)

    def consumers(self, step: int) -> tuple[int, ...]:
        """Return the instructions that read what an instruction wrote, until it is overwritten."""
        if not 0 <= step < len(self._operands):
            return ()
        found: dict[int, None] = {}
        for value in self._operands[step].writes:
            writers, readers = self._writers.get(value, []), self._readers.get(value, [])
            after = bisect_right(writers, step)
            last = writers[after] if after < len(writers) else len(self._operands)
            for reader in readers[bisect_right(readers, step) :]:
                if reader > last:
                    break
                found[reader] = None
        return tuple(sorted(found))


def flow_arrows(
    flow: DataFlow, event: int, calls: Ints, steps: Ints, spans: tuple[Floats, Floats], step: int
) -> list[tuple[int, int]]:
    """Return pairs of events, from the one that writes to the one that reads.

    Args:
        flow: of the method
        event: the selected one
        calls: rows of the calls of its run
        steps: instruction of each of these calls
        spans: begin and end of all events
        step: instruction of the selected event
    """
    start, end = spans
    own = calls[(steps == step) & (start[calls] <= start[event]) & (end[calls] >= end[event])]
    here = int(own[0]) if len(own) else event
    found: list[tuple[int, int]] = []
    for producer in flow.producers(step)[:_MOST]:
        before = calls[(steps == producer) & (end[calls] <= start[here])]
        if len(before):
            found.append((int(before[end[before].argmax()]), here))
    for consumer in flow.consumers(step)[:_MOST]:
        after = calls[(steps == consumer) & (start[calls] >= end[here])]
        if len(after):
            found.append((here, int(after[start[after].argmin()])))
    return found
