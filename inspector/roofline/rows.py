"""Operators with their work, their time and the limit that they are near."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from inspector.files.machine import Machine, this_machine
from inspector.files.run_report import RunReport, run_report
from inspector.files.session import Session
from inspector.profile.methods import analyse_profile
from inspector.profile.operator_columns import INNER, KINDS, OPERATOR
from inspector.profile.operator_rows import OperatorRow, operator_rows
from inspector.roofline.calibration import Calibration, load_calibration
from inspector.roofline.method_work import MethodWork, method_work, work_note
from inspector.roofline.work import NO_WORK, Work, total, unknown
from inspector.units import NS_PER_MS, Quantity, format_quantity, format_time
from schema.backends import short_backend
from schema.errors import FormatError
from schema.objects.plural import plural
from schema.program import instructions
from schema.program.model import JumpFalseCall, Tensor

NEAR = 0.5  # share of a limit from which an operator is bound by it
LOW = 0.2  # share of both limits below which neither explains the time
IN_CACHE = 1.1  # share of the memory's bandwidth above which bytes did not come from there
SHORT_NS = 20_000.0  # a call this short is mostly dispatch where both shares are low
_STEPS = 3.0  # of its clock that a time takes at least to give a rate: fewer are off by a third
COARSE = "its clock is too coarse for a rate"
SIZES = "upper bounds of dynamic sizes, which the runs may not have had: no rate"
_FLOAT32 = "float32"


class Limit(str, Enum):
    """The limit that an operator is near."""

    COMPUTE = "compute-bound"
    MEMORY = "memory-bound"
    OVERHEAD = "overhead-bound"
    NEITHER = "near no limit"
    BEYOND = "above the measured peak"
    UNKNOWN = ""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits that the operators of one session are held against.

    Attributes:
        calibration: of this machine, None if it is not calibrated
        threads: of the run; of the calibration where the run is unknown
        note: what the comparison assumes, empty for nothing
        comparable: whether the traces are of this machine, as far as their reports tell
        at_bounds: whether the runs had the upper bounds of dynamic sizes, as the work does
    """

    calibration: Calibration | None = None
    threads: int = 1
    note: str = ""
    comparable: bool = True
    at_bounds: bool = True

    def peak(self, dtype: str) -> float | None:
        """Return the FLOP/s of a dtype; float32 where an operator has no dtype of matmuls."""
        found = self.calibration
        one = found.peak(dtype or _FLOAT32, self.threads) if found is not None else None
        return None if one is None else one.median

    @property
    def missing(self) -> str:
        """Return why there are no limits, empty where there are."""
        if self.calibration is None:
            return "not calibrated"
        if self.threads not in self.calibration.threads:
            return f"not calibrated for {plural(self.threads, 'thread')}"
        return ""

    @property
    def bandwidth(self) -> float | None:
        """Return the bytes a second of the memory."""
        one = self.calibration.bandwidth(self.threads) if self.calibration is not None else None
        return None if one is None else one.median


@dataclass(frozen=True, slots=True)
class RooflineRow:
    """An operator, or a method as a whole.

    Attributes:
        label: operator name; node name inside of a delegate
        module: dotted path, empty when unknown
        delegate: ``XNNPACK 0``, empty when not delegated
        backend: its id, empty when not delegated
        instruction: index over all chains, None if unknown
        event: row of the profile, None without a trace
        node: recorded node or payload node, empty if unknown
        index: of the delegate, None outside
        passes: how often it happens in a run
        work: of all passes
        time_ns: of all passes, the statistic of the project; None without one
        share_of_time: of the method's time
        flops_per_s: achieved
        bytes_per_s: achieved
        share: of what is attainable at its intensity
        bound: the limit it is near
        is_coarse: whether the time is of so few steps of its clock that it gives no rates
        tick_ns: step of the clock of the time, 0 for none
        has_other_sizes: whether the runs may have had other sizes than the work, hence no rates
    """

    label: str
    module: str
    delegate: str
    backend: str
    instruction: int | None
    event: int | None
    node: str
    index: int | None
    passes: int
    work: Work
    time_ns: float | None
    share_of_time: float | None
    flops_per_s: float | None = None
    bytes_per_s: float | None = None
    share: float | None = None
    bound: Limit = Limit.UNKNOWN
    is_coarse: bool = False
    tick_ns: float = 0.0
    has_other_sizes: bool = False

    @property
    def without_rate(self) -> str:
        """Return why there is no rate, or not all of the work; empty for nothing."""
        coarse, sizes = COARSE if self.is_coarse else "", SIZES if self.has_other_sizes else ""
        return self.work.reason or coarse or sizes

    @property
    def words(self) -> str:
        """Return the limit in words, with the time of a call where that is what it costs."""
        if self.bound is not Limit.OVERHEAD or self.time_ns is None:
            return self.bound.value
        return f"{self.bound.value}: {format_time(self.time_ns / max(1, self.passes))} a call"


@dataclass(frozen=True, slots=True, eq=False)
class Roofline:
    """The operators of a method and the method itself.

    Attributes:
        rows: in the order of the trace, else of the instructions
        method: all of them together, with the time of the method
        limits: they were held against
        unknown: labels of operators whose work is missing, with the reason
    """

    rows: tuple[RooflineRow, ...]
    method: RooflineRow
    limits: Limits
    unknown: tuple[tuple[str, str], ...]


def known_limits(session: Session) -> Limits:
    """Return the limits of this machine for a session; none where the calibration is unreadable."""
    try:
        calibration = load_calibration()
    except (FormatError, OSError):
        calibration = None
    return limits_of(session, calibration)


def limits_of(
    session: Session, calibration: Calibration | None, threads: int | None = None
) -> Limits:
    """Return the limits for a session, and what the comparison assumes.

    Args:
        session: whose traces are held against them
        calibration: of this machine
        threads: instead of those of the run
    """
    reports = [run_report(dump) for dump in session.timed_dumps]
    known = {report.machine for report in reports if report is not None and report.machine}
    used = {report.threads for report in reports if report is not None and report.threads}
    count = threads or (max(used) if used else 1)
    devices = {report.device.name for report in reports if report is not None and report.device}
    here = _machine_note(session, known)
    if devices:
        here = f"the trace is of {', '.join(sorted(devices))}, the limits are of {this_machine()}"
    notes = [*analyse_profile(session).tags, here if calibration is not None else ""]
    notes.append(work_note(session))
    if session.timed_dumps and not used and threads is None:
        notes.append("threads of the run unknown, 1 assumed")
    if calibration is not None and count not in calibration.threads:
        notes.append(f"not calibrated for {count} threads: --calibrate --threads {count}")
    note = "; ".join(filter(None, notes))
    return Limits(calibration, count, note, not here, _at_bounds(session, reports))


def _at_bounds(session: Session, reports: Sequence[RunReport | None]) -> bool:
    """Return whether all runs are known to have had inputs of the upper bounds of their sizes."""
    program = session.program
    if program is None:
        return False
    for report in reports:
        if report is None or report.only_method not in session.methods:
            return False
        plan = program.plan(report.only_method)
        values = [plan.values[index].val for index in plan.inputs]
        bounds = [list(one.sizes) for one in values if isinstance(one, Tensor)]
        if bounds != [list(one.shape) for one in report.inputs if one.kind == "tensor"]:
            return False
    return True


def _machine_note(session: Session, known: set[Machine]) -> str:
    if not session.timed_dumps:
        return ""
    others = [machine for machine in known if machine != this_machine()]
    if others:
        return f"the trace is of another machine ({others[0]}), the limits are of {this_machine()}"
    return (
        "" if known else f"the machine of the trace is unknown; the limits are of {this_machine()}"
    )


def roofline(session: Session, method: str, limits: Limits) -> Roofline:
    """Return the operators of a method held against limits."""
    work = method_work(session, method)
    timed = [row for row in operator_rows(session, method) if row.kind in COUNTED]
    if timed:
        rows = [_timed(row, found, limits) for row, found in _works(work, timed)]
    else:
        rows = [_untimed(work, at) for at in range(len(work.operators))]
    parts = operator_rows(session, method).parts
    done = total(row.work for row in rows) if timed and len(parts) == 1 else work.total
    if done.flops is None and _runs_once(session, method, rows):
        done = work.total  # with the work of kernels whose events match no node
    whole = measured(_whole(session, method, done), limits)
    return Roofline(tuple(rows), whole, limits, _missing(rows))


def _runs_once(session: Session, method: str, rows: Sequence[RooflineRow]) -> bool:
    """Return whether a run has each instruction of a method exactly once."""
    program = session.program
    if program is None or any(row.passes != 1 for row in rows):
        return False
    calls = (one.instr_args for _, _, one in instructions(program.plan(method)))
    return not any(isinstance(one, JumpFalseCall) for one in calls)


COUNTED = (KINDS[OPERATOR], KINDS[INNER])  # kinds of rows that do work


def rows_at_limits(
    session: Session, method: str, rows: Sequence[OperatorRow], limits: Limits
) -> list[RooflineRow]:
    """Return some operators held against limits, without those of the rest of the method."""
    requested = {row.event for row in rows if row.kind in COUNTED}
    steps = {row.instruction for row in rows if row.instruction is not None}
    same = operator_rows(session, method).of_instructions(steps)  # events of one node count once
    known = _works(method_work(session, method), [row for row in same if row.kind in COUNTED])
    return [_timed(row, found, limits) for row, found in known if row.event in requested]


def _missing(rows: list[RooflineRow]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (row.label, row.work.reason)
        for row in rows
        if row.work.flops is None or row.work.nbytes is None
    )


def _works(work: MethodWork, rows: list[OperatorRow]) -> list[tuple[OperatorRow, Work]]:
    """Return each row with its work.

    A node that logs several events, such as an addition and its activation, is counted once, with
    the first of them.
    """
    seen: dict[tuple[object, ...], str] = {}
    found: list[tuple[OperatorRow, Work]] = []
    for row in rows:
        nodes = row.link.payload_nodes or ((row.link.node,) if row.link.node else row.link.nodes)
        key = (row.block, row.instruction, nodes)
        first = seen.setdefault(key, row.label) if nodes and row.kind == KINDS[INNER] else ""
        again = bool(first) and first is not row.label
        own = replace(NO_WORK, reason=f"counted with {first}") if again else _work_of(work, row)
        found.append((row, own))
    return found


def _work_of(work: MethodWork, row: OperatorRow) -> Work:
    link, step = row.link, row.instruction
    found = None
    if row.kind == KINDS[OPERATOR]:
        found = work.of_step(step) if step is not None else None
    elif step is not None and link.payload_nodes:
        found = work.inside(step, link.payload_nodes)
    if found is not None:
        return found
    names = (link.node,) if link.node else link.nodes
    parts = [work.recorded[name] for name in names if name in work.recorded]
    if not names or len(parts) != len(names):
        return unknown("not matched to a node")
    return total(parts)


def _timed(row: OperatorRow, work: Work, limits: Limits) -> RooflineRow:
    time = row.mean_ns
    link = row.link
    node = (link.payload_nodes or (link.node,) if row.kind == KINDS[INNER] else (link.node,))[0]
    built = RooflineRow(
        row.label,
        row.module,
        row.delegate,
        link.backend,
        row.instruction,
        row.event,
        node,
        link.delegate,
        row.passes,
        work.times(row.passes),
        time,
        row.share,
        is_coarse=time is not None and time < _STEPS * row.tick_ns * max(1, row.passes),
        tick_ns=row.tick_ns,
    )
    return measured(built, limits)


def only_work(work: Work) -> RooflineRow:
    """Return a row of which nothing but the work matters."""
    return RooflineRow("", "", "", "", None, None, "", None, 1, work, None, None)


def _untimed(work: MethodWork, at: int) -> RooflineRow:
    one = work.operators[at]
    backend = short_backend(one.backend) if one.backend else ""
    delegate = f"{backend} {one.delegate}" if one.delegate is not None else backend
    return RooflineRow(
        one.label,
        "",
        delegate,
        one.backend,
        one.instruction,
        None,
        one.node,
        one.delegate,
        1,
        one.work,
        None,
        None,
    )


def _whole(session: Session, method: str, done: Work) -> RooflineRow:
    """Return the method as a row: its time is the headline of the project, without a trace."""
    times = [one for one in analyse_profile(session).methods if one.method in (method, "")]
    time = times[0].latency_ms * NS_PER_MS if len(times) == 1 else None
    return RooflineRow(method, "", "", "", None, None, "", None, 1, done, time, None)


def measured(row: RooflineRow, limits: Limits) -> RooflineRow:
    """Return a row with its rates and its share of what is attainable."""
    work, time = row.work, row.time_ns
    if not time or time <= 0 or row.is_coarse:
        return row
    if work.bounded and not limits.at_bounds:
        return replace(row, has_other_sizes=True)
    flops = None if work.flops is None else work.flops / (time * 1e-9)
    moved = None if work.nbytes is None else work.nbytes / (time * 1e-9)
    shares = _shares(work, flops, moved, limits)
    share, bound = _share(shares), _bound(row, shares)
    return replace(row, flops_per_s=flops, bytes_per_s=moved, share=share, bound=bound)


def _shares(
    work: Work, flops: float | None, moved: float | None, limits: Limits
) -> tuple[float, float] | None:
    """Return the shares of the peak and of the bandwidth; None where one is unknown."""
    peak, bandwidth = limits.peak(work.dtype), limits.bandwidth
    if not peak or not bandwidth or flops is None or not moved:
        return None
    return flops / peak, moved / bandwidth


def _share(shares: tuple[float, float] | None) -> float | None:
    """Return the achieved fraction of min(peak, intensity * bandwidth).

    Of the two shares the larger one is that of the lower limit. Where bytes came from a cache, the
    memory limits nothing and the share is that of the peak. None beyond the peak: then the limit or
    the time is wrong.
    """
    if shares is None:
        return None
    compute, memory = shares
    if compute > IN_CACHE:
        return None  # faster than what was measured as the peak
    return compute if memory > IN_CACHE else max(compute, memory)


def _bound(row: RooflineRow, shares: tuple[float, float] | None) -> Limit:
    if shares is None:
        return Limit.UNKNOWN
    compute, memory = shares
    if compute > IN_CACHE:
        return Limit.BEYOND
    if compute >= NEAR and (compute >= memory or memory > IN_CACHE):
        return Limit.COMPUTE
    if NEAR <= memory <= IN_CACHE:
        return Limit.MEMORY
    each = (row.time_ns or 0.0) / max(1, row.passes)
    if compute < LOW and memory < LOW and each < SHORT_NS:
        return Limit.OVERHEAD
    return Limit.NEITHER


def rate_text(row: RooflineRow) -> str:
    """Return the achieved rates of an operator as text."""
    flops = format_quantity(row.flops_per_s, Quantity.OPERATION_RATE)
    return f"{flops}, {format_quantity(row.bytes_per_s, Quantity.BANDWIDTH)}"
