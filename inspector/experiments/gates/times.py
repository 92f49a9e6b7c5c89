"""Latency: of the runs of a trace or measured here, and their ratio to a baseline's."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from inspector.compare.statistics import ALIKE, TimeVerdict, judge
from inspector.experiments.gates.evidence import Blocks, Evidence, FoundValue, MissingError
from inspector.experiments.gates.requirement import LATENCY, LATENCY_MEAN, LATENCY_STOCK
from inspector.files.session import Session
from inspector.profile.attribution import method_runs
from inspector.profile.methods import analyse_profile, unit_assumed
from inspector.roofline.as_target import ExchangedCalls, exchanged_calls
from inspector.trace.run_times import RunTimes, median, steady_words
from inspector.units import NS_PER_MS, format_ms
from schema.objects.plural import plural

UNKNOWN = "run"  # a method that no file names


@dataclass(frozen=True, slots=True)
class Ratio:
    """The latency of a program beside that of its baseline.

    Attributes:
        value: what is compared with the bound; 1 where the two are not distinguishable
        new: latency of the program, in ms
        old: that of its baseline, in ms
        words: both and the verdict
        method: the method it is of
        verdict: the statistics behind it
    """

    value: float
    new: float
    old: float
    words: str
    method: str
    verdict: TimeVerdict


def trace_times(session: Session) -> dict[str, list[list[float]]]:
    """Return the times of the runs of each method, one block for each trace.

    Units: ms
    """
    found: dict[str, dict[int, list[float]]] = {}
    for one in method_runs(session):
        times = [float(time) for time in one.times_ns / NS_PER_MS if time > 0]
        if times:
            runs = found.setdefault(one.method or UNKNOWN, {}).setdefault(one.block.dump, [])
            runs += times
    return {method: list(blocks.values()) for method, blocks in found.items()}


def time_of_runs(metric: str, times: Sequence[float]) -> tuple[float, str]:
    """Return a metric of the times of runs, and of what it is.

    Args:
        metric: ``latency``, the median, or ``latency.mean``, that of the steady runs
        times: in ms, at least one

    Units: ms
    """
    runs = plural(len(times), "run")
    if metric != LATENCY_MEAN:
        return median(times), f"median of {runs}"
    found = RunTimes(tuple(times))
    return found.mean, f"mean of {steady_words(found)}"


def noise_of_runs(times: Sequence[float]) -> str:
    """Return the noise of runs as a suffix of the description of their time; empty for none."""
    noise = RunTimes(tuple(times)).noise
    return f", noisy ({noise})" if noise else ""


def latency(metric: str, evidence: Evidence) -> FoundValue:
    """Return a time of a run, of the slowest method where there are several.

    Raises: MissingError
    """
    bare = _headlines(evidence) if metric != LATENCY else {}
    times = _times(evidence, bare)
    if metric == LATENCY_STOCK:
        return _as_stock(evidence, {**times, **{name: [each] for name, each in bare.items()}})
    runs = {
        name: bare.get(name) or [time for block in blocks for time in block]
        for name, blocks in times.items()
    }
    found = {name: time_of_runs(metric, each) for name, each in runs.items()}
    known = {name: value for name, (value, _) in found.items()}
    worst = max(known, key=lambda name: known[name])
    where = "measured here" if evidence.times is not None else "of the trace"
    where = "without a trace" if worst in bare else where
    unit = ""
    if evidence.times is None and unit_assumed(evidence.session):
        unit = ", a tick assumed to be a nanosecond"
    words = f"{found[worst][1]} {where}{unit}{noise_of_runs(runs[worst])}"
    return FoundValue(known[worst], words, _judged(worst, known))


def _as_stock(evidence: Evidence, times: Mapping[str, Blocks]) -> FoundValue:
    """Return the median of the slowest method with the calls of the stock runtime."""
    moved = {name: _exchanged(evidence, name, blocks) for name, blocks in times.items()}
    known = {
        name: time_of_runs(LATENCY, [time for block in blocks for time in block])[0]
        for name, (blocks, _) in moved.items()
    }
    worst = max(known, key=lambda name: known[name])
    return FoundValue(known[worst], moved[worst][1].words, _judged(worst, known))


def _exchanged(
    evidence: Evidence, method: str, blocks: Blocks
) -> tuple[list[list[float]], ExchangedCalls]:
    """Return the times of runs with the calls of the stock runtime.

    Raises: MissingError
    """
    ran = "" if evidence.times is None else evidence.ran
    name = method
    if method == UNKNOWN and len(evidence.session.methods) == 1:
        name = evidence.session.methods[0]
    found = exchanged_calls(evidence.session, name, ran)
    if found is None:
        raise MissingError(
            f"{LATENCY_STOCK} needs a program without jumps, the report of what ran"
            f" {evidence.what}, and the costs of calls there and on the stock runtime: etscope"
            " roofline FILES… --calibrate-calls, and with --toolchain executorch"
        )
    return [[found.taken_ms(time) for time in block] for block in blocks], found


def _headlines(evidence: Evidence) -> dict[str, tuple[float, ...]]:
    """Return the runs without a trace that are known beside the traces, by method."""
    if evidence.times is not None:
        return {}
    times = analyse_profile(evidence.session).methods
    return {time.method or UNKNOWN: time.bare.times for time in times if time.bare is not None}


def latency_ratio(evidence: Evidence, baseline: Evidence, metric: str = LATENCY) -> Ratio:
    """Return the latency as a multiple of the baseline's, the worst of the methods of both.

    Means are of the runs without a trace where both sides have them, as the metric alone is.

    Raises: MissingError
    """
    bare = [_headlines(side) if metric == LATENCY_MEAN else {} for side in (evidence, baseline)]
    new, old = dict(_times(evidence, bare[0])), dict(_times(baseline, bare[1]))
    for name in bare[0].keys() & bare[1].keys() & new.keys() & old.keys():
        new[name], old[name] = [list(bare[0][name])], [list(bare[1][name])]
    if metric == LATENCY_STOCK:
        new, old = (
            {name: _exchanged(side, name, blocks)[0] for name, blocks in times.items()}
            for side, times in ((evidence, new), (baseline, old))
        )
    shared = [name for name in new if name in old]
    if not shared and len(new) == len(old) == 1:  # a lone trace does not name its method
        return _ratio(next(iter(new)), next(iter(new.values())), next(iter(old.values())), metric)
    if not shared:
        raise MissingError(
            f"latency: {evidence.what} ran {', '.join(new)}, {baseline.what} ran {', '.join(old)}"
        )
    found = [_ratio(name, new[name], old[name], metric) for name in shared]
    worst = max(found, key=lambda one: one.value)
    others = [name for name in shared if name != worst.method]
    if not others:
        return worst
    words = f"{worst.words}; the slowest beside its baseline of {', '.join(shared)}"
    return replace(worst, words=words)


def _ratio(method: str, new: Blocks, old: Blocks, metric: str) -> Ratio:
    """Return the ratio; one block of each has no spread, only medians or means."""
    verdict = judge(old, new)
    if math.isfinite(verdict.high):
        value = 1.0 if verdict.word == ALIKE else verdict.ratio
        words = f"{_shown(verdict.new)} beside {_shown(verdict.old)}, {verdict.words()}"
        return Ratio(value, verdict.new, verdict.old, words, method, verdict)
    value, ours, theirs, kind = verdict.ratio, verdict.new, verdict.old, "medians"
    if metric == LATENCY_MEAN:
        ours, theirs = (
            time_of_runs(metric, [time for block in blocks for time in block])[0]
            for blocks in (new, old)
        )
        value, kind = ours / theirs, "means of the steady runs"
    words = f"{_shown(ours)} beside {_shown(theirs)}, {kind} only: "
    words += "whether the difference is real is unknown from one block"
    return Ratio(value, ours, theirs, words, method, verdict)


def _shown(ms: float) -> str:
    return format_ms(ms)


def _times(
    evidence: Evidence, bare: Mapping[str, tuple[float, ...]] | None = None
) -> Mapping[str, Blocks]:
    """Return the blocks of runs of each method.

    Args:
        evidence: with the traces, or with what was measured here
        bare: runs without a trace by method, which logging did not disturb

    Raises: MissingError
    """
    if evidence.times is None and evidence.session.times_with_values and not bare:
        raise MissingError(
            f"latency: values were logged in the timed runs of {evidence.what}, so that their times"
            " are not the program's; run it again without (etscope run logs values in a run of"
            " their own), or --measure N runs it here"
        )
    if evidence.times is None:
        _refuse_emulated(evidence)
    found = evidence.times if evidence.times is not None else trace_times(evidence.session)
    chosen = {
        name: blocks
        for name, blocks in found.items()
        if evidence.method in ("", name) and any(blocks)
    }
    if not chosen:
        of = f" of {evidence.method}" if evidence.method else ""
        raise MissingError(
            f"latency needs the ETDump of runs{of}, or --measure N to run here;"
            f" none found in {evidence.what}"
        )
    return chosen


def _refuse_emulated(evidence: Evidence) -> None:
    for time in analyse_profile(evidence.session).methods:
        if time.emulated and evidence.method in ("", time.method):
            raise MissingError(
                f"latency: in the runs of {evidence.what} {time.origin_words}, so that their times"
                " are not the program's; run it where its backends are"
            )


def _judged(worst: str, medians: Mapping[str, float]) -> str:
    name = "the method is not named" if worst == UNKNOWN else f"method {worst}"
    return name if len(medians) == 1 else f"{name}, the slowest of {', '.join(medians)}"
