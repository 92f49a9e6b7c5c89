"""Times: one row per event, and consistent totals.

Time of a method = delegate calls + operators + control + unattributed. An OPERATOR_CALL contains
its kernel's own event; sums use the outer one only, and show what it adds as framework time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inspector.files.run_report import RunReport, run_report
from inspector.files.session import Session
from inspector.graph.methods import default_method
from inspector.join.links import BlockLinks, link_block
from inspector.profile.attribution import attribution, mean, of_steady_set, steady_set
from inspector.profile.rows import TARGET, BlockSamples, ProfileRows
from inspector.profile.run_kinds import kind_labels, run_kinds
from inspector.trace import timing
from inspector.trace.blocks import Block
from inspector.trace.run_times import RunTimes, run_times
from inspector.trace.timed_blocks import timed_blocks
from schema.errors import Severity
from schema.etdump.clock import marked_clock
from schema.objects.identity_cache import identity_cache
from schema.origins import ValueOrigin, origin_of_mark, weakest
from schema.program import instructions

UNATTRIBUTED, TRACING = "unattributed", "tracing"  # parts of a time
LOGGING = "logging of values"  # in place of tracing, where the traced runs did both
VALUES_LOGGED = "values logged"
WITH_TRACING = "with tracing"
TIMES_WITH_VALUES = (
    "Values were logged while the runs were timed: these are not the program's times"
)
PARTS_WITH_VALUES = (
    "Values were logged while operators and delegates were timed: only the times without a trace"
    " are the program's"
)
_OF_PARTS = "parts: "  # before a remark that the time of the whole method does not need


@dataclass(frozen=True, slots=True)
class MethodTime:
    """Time of one method, in ms: means over the steady set; the parts add up to method_ms.

    Attributes:
        method: name, empty when the method that ran is unknown
        traced: the recorded runs
        method_ms: time of a recorded run
        delegates_ms: inside delegate calls
        operators_ms: kernels with the framework time of calling them
        control_ms: jumps, moves and frees
        unattributed_ms: the rest
        kernels_ms: the kernels' own events, part of operators_ms
        blocks: which blocks of the profile it is the mean of
        label: where the runs are, when several methods are unknown; else empty
        origins: time inside delegate calls in ms, by the weakest origin that their events state
        bare: the runs without a trace; None where none are known
        traces: how many trace files the runs are in
        logged: whether values were logged in the recorded runs
    """

    method: str
    traced: RunTimes
    method_ms: float
    delegates_ms: float
    operators_ms: float
    control_ms: float
    unattributed_ms: float
    kernels_ms: float
    blocks: tuple[int, ...] = ()
    label: str = ""
    origins: Mapping[ValueOrigin, float] = field(default_factory=dict[ValueOrigin, float])
    bare: RunTimes | None = None
    traces: int = 1
    logged: bool = False

    @property
    def emulated(self) -> bool:
        """Return whether torch ran recorded graphs in place of delegates."""
        return ValueOrigin.EMULATED in self.origins

    @property
    def origin_words(self) -> str:
        """Return where the time of delegates comes from unless it is all measured, else empty."""
        known = [one for one in ValueOrigin if one in self.origins]
        if not known or known == [ValueOrigin.MEASURED]:
            return ""
        if len(known) == 1:
            return f"delegates are {known[0].words}"
        parts = " + ".join(f"{one.value} {self.origins[one]:.4g}" for one in known)
        return f"delegates are of several origins, {parts} ms; {known[-1].words}"

    @property
    def headline(self) -> RunTimes:
        """Return the runs of the latency: those without a trace where they are known."""
        return self.bare or self.traced

    @property
    def runs(self) -> int:
        """Return the number of recorded runs."""
        return len(self.traced.times)

    @property
    def bare_ms(self) -> float | None:
        """Return the mean without a trace, None where it is not known."""
        return None if self.bare is None else self.bare.mean

    @property
    def latency_ms(self) -> float:
        """Return the time of a run: without a trace where that is known."""
        return self.method_ms if self.bare is None else self.bare.mean

    @property
    def tracing_ms(self) -> float | None:
        """Return what the trace adds to a run, None where that is unknown."""
        return None if self.bare is None else self.method_ms - self.bare.mean

    @property
    def tag(self) -> str:
        """Return the remarks to show with the latency; empty for the time without a trace."""
        return WITH_TRACING if self.bare is None else ""

    @property
    def title(self) -> str:
        """Return the method in words, with where the runs are if only that distinguishes them."""
        return self.method or (f"method unknown, {self.label}" if self.label else "method unknown")

    @property
    def attributed_ms(self) -> float:
        """Return the time attributed to instructions."""
        return self.delegates_ms + self.operators_ms + self.control_ms

    @property
    def parts(self) -> tuple[tuple[str, float], ...]:
        """Return the parts that add up to method_ms by name, in ms."""
        return (
            ("delegates", self.delegates_ms),
            ("operators", self.operators_ms),
            ("control", self.control_ms),
            (UNATTRIBUTED, self.unattributed_ms),
        )

    @property
    def latency_parts(self) -> tuple[tuple[str, float], ...]:
        """Return the parts that add up to latency_ms by name, in ms: less what recording adds."""
        return (*self.parts, (LOGGING if self.logged else TRACING, -(self.tracing_ms or 0.0)))


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """The events of all blocks and the time of each method.

    Attributes:
        rows: one per event; a row object is made on first access
        methods: mean times
        unit: unit of the ticks
        unit_assumed: the unit is not known from the file
        unit_is_time: False when the trace counts cycles; every ms is then None
        values_logged: the timed runs logged values, which takes longer than most operators
    """

    rows: ProfileRows
    methods: tuple[MethodTime, ...]
    unit: str
    unit_assumed: bool
    unit_is_time: bool
    values_logged: bool

    @property
    def tags(self) -> tuple[str, ...]:
        """Return the remarks to show with each time of the session; empty for nothing."""
        assumed = f"{self.unit} assumed" if self.unit_assumed else ""
        return tuple(filter(None, (VALUES_LOGGED if self.values_logged else "", assumed)))

    def tags_of(self, time: MethodTime | None) -> tuple[str, ...]:
        """Return the remarks to show with the time of one method, which may be without a trace."""
        if time is None or time.bare is None:
            return self.tags
        return tuple(f"{_OF_PARTS}{tag}" for tag in self.tags)

    @property
    def values_warning(self) -> str:
        """Return which times are not the program's as values were logged; empty without any."""
        if not self.values_logged:
            return ""
        known = all(time.bare is not None for time in self.methods) and bool(self.methods)
        return PARTS_WITH_VALUES if known else TIMES_WITH_VALUES


def plain_tag(tag: str) -> str:
    """Return a remark of `Profile.tags_of` without the mark of a remark on the parts only."""
    return tag.removeprefix(_OF_PARTS)


@identity_cache
def analyse_profile(session: Session) -> Profile:
    """Return the profile of the traces of a session; empty without one."""
    options = session.options
    sources: list[BlockSamples] = []
    times: list[MethodTime] = []
    for number, block in enumerate(timed_blocks(session.timed_dumps).blocks):
        links = link_block(session, block)
        time = _method_time(block, links, options.source_time_scale)
        if time is not None:
            times.append(replace(time, blocks=(number,)))
        shared = time is not None and not session.times_with_values
        method_ms = time.method_ms if time is not None and shared else None
        sources.append(BlockSamples(block, links, options.source_time_scale, method_ms))
    methods = _methods(session, times, sources)
    is_time = timing.is_time(options.source_time_scale)
    return Profile(
        ProfileRows(tuple(sources)),
        methods,
        options.source_time_scale,
        unit_assumed(session),
        is_time,
        session.times_with_values,
    )


def time_of(session: Session, method: str) -> MethodTime | None:
    """Return the time of a method, None for one that no run is known to be of.

    Runs that executed no instruction name no method; they are of the only one that there is.
    """
    times = analyse_profile(session).methods
    found = next((one for one in times if one.method == method), None)
    if found is not None or [one.method for one in times] != [""]:
        return found
    blocks = timed_blocks(session.timed_dumps).blocks
    executed = any((blocks[one].layout.chain >= 0).any() for one in times[0].blocks)
    return times[0] if not executed and _methods_that_run(session) == (method,) else None


def first_method(session: Session) -> str:
    """Return the method to show first, ``forward`` among equals; empty without one.

    A method that ran comes before one that computes, and that before one that returns a constant,
    of which programs of language models have many.
    """
    methods = session.methods
    timed = set[str]()
    if len(methods) > 1 and session.dumps:
        timed = {one.method for one in analyse_profile(session).methods}
    ran = tuple(method for method in methods if method in timed)
    return default_method(ran or _methods_that_run(session) or methods or ("",))


def _methods_that_run(session: Session) -> tuple[str, ...]:
    if session.program is None:
        return session.methods
    plans = session.program.plans
    return tuple(plan.name for plan in plans if plan.inputs or instructions(plan))


def _methods(
    session: Session, times: list[MethodTime], sources: list[BlockSamples]
) -> tuple[MethodTime, ...]:
    """Return one mean a method; runs that contradict each other are not one unknown method."""
    blocks = [sources[time.blocks[0]].block for time in times if not time.method]
    kinds = iter(run_kinds(blocks))
    groups: dict[tuple[str, int], list[MethodTime]] = {}
    for time in times:
        key = (time.method, 0 if time.method else next(kinds))
        groups.setdefault(key, []).append(time)
    unknown = [parts[0] for (method, _), parts in groups.items() if not method]
    files = [session.timed_dumps[sources[time.blocks[0]].block.dump].file for time in unknown]
    labels = iter(kind_labels(files) if len(files) > 1 else [""] * len(files))
    reports = [run_report(dump) for dump in session.timed_dumps]
    named = {report.only_method for report in reports if report is not None}
    lone = next(iter(named)) if len(groups) == len(named) == 1 else ""  # a report names its method
    found: list[MethodTime] = []
    for (method, _), parts in groups.items():
        dumps = dict.fromkeys(sources[time.blocks[0]].block.dump for time in parts)
        report = reports[next(iter(dumps))] if len(dumps) == 1 else None
        bare = _bare_runs(report, method or lone)
        label = "" if method else next(labels)
        known = replace(_mean(method, parts), label=label, bare=bare, traces=len(dumps))
        found.append(replace(known, logged=session.times_with_values))
    return tuple(found)


def _bare_runs(report: RunReport | None, method: str) -> RunTimes | None:
    """Return the runs of a method without a trace; None where they are not known.

    Args:
        report: beside the only trace of the method
        method: that ran
    """
    if report is None or report.only_method != method or not report.run_ms:
        return None
    return RunTimes(report.run_ms, (len(report.run_ms),))


def unit_assumed(session: Session) -> bool:
    """Return whether the unit of the ticks is not known: not chosen, not in a report or a trace.

    Both toolchains that write reports log nanoseconds of the machine that they run on. A trace
    without events has no ticks.
    """
    if not session.options.time_scale_assumed:
        return False
    return not all(
        marked_clock(dump) or run_report(dump) is not None
        for dump in session.timed_dumps
        if any(data.events for data in dump.run_data)
    )


def why_no_events(session: Session) -> str:
    """Return why the traces of a session have no events, empty where they have some."""
    if not session.dumps or len(analyse_profile(session).rows):
        return ""
    if any(one.severity is Severity.ERROR for dump in session.dumps for one in dump.issues):
        return "The trace is damaged: no event of it can be read; record the run again"
    return "The trace holds no events: the runtime was built or run without tracing"


def _method_time(block: Block, links: BlockLinks, source: str) -> MethodTime | None:
    if not timing.is_time(source):
        return None
    parts = attribution(block)
    scale = timing.scale_factor(source, TARGET)
    traced = run_times(block.total[:, parts.whole].sum(axis=1) / scale)
    if not parts.whole.any() or traced is None:
        return None
    means = mean(of_steady_set(block.total, steady_set(block)), axis=0) / scale
    means = np.where(np.isnan(means), 0.0, means)
    delegates, operators, control = (
        float(means[part].sum()) for part in (parts.delegates, parts.operators, parts.control)
    )
    total = float(means[parts.whole].sum())
    return MethodTime(
        method=links.method or "",
        traced=traced,
        method_ms=total,
        delegates_ms=delegates,
        operators_ms=operators,
        control_ms=control,
        unattributed_ms=total - (delegates + operators + control),
        kernels_ms=float(means[parts.kernels].sum()),
        origins=_origins(block, parts.delegates, means),
    )


def _origins(
    block: Block, delegates: NDArray[Any], means: NDArray[Any]
) -> Mapping[ValueOrigin, float]:
    """Return the time of delegate calls by the weakest origin of the events inside."""
    found: dict[int, set[ValueOrigin]] = {}
    for table in block.runs[:1]:
        marked = np.flatnonzero(table.metadata >= 0)
        blobs = table.metadata[marked]
        places: set[int] = set(blobs.tolist())
        known = {place: origin_of_mark(bytes(table.blobs[place])) for place in places}
        pairs = np.unique(np.stack((table.instruction_id[marked], blobs), 1), axis=0)
        for instruction, blob in pairs.tolist():
            origin = known[blob]
            if origin is not None:
                found.setdefault(int(instruction), set()).add(origin)
    total: dict[ValueOrigin, float] = {}
    for event in np.flatnonzero(delegates).tolist() if found else ():
        number = int(block.runs[0].instruction_id[block.layouts[0].last[event]])
        origin = weakest(found.get(number, ()))
        if origin is not None:
            total[origin] = total.get(origin, 0.0) + float(means[event])
    return total


def _mean(name: str, parts: list[MethodTime]) -> MethodTime:
    """Return the mean over the steady runs of several blocks."""
    runs = sum(len(part.traced.steady) for part in parts)

    def mean(field: str) -> float:
        return sum(len(part.traced.steady) * float(getattr(part, field)) for part in parts) / runs

    return MethodTime(
        name,
        RunTimes(
            tuple(time for part in parts for time in part.traced.times),
            tuple(len(part.traced.times) for part in parts),
        ),
        mean("method_ms"),
        mean("delegates_ms"),
        mean("operators_ms"),
        mean("control_ms"),
        mean("unattributed_ms"),
        mean("kernels_ms"),
        tuple(block for part in parts for block in part.blocks),
        origins={
            origin: sum(len(part.traced.steady) * part.origins.get(origin, 0.0) for part in parts)
            / runs
            for origin in ValueOrigin
            if any(origin in part.origins for part in parts)
        },
    )
