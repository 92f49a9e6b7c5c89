"""Attribution of the time of a method, and its only statistic.

All displays of durations use it: which events are complete runs, which represent an instruction,
which runs count, and the base of shares. The parts are means over the steady set of the recorded
runs, because only means add up: delegates, operators and control flow are sums over calls, the
remainder is unattributed, and together they are the total.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspector.files.session import Session
from inspector.join.links import link_block
from inspector.trace.blocks import Block
from inspector.trace.event_kinds import (
    CALLS,
    CONTROL,
    DELEGATE_CALL,
    OPERATOR_CALL,
    inside_delegates,
    named_events,
    whole_runs,
)
from inspector.trace.run_times import percentiles
from inspector.trace.steady import steady_runs
from inspector.trace.timed_blocks import timed_blocks
from inspector.trace.timing import is_time, scale_factor
from schema.backends import BACKENDS, backend_of
from schema.objects.identity_cache import identity_cache

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
_COARSEST_NS = float(max(backend.clock_ns for backend in BACKENDS.values()))
POINTS = (50.0, 10.0, 90.0, 0.0, 100.0)  # p50, p10, p90, min, max


def mean(samples: Floats, axis: int = -1) -> Floats:
    """Return the statistic of the samples of several runs: their mean.

    Shapes: one axis less than the samples
    """
    return np.asarray(samples.mean(axis=axis), np.float64)


def spread(samples: Floats, axis: int = -1) -> Floats:
    """Return p50, p10, p90, min and max over runs; percentiles of fewer than five are missing.

    Shapes: float64[5, …]
    """
    return percentiles(samples, POINTS, axis)


@dataclass(frozen=True, slots=True, eq=False)
class Attribution:
    """Classification of the events of a block.

    Attributes:
        whole: runs of a method
        calls: events that represent an instruction: its call, or its kernel if no call is logged
        delegates: those of them that call a delegate
        operators: those that call an operator
        control: those of control flow
        kernels: events inside operator calls

    Shapes: bool[events] each
    """

    whole: Mask
    calls: Mask
    delegates: Mask
    operators: Mask
    control: Mask
    kernels: Mask

    def indices(self) -> Ints:
        """Return the events that represent an instruction, in the order of the trace."""
        return np.flatnonzero(self.calls)


@identity_cache
def attribution(block: Block) -> Attribution:
    """Return the classification of the events of a block; its parts do not overlap."""
    layout = block.layout
    chain = (layout.chain >= 0) & ~inside_delegates(block)
    named = named_events(block, CALLS)
    numbered = chain & (layout.instruction != -1)
    called = _first(numbered & named, layout.instruction)
    lone = numbered & ~named & ~np.isin(layout.instruction, layout.instruction[called])
    alone = _first(lone, layout.instruction)
    return Attribution(
        whole=whole_runs(block),
        calls=called | alone,
        delegates=called & named_events(block, (DELEGATE_CALL,)),
        operators=(called & named_events(block, (OPERATOR_CALL,))) | alone,
        control=called & named_events(block, CONTROL),
        kernels=chain & ~named,
    )


def _first(events: Mask, instruction: Ints) -> Mask:
    """Return the first of the events of each instruction."""
    found = np.zeros(len(events), np.bool_)
    places = np.flatnonzero(events)
    found[places[np.unique(instruction[places], return_index=True)[1]]] = True
    return found


@identity_cache
def steady_set(block: Block) -> Mask:
    """Return which runs of a block its figures are made of.

    Where no run is logged as a whole the sum of its calls decides.

    Shapes: bool[runs]
    """
    parts = attribution(block)
    events = parts.whole if parts.whole.any() else parts.calls
    return steady_runs(block.total[:, events].sum(axis=1))


def of_steady_set(samples: Floats, steady: Mask, axis: int = 0) -> Floats:
    """Return the samples of the steady runs; the same array where all runs are."""
    return samples if steady.all() else np.compress(steady, samples, axis=axis)


def clock_ns(inner_ns: Floats, backend: str, tick_ns: float) -> float:
    """Return the step of the clock of a backend's events, in nanoseconds.

    That of its own profiler, where nothing contradicts it: the same backend may run in a runtime
    that times nodes by itself. Where the backend is unknown it is that of the coarsest profiler,
    if no time contradicts it.

    Args:
        inner_ns: times of its events
        backend: id, empty if unknown
        tick_ns: a tick of the trace
    """
    coarsest = _COARSEST_NS if not backend and inner_ns.any() else 0.0
    own = float(backend_of(backend).clock_ns) or coarsest
    return own if own > tick_ns and bool((inner_ns % own == 0).all()) else tick_ns


def whole_ns(block: Block, source: str) -> Floats | None:
    """Return the time of each run of a method in nanoseconds.

    Args:
        block: runs that are alike
        source: unit of their ticks

    Shapes: float64[runs]; None where no run is logged as a whole or ticks are not time
    """
    whole = attribution(block).whole
    if not whole.any() or not is_time(source):
        return None
    return np.asarray(block.total[:, whole].sum(axis=1) / scale_factor(source, "ns"), np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class MethodRuns:
    """The runs of one method in one trace file.

    Attributes:
        method: name, empty where unknown
        block: the runs
        times_ns: time of each, float64[runs]; those that were not logged to their end are left out
    """

    method: str
    block: Block
    times_ns: Floats


def method_runs(session: Session) -> list[MethodRuns]:
    """Return the runs of all methods that are logged as a whole, in the order of the traces."""
    found: list[MethodRuns] = []
    for block in timed_blocks(session.timed_dumps).blocks:
        times = whole_ns(block, session.options.source_time_scale)
        if times is not None:
            method = link_block(session, block).method or ""
            found.append(MethodRuns(method, block, times[np.isfinite(times)]))
    return found
