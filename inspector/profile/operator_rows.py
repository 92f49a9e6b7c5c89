"""One row an operator that ran: kernels with the cost of calling them, operators inside delegates.

Rows add up to the method: an OPERATOR_CALL stands for its kernel, a delegate is represented by its
inner operators and by what they leave of its call, and the rest of the method is unattributed.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import overload

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from inspector.files.session import Session
from inspector.join.links import Link, link_block
from inspector.profile.block_names import block_labels
from inspector.profile.methods import time_of
from inspector.profile.operator_columns import (
    INNER,
    KINDS,
    REST,
    BlockRows,
    block_rows,
    delegate_label,
    with_tracing,
)
from inspector.trace.event_kinds import DELEGATE_CALL
from inspector.trace.timed_blocks import timed_blocks
from inspector.units import NS_PER_MS
from schema.objects.identity_cache import identity_cache

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class OperatorRow:
    """One operator.

    Attributes:
        label: operator name; kernel name inside a delegate
        module: dotted path, empty when unknown
        delegate: ``XNNPACK 0``, empty when not delegated
        block: name of the block, that no other block has
        link: how it was matched
        event: row of the profile, None for rests
        instruction: index in the chain, None for unattributed time
        samples_ns: time of each run, all passes of a loop together; None where it is not time
        steady: which runs are in the steady set, bool[runs]
        mean_ns: mean over these; None where it is not time
        tick_ns: step of the clock, 0 for a difference of times
        kernel_ns: the kernel's own time, mean over them; None when it was not logged
        passes: how often it happens in a run
        kind: one of KINDS
        share: of the method's mean time, None when that is unknown
        kernel: its name, where a backend logged one
    """

    label: str
    module: str
    delegate: str
    block: str
    link: Link
    event: int | None
    instruction: int | None
    samples_ns: Floats | None
    steady: NDArray[np.bool_]
    mean_ns: float | None
    tick_ns: float
    kernel_ns: float | None
    passes: int
    kind: str
    share: float | None
    kernel: str = ""

    @property
    def in_delegate(self) -> bool:
        """Return whether the time was spent by a delegate, also by one nothing is known of."""
        inside = self.kind in (KINDS[INNER], KINDS[REST])
        return bool(self.link.backend) or inside or self.label == DELEGATE_CALL


class OperatorRows(Sequence[OperatorRow]):
    """All rows of a method; a row is made on first access.

    Attributes:
        parts: the rows of each block, as columns
    """

    def __init__(self, parts: Sequence[BlockRows]) -> None:
        self.parts = tuple(parts)
        self._starts = [0]
        for part in parts:
            self._starts.append(self._starts[-1] + len(part))

    @override
    def __len__(self) -> int:
        return self._starts[-1]

    @overload
    def __getitem__(self, index: int) -> OperatorRow: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[OperatorRow, ...]: ...
    @override
    def __getitem__(self, index: int | slice) -> OperatorRow | tuple[OperatorRow, ...]:
        if isinstance(index, slice):
            return tuple(self[at] for at in range(*index.indices(len(self))))
        part, row = self.place(index + len(self) if index < 0 else index)
        return _row(part, row)

    def place(self, index: int) -> tuple[BlockRows, int]:
        """Return the block of a row and the row's number in it, without making the row.

        Raises: IndexError
        """
        if not 0 <= index < len(self):
            raise IndexError(index)
        at = bisect.bisect_right(self._starts, index) - 1
        return self.parts[at], index - self._starts[at]

    def of_events(self, events: Iterable[int]) -> list[OperatorRow]:
        """Return the rows that stand for rows of the profile."""
        requested = np.array(sorted(events), np.int64)
        return self._where(
            np.isin(part.events, requested) & (part.event >= 0) for part in self.parts
        )

    def of_calls(self, instructions: Iterable[int]) -> list[OperatorRow]:
        """Return the rows of instructions, without those inside of delegates."""
        requested = np.array(sorted(instructions), np.int64)
        return self._where(
            np.isin(part.instruction, requested) & (part.event >= 0) & (part.kind != INNER)
            for part in self.parts
        )

    def of_instructions(self, instructions: Iterable[int]) -> list[OperatorRow]:
        """Return the rows of instructions with those inside delegates."""
        requested = np.array(sorted(instructions), np.int64)
        return self._where(
            np.isin(part.instruction, requested) & (part.event >= 0) for part in self.parts
        )

    def of_delegate(self, index: int) -> list[OperatorRow]:
        """Return the rows of the calls of a delegate."""
        return self._where(part.of_delegate(index) for part in self.parts)

    def _where(self, masks: Iterable[NDArray[np.bool_]]) -> list[OperatorRow]:
        return [
            _row(part, row)
            for part, mask in zip(self.parts, masks, strict=True)
            for row in np.flatnonzero(mask).tolist()
        ]


def _row(part: BlockRows, row: int) -> OperatorRow:
    link, event = part.links[int(part.link[row])], int(part.event[row])
    kernel, share = float(part.kernel_ns[row]), float(part.share[row])
    return OperatorRow(
        part.labels[int(part.label[row])],
        part.modules[int(part.link[row])],
        delegate_label(link),
        part.name,
        link,
        int(part.events[row]) if event >= 0 else None,
        int(part.instruction[row]) if event >= 0 else None,
        part.samples[row] if part.timed[row] else None,
        part.steady,
        float(part.mean_ns[row]) if part.timed[row] else None,
        float(part.tick_ns[row]),
        kernel if part.has_kernel[row] else None,
        int(part.passes[row]),
        KINDS[int(part.kind[row])],
        None if np.isnan(share) else share,
        part.kernel_names[int(part.kernel[row])],
    )


@identity_cache
def operator_rows(session: Session, method: str) -> OperatorRows:
    """Return the rows of all runs of a method; empty without a trace.

    The cost of tracing is a row of each block, where it is known of all runs.
    """
    parts: dict[int, BlockRows] = {}
    start = 0
    blocks = timed_blocks(session.timed_dumps).blocks
    labels = block_labels(blocks, session.timed_dumps)
    for number, (block, label) in enumerate(zip(blocks, labels, strict=True)):
        inside = bool((block.layout.chain >= 0).any())
        if inside and link_block(session, block).method in (method, None):
            parts[number] = block_rows(session, method, block, start, label)
        start += len(block)
    time = time_of(session, method)
    if time is None or not set(parts) <= set(time.blocks):
        return OperatorRows(tuple(parts.values()))
    found = _of_method(list(parts.values()), time.method_ms * NS_PER_MS)
    if time.tracing_ms is not None:
        added = time.tracing_ms * NS_PER_MS
        found = [with_tracing(part, added, logged=time.logged) for part in found]
    return OperatorRows(found)


def _of_method(parts: list[BlockRows], method_ns: float) -> list[BlockRows]:
    """Return the rows of several blocks with shares of the time of all runs of the method.

    A row of a block that a tenth of the runs is of has a tenth of the share that it has in these.
    """
    if len(parts) < 2 or not method_ns:
        return parts
    runs = sum(int(part.steady.sum()) for part in parts)
    found: list[BlockRows] = []
    for part in parts:
        share = part.mean_ns * (int(part.steady.sum()) / runs / method_ns)
        found.append(replace(part, share=np.where(np.isnan(part.share), np.nan, share)))
    return found
