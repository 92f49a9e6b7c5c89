"""The flow of data on a timeline: calls that wrote what a call reads, and those that read it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from inspector.join.operands import Operands

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
_MOST = 24  # arrows of one event in each direction


class _TouchingSteps:
    """The instructions that touch each value: two columns, where lists take eight times as much."""

    def __init__(self, touched: Iterable[Sequence[int]]) -> None:
        of_steps = list(touched)
        values = np.fromiter(chain.from_iterable(of_steps), np.int64)
        order = np.argsort(values, kind="stable")
        self._values = values[order]
        self._steps = np.repeat(np.arange(len(of_steps)), [len(one) for one in of_steps])[order]

    def of(self, value: int) -> Ints:
        """Return the instructions that touch a value, in order."""
        first, end = np.searchsorted(self._values, [value, value + 1])
        return self._steps[first:end]


class DataFlow:
    """Writers and readers of each value, by instruction.

    Args:
        operands: what each instruction reads and writes
    """

    def __init__(self, operands: Sequence[Operands]) -> None:
        self._operands = operands
        self._writers = _TouchingSteps(one.writes for one in operands)
        self._readers = _TouchingSteps(one.reads for one in operands)

    def producers(self, step: int) -> tuple[int, ...]:
        """Return the instructions that last wrote what an instruction reads."""
        if not 0 <= step < len(self._operands):
            return ()
        found: dict[int, None] = {}
        for value in self._operands[step].reads:
            writers = self._writers.of(value)
            before = writers[: writers.searchsorted(step)]
            if len(before):
                found[int(before[-1])] = None
        return tuple(found)

    def consumers(self, step: int) -> tuple[int, ...]:
        """Return the instructions that read what an instruction wrote, until it is overwritten."""
        if not 0 <= step < len(self._operands):
            return ()
        found: set[int] = set()
        for value in self._operands[step].writes:
            writers, readers = self._writers.of(value), self._readers.of(value)
            later = writers[writers.searchsorted(step, "right") :]
            last = int(later[0]) if len(later) else len(self._operands)
            found.update(readers[(readers > step) & (readers <= last)].tolist())
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
