"""The events of a profile as rows made on demand over columns, so that a million cost nothing."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

from inspector.join.links import BlockLinks, Link
from inspector.join.operator_names import wraps_a_write
from inspector.profile.attribution import mean, of_steady_set, spread, steady_set
from inspector.trace import timing
from inspector.trace.blocks import Block
from inspector.trace.event_kinds import inside_delegates, whole_runs
from schema.etrecord.graph.names import callable_name
from schema.graph import GraphNode

TARGET = "ms"
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Statistics:
    """Statistics of one event over the steady runs; percentiles are None for fewer than five."""

    avg: float
    p10: float | None
    p50: float | None
    p90: float | None
    min: float
    max: float


@dataclass(frozen=True, slots=True, eq=False)
class ProfileRow:
    """One event of one block.

    Attributes:
        block: number of the block in the session
        event: number of the event in the block
        block_name: name of the block
        event_name: as the stock Inspector names it
        op_types: operators of the recorded nodes, in graph order
        instruction_id: as logged, None outside of instructions
        delegate_debug_id: the backend's own id, None outside of delegates
        is_delegated_op: whether it happened inside a delegate
        delegate_backend_name: backend, also of DELEGATE_CALL itself; empty when not delegated
        link: how it was matched
        raw_ticks: duration a run, of the last occurrence in the run
        raw_ms: the same in ms; None where the ticks are not time
        statistics: over raw_ms, else over raw_ticks; None without a duration
        occurrences: how often it happens in one run
        total_ms: mean over the steady runs of all occurrences together
        share: total_ms over the method's mean time, None outside of a method or without time
        stack_traces: node name -> traceback of the recorded nodes
        module_hierarchy: node name -> dotted module path, innermost
        start_ticks: start a run
    """

    block: int
    event: int
    block_name: str
    event_name: str
    op_types: tuple[str, ...]
    instruction_id: int | None
    delegate_debug_id: int | str | None
    is_delegated_op: bool
    delegate_backend_name: str
    link: Link
    raw_ticks: NDArray[np.float64]
    raw_ms: NDArray[np.float64] | None
    statistics: Statistics | None
    occurrences: int
    total_ms: float | None
    share: float | None
    stack_traces: dict[str, str]
    module_hierarchy: dict[str, str]
    start_ticks: NDArray[np.uint64]


class BlockSamples:
    """The samples of one block in ms, with their percentiles: numpy over columns, not rows.

    Shapes: values float64[runs, events]; percentiles float64[5, events]; means, totals, shares
        float64[events]; NaN where there is no duration

    Attributes:
        values: duration of the last occurrence in each run; ticks where ticks are not time
        steady: which runs are in the steady set, bool[runs]
        percentiles: p50, p10, p90, min and max over the steady runs
        totals: mean over the steady runs of all occurrences together
        shares: totals over the method's mean time
        is_time: whether the event's ticks are time
    """

    def __init__(
        self, block: Block, links: BlockLinks, source: str, method_ms: float | None
    ) -> None:
        self.block = block
        self.links = links
        self.source = source
        scale = timing.scale_factor(source, TARGET) if timing.is_time(source) else 1.0
        layout = block.layout
        self.inner = inside_delegates(block)
        # Inside delegates the stock tool scales both ends before it subtracts.
        ends = block.end / scale - block.start / scale
        plain = ~self.inner | (block.start > block.end).any(axis=0)
        values = np.where(plain, block.elapsed / scale, ends)
        self.values: Floats = np.where(np.isnan(block.elapsed), np.nan, values)
        self.steady = steady_set(block)
        steady = of_steady_set(self.values, self.steady)
        self.percentiles: Floats = spread(steady, axis=0)
        self.means: Floats = mean(steady, axis=0)
        self.totals: Floats = mean(of_steady_set(block.total, self.steady), axis=0) / scale
        self.shares: Floats = np.full(len(block), np.nan)
        if method_ms:
            inside = (layout.chain >= 0) | whole_runs(block)
            self.shares = np.where(inside, self.totals / method_ms, np.nan)

    def __len__(self) -> int:
        return len(self.block)

    def is_time(self, event: int) -> bool:
        """Return whether the ticks of an event are time."""
        backend = self.links.link(event).backend if self.inner[event] else ""
        return timing.is_time(self.source, backend)

    def statistics(self, event: int) -> Statistics | None:
        """Return the statistics of one event, None when it has no duration."""
        average = float(self.means[event])
        if np.isnan(average):
            return None
        points: list[float] = self.percentiles[:, event].tolist()
        p50, p10, p90 = (None if np.isnan(point) else point for point in points[:3])
        return Statistics(average, p10, p50, p90, *points[3:])


class ProfileRows(Sequence[ProfileRow]):
    """All rows of a profile, block after block."""

    def __init__(self, sources: tuple[BlockSamples, ...]) -> None:
        self.sources = sources
        self._starts = [0]
        for source in sources:
            self._starts.append(self._starts[-1] + len(source))

    def __len__(self) -> int:
        return self._starts[-1]

    @overload
    def __getitem__(self, index: int) -> ProfileRow: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[ProfileRow, ...]: ...
    def __getitem__(self, index: int | slice) -> ProfileRow | tuple[ProfileRow, ...]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        at = index + len(self) if index < 0 else index
        if not 0 <= at < len(self):
            raise IndexError(index)
        number = self._source(at)
        return _row(number, self.sources[number], at - self._starts[number])

    def _source(self, index: int) -> int:
        return bisect.bisect_right(self._starts, index) - 1

    def place(self, index: int) -> tuple[BlockSamples, int]:
        """Return the block of a row and the event's number in it, without making the row."""
        number = self._source(index)
        return self.sources[number], index - self._starts[number]

    def column(self, name: str) -> Floats:
        """Return a number column over all rows: avg, p10, p50, p90, min, max, total or share."""
        points = ("p50", "p10", "p90", "min", "max")
        if name in points:
            parts = [source.percentiles[points.index(name)] for source in self.sources]
        else:
            field = {"avg": "means", "total": "totals", "share": "shares"}[name]
            parts = [getattr(source, field) for source in self.sources]
        return np.concatenate(parts) if parts else np.zeros(0)


def _row(number: int, source: BlockSamples, event: int) -> ProfileRow:
    block, link = source.block, source.links.link(event)
    statistics = source.statistics(event)
    timed = statistics is not None and source.is_time(event)
    share = float(source.shares[event])
    identifier = block.delegate_id(event)
    found = source.links.recorded(link)
    return ProfileRow(
        block=number,
        event=event,
        block_name=block.name,
        event_name=block.event_name(event),
        op_types=tuple(_op_type(node) for node in found),
        instruction_id=block.instruction(event) if block.layout.chain[event] >= 0 else None,
        delegate_debug_id=identifier,
        is_delegated_op=identifier is not None,
        delegate_backend_name=link.backend,
        link=link,
        raw_ticks=block.elapsed[:, event],
        raw_ms=source.values[:, event] if timed else None,
        statistics=statistics,
        occurrences=int(block.layout.occurrences[event]),
        total_ms=float(source.totals[event]) if timed else None,
        share=share if timed and not np.isnan(share) else None,
        stack_traces={node.name: node.stack_trace for node in found},
        module_hierarchy={node.name: node.module_path for node in found},
        start_ticks=block.start[:, event],
    )


def _op_type(node: GraphNode) -> str:
    """Return an operator as the stock tool names it: outside the edge dialect without namespace."""
    raw = str(node.attributes.get("raw_target", ""))
    return callable_name(raw) if raw and not wraps_a_write(raw) else node.target
