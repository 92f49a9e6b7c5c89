"""Where the time went: one row an event, and totals that add up.

Time of a method = delegate calls + operators + control + unattributed. An OPERATOR_CALL contains
its kernel's own event; sums use the outer one only, and show what it adds as framework time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inspector import timing
from inspector.blocks import Block, trace_blocks
from inspector.links import BlockLinks, link_block
from inspector.profile_rows import EXECUTE, TARGET, BlockSamples, ProfileRows
from inspector.session import Session
from schema.identity_cache import identity_cache

GROUPS = {
    "DELEGATE_CALL": "delegates",
    "OPERATOR_CALL": "operators",
    "JF_CALL": "control",
    "MOVE_CALL": "control",
    "FREE_CALL": "control",
}


@dataclass(frozen=True, slots=True)
class MethodTime:
    """Mean time of one method over its runs, in ms; the parts add up to method_ms.

    Attributes:
        method: name, empty when the trace does not say which method ran
        runs: number of executions
        method_ms: time of the whole execution
        delegates_ms: inside delegate calls
        operators_ms: kernels with the framework time of calling them
        control_ms: jumps, moves and frees
        unattributed_ms: the rest
        kernels_ms: the kernels' own events, part of operators_ms
    """

    method: str
    runs: int
    method_ms: float
    delegates_ms: float
    operators_ms: float
    control_ms: float
    unattributed_ms: float
    kernels_ms: float

    @property
    def attributed_ms(self) -> float:
        """Return what is accounted for by instructions."""
        return self.delegates_ms + self.operators_ms + self.control_ms


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """The events of all blocks and the time of each method.

    Attributes:
        rows: one an event; a row object is made when it is asked for
        methods: mean times
        unit: unit of the ticks
        unit_assumed: nobody said what the unit is
        unit_is_time: False when the trace counts cycles; every ms is then None
    """

    rows: ProfileRows
    methods: tuple[MethodTime, ...]
    unit: str
    unit_assumed: bool
    unit_is_time: bool


@identity_cache
def analyse_profile(session: Session) -> Profile:
    """Return the profile of the traces of a session; empty without one."""
    options = session.options
    sources: list[BlockSamples] = []
    times: dict[str, list[MethodTime]] = {}
    for block in trace_blocks(session.dumps).blocks:
        links = link_block(session, block)
        time = _method_time(block, links, options.source_time_scale)
        if time is not None:
            times.setdefault(time.method, []).append(time)
        method_ms = time.method_ms if time is not None else None
        sources.append(BlockSamples(block, links, options.source_time_scale, method_ms))
    methods = tuple(_mean(name, parts) for name, parts in times.items())
    is_time = timing.is_time(options.source_time_scale)
    return Profile(
        ProfileRows(tuple(sources)),
        methods,
        options.source_time_scale,
        options.time_scale_assumed,
        is_time,
    )


def _method_time(block: Block, links: BlockLinks, source: str) -> MethodTime | None:
    if not timing.is_time(source):
        return None
    names = [block.event_name(event) for event in range(len(block))]
    whole = [event for event, name in enumerate(names) if name in EXECUTE]
    if not whole:
        return None
    scale = timing.scale_factor(source, TARGET)
    sums = {"delegates": 0.0, "operators": 0.0, "control": 0.0, "kernels": 0.0}
    means = block.total.mean(axis=0) / scale
    for event, name in enumerate(names):
        if block.layout.chain[event] < 0 or block.delegate_id(event) is not None:
            continue
        group = GROUPS.get(name, "kernels")
        if not np.isnan(means[event]):
            sums[group] += float(means[event])
    total = float(sum(means[event] for event in whole))
    attributed = sums["delegates"] + sums["operators"] + sums["control"]
    return MethodTime(
        links.method or "",
        len(block.runs),
        total,
        sums["delegates"],
        sums["operators"],
        sums["control"],
        total - attributed,
        sums["kernels"],
    )


def _mean(name: str, parts: list[MethodTime]) -> MethodTime:
    runs = sum(part.runs for part in parts)

    def mean(field: str) -> float:
        return sum(part.runs * float(getattr(part, field)) for part in parts) / runs

    return MethodTime(
        name,
        runs,
        mean("method_ms"),
        mean("delegates_ms"),
        mean("operators_ms"),
        mean("control_ms"),
        mean("unattributed_ms"),
        mean("kernels_ms"),
    )
