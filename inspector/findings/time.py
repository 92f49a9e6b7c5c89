"""Findings about time: slow parts, unattributed time, parts missing in the trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from inspector.files.origin import stated_clock
from inspector.files.run_report import run_report
from inspector.files.session import Session
from inspector.findings.attempts import edits_that_delegate
from inspector.findings.finding import Finding, Tone
from inspector.join.links import Grade
from inspector.memory.plan import instruction_label
from inspector.profile.block_names import block_labels
from inspector.profile.methods import (
    MethodTime,
    Profile,
    analyse_profile,
    why_no_events,
)
from inspector.profile.rows import BlockSamples
from inspector.trace.event_kinds import (
    DELEGATE_CALL,
    EXECUTE,
    KERNEL_PREFIX,
    OPERATOR_CALL,
    named_events,
    whole_runs,
)
from inspector.trace.run_times import median
from inspector.trace.steady import FEW
from inspector.units import format_ms, format_share
from schema.etdump import ETDump
from schema.objects.plural import plural
from schema.program import instructions

_UNLOGGED = "open a trace of the same program without values beside it, as etscope run writes one"
_TOP = 3
_SLOW_FIRST = 1.5  # times the others
_SLOWER_BARE = 0.2  # of a traced run: a trace makes no run faster
_TRACING_COSTS = 0.05  # of a run: less is within what a run varies
_WORTH_SAYING = 0.01  # operators with less of the time than this are not worth a line
_MANY_ROWS = 20_000  # links are created one by one; beyond this they would delay the overview


@dataclass(frozen=True, slots=True)
class _Main:
    """The main block of a method: the one with the most time in it.

    Attributes:
        time: means over the method's runs
        source: samples of the block
        first_row: profile row of its first event
        name: of the block where the method has several, else empty
    """

    time: MethodTime
    source: BlockSamples
    first_row: int
    name: str = ""

    @property
    def saved_ms(self) -> float:
        """Return the part of the latency that its block has, on average over all runs."""
        time, source = self.time, self.source
        if not self.name:
            return time.latency_ms
        spent = float(source.totals[whole_runs(source.block)].sum()) * int(source.steady.sum())
        return time.latency_ms * spent / (time.method_ms * len(time.traced.steady))


def time_findings(session: Session) -> list[Finding]:
    """Return the findings about the traces of a session; empty without traces."""
    if not session.dumps:
        return []
    if text := why_no_events(session):
        return [Finding(Tone.WARN, text, view="timeline", weight=60, doubt=True)]
    profile = analyse_profile(session)
    if not profile.unit_is_time:
        text = "The trace counts cycles; no time is shown"
        return [Finding(Tone.NEUTRAL, text, view="operators", weight=20)]
    found: list[Finding] = []
    if warning := profile.values_warning:
        found.append(Finding(Tone.BAD, warning, _UNLOGGED, "timeline", weight=89, doubt=True))
    for main in _main_blocks(profile, session.timed_dumps)[:2]:
        own = _stood_in(main) if profile.values_logged else _method(session, main)
        found += [_placed(finding, main.time.label) for finding in own]
    found += [*_other_unit(session), *_unmatched(profile), *_several_unknown(profile)]
    found += _warned_of(session)
    if profile.unit_assumed and profile.methods:
        text = f"Ticks are assumed to be {profile.unit}; the file does not name its unit"
        found.append(Finding(Tone.NEUTRAL, text, view="operators", weight=2))
    return found


def _other_unit(session: Session) -> list[Finding]:
    """Return where the chosen unit of ticks is not the one that a trace states."""
    chosen = session.options.source_time_scale
    stated = {unit for unit in map(stated_clock, session.timed_dumps) if unit not in ("", chosen)}
    if not stated:
        return []
    text = f"Ticks are read as {chosen}, but the trace states {', '.join(sorted(stated))}"
    return [Finding(Tone.WARN, text, view="operators", weight=59, doubt=True)]


def _warned_of(session: Session) -> list[Finding]:
    """Return the warnings of the runs that wrote the traces, from the reports next to them."""
    reports = filter(None, map(run_report, session.dumps))
    texts = dict.fromkeys(text for one in reports for text in one.warnings)
    return [Finding(Tone.WARN, text, view="timeline", weight=44, doubt=True) for text in texts]


def _placed(finding: Finding, label: str) -> Finding:
    """Return a finding that names its trace, where that is not clear."""
    detail = "; ".join(filter(None, (label, finding.detail)))
    return replace(finding, detail=detail) if label else finding


def _several_unknown(profile: Profile) -> list[Finding]:
    unknown = [time.label for time in profile.methods if not time.method]
    if len(unknown) < 2:
        return []
    text = f"The traces are of {len(unknown)} different methods or programs"
    detail = f"their times are not added: {'; '.join(unknown[:4])}"
    return [Finding(Tone.WARN, text, detail, "operators", weight=45, doubt=True)]


def _main_blocks(profile: Profile, traces: Sequence[ETDump]) -> list[_Main]:
    """Return the main block of each method, the method with the most time first."""
    sources = profile.rows.sources
    names = block_labels([source.block for source in sources], traces)
    starts = np.cumsum([0, *map(len, sources)]).tolist()
    found: list[_Main] = []
    for time in profile.methods:
        best = max(time.blocks, key=lambda number: _spent(sources[number]))
        if time.method_ms > 0:
            name = names[best] if len(time.blocks) > 1 else ""
            found.append(_Main(time, sources[best], starts[best], name))
    return sorted(found, key=lambda main: -main.time.method_ms)


def _spent(source: BlockSamples) -> float:
    return float(np.nansum(source.block.total[:, _indices(source, EXECUTE)]))


def _indices(source: BlockSamples, names: tuple[str, ...]) -> list[int]:
    return np.flatnonzero(named_events(source.block, names)).tolist()


def _method(session: Session, main: _Main) -> list[Finding]:
    operators = _indices(main.source, (OPERATOR_CALL,))
    delegates = _indices(main.source, (DELEGATE_CALL,))
    name = main.time.method
    if not operators and not delegates:
        text = f"The trace times {name or 'the run'} in total but none of its operators"
        return [Finding(Tone.WARN, text, view="operators", method=name, weight=50, doubt=True)]
    return [
        *_stood_in(main),
        *_several_traces(main),
        *_few(main),
        *_noise(main),
        *_outside(session, main, operators, has_delegates=bool(delegates)),
        *_slowest_call(main, delegates),
        *_unattributed(main),
        *_framework(main),
        *_left_out(main),
        *_tracing(main),
    ]


def _stood_in(main: _Main) -> list[Finding]:
    if not main.time.origin_words:
        return []
    text = f"{main.time.origin_words[:1].upper()}{main.time.origin_words[1:]}"
    detail = "times and values of the backend itself are not in this trace"
    name = main.time.method
    if not main.time.emulated:  # a payload that torch runs has its values, not its times
        detail = "times of the backend itself are not in this trace"
        return [Finding(Tone.NEUTRAL, text, detail, "timeline", method=name, weight=30)]
    return [Finding(Tone.WARN, text, detail, "timeline", method=name, weight=58, doubt=True)]


def _outside(
    session: Session, main: _Main, operators: list[int], *, has_delegates: bool
) -> list[Finding]:
    """Return the operators that run as kernels: all of them next to delegates, else the slowest."""
    shares = np.nan_to_num(main.source.shares)
    spent = _by_name(main.source, operators)
    ranked = sorted(spent, key=lambda name: -float(shares[spent[name]].sum()))[:_TOP]
    named = [n for n in ranked if n == ranked[0] or shares[spent[n]].sum() >= _WORTH_SAYING]
    counted = operators if has_delegates else [e for name in named for e in spent[name]]
    share = float(shares[counted].sum()) if counted else 0.0
    if share < _WORTH_SAYING:
        return []
    what = plural(len(named), "operator")
    if has_delegates:
        calls = len(operators)
        what = plural(calls, "operator call that is", "operator calls that are") + " not delegated"
    known = len(main.time.headline.times) >= FEW
    tone = Tone.BAD if has_delegates and share > 0.25 and known else Tone.NEUTRAL
    text = f"{format_share(share)} of {_time_of(main, of_block=True)} is in {what}"
    detail = ", ".join(_operator_text(name, spent[name], shares) for name in named)
    slowest = counted[int(np.argmax(shares[counted]))]
    row = main.first_row + slowest
    return [
        Finding(
            tone,
            text,
            detail,
            "operators",
            main.time.method,
            event=row,
            weight=30 + 40 * share if has_delegates else 20 + 19 * share,
            saves_ms=share * main.saved_ms if has_delegates else None,
            edits=edits_that_delegate(session, main.time.method) if has_delegates else (),
        )
    ]


def _operator_text(name: str, events: list[int], shares: NDArray[np.float64]) -> str:
    calls = f" in {len(events):,} calls" if len(events) > 1 else ""
    return f"{name} {format_share(float(shares[events].sum()))}{calls}"


def _by_name(source: BlockSamples, operators: list[int]) -> dict[str, list[int]]:
    """Return operator -> its events, by the kernel event that has the same instruction."""
    layout, strings = source.block.layout, source.block.strings
    kernels = [number for number, text in enumerate(strings) if text.startswith(KERNEL_PREFIX)]
    called = np.flatnonzero(np.isin(layout.name, kernels) & (layout.instruction >= 0))
    numbers, first = np.unique(layout.instruction[called], return_index=True)
    events = np.array(operators, np.int64)
    steps = layout.instruction[events]
    place = np.minimum(np.searchsorted(numbers, steps), max(len(numbers) - 1, 0))
    known = numbers[place] == steps if len(numbers) else np.zeros(len(events), np.bool_)
    names = layout.name[called[first[place[known]]]]
    found: dict[str, list[int]] = {}
    order = np.argsort(names, kind="stable")
    ends = np.flatnonzero(np.diff(names[order])) + 1
    for group in np.split(order, ends) if len(order) else ():
        name = strings[int(names[group[0]])].removeprefix(KERNEL_PREFIX) or "kernel without a name"
        found.setdefault(name, []).extend(events[known][group].tolist())
    for event in events[~known].tolist():
        found.setdefault(_operator(source, event), []).append(event)
    return found


def _time_of(main: _Main, *, of_block: bool = False) -> str:
    words = f"the time of {main.time.method}" if main.time.method else "the time"
    return f"{words} ({main.name})" if of_block and main.name else words


def _operator(source: BlockSamples, event: int) -> str:
    number = source.block.instruction(event)
    plan = source.links.plan
    if plan is not None and number is not None:
        steps = instructions(plan)
        if 0 <= number < len(steps):
            return instruction_label(plan, steps[number][2].instr_args).split("::")[-1]
    return f"instruction {number}"


def _slowest_call(main: _Main, delegates: list[int]) -> list[Finding]:
    """Return the delegate call with the largest share of time."""
    shares = main.source.shares
    ranked = sorted(delegates, key=lambda event: -float(np.nan_to_num(shares[event])))
    if len(ranked) < 2 or not shares[ranked[0]] > 0.25:
        return []
    event = ranked[0]
    number = main.source.block.instruction(event)
    text = (
        f"{format_share(float(shares[event]))} of {_time_of(main, of_block=True)} is in one of"
        f" {len(ranked)} delegate calls, instruction {number}"
    )
    label = _operator(main.source, event)
    row = main.first_row + event
    return [
        Finding(
            Tone.NEUTRAL,
            text,
            label,
            "timeline",
            main.time.method,
            event=row,
            instruction=number,
            weight=12,
        )
    ]


def _unattributed(main: _Main) -> list[Finding]:
    share = main.time.unattributed_ms / main.time.method_ms
    if share <= 0.1:
        return []
    text = f"{format_share(share)} of {_time_of(main)} is outside of its instructions"
    return [
        Finding(
            Tone.WARN,
            text,
            "unattributed: no event of the trace accounts for it",
            "timeline",
            main.time.method,
            weight=20 + share,
            saves_ms=share * main.time.latency_ms,
        )
    ]


def _framework(main: _Main) -> list[Finding]:
    """Return the overhead of calling kernels."""
    if main.time.kernels_ms <= 0:
        return []
    share = (main.time.operators_ms - main.time.kernels_ms) / main.time.method_ms
    if share <= 0.2:
        return []
    text = f"{format_share(share)} of {_time_of(main)} is overhead of calling kernels"
    detail = "the kernels are small"
    return [
        Finding(
            Tone.WARN,
            text,
            detail,
            "timeline",
            main.time.method,
            weight=18 + share,
            saves_ms=share * main.time.latency_ms,
        )
    ]


def _tracing(main: _Main) -> list[Finding]:
    """What the trace adds to each run, where runs without it are known."""
    bare, added = main.time.bare_ms, main.time.tracing_ms
    if bare and added is not None and -added > _SLOWER_BARE * main.time.method_ms:
        return [_contradicted(main, bare)]
    if not bare or added is None or added <= _TRACING_COSTS * bare:
        return []
    what = "Logging values" if main.time.logged else "The trace"
    text = (
        f"{what} adds {format_ms(added)} to a run of {format_ms(bare)}"
        f" ({format_share(added / bare)})"
    )
    detail = "times of operators and delegates include it, the time of the method does not"
    return [Finding(Tone.NEUTRAL, text, detail, "timeline", main.time.method, weight=13)]


def _contradicted(main: _Main, bare: float) -> Finding:
    """Runs without a trace that took longer than those with one."""
    without, with_it = (format_ms(ms) for ms in (bare, main.time.method_ms))
    text = f"Runs without a trace took {without}, those with one {with_it}"
    detail = "they include the call of the runtime, other load, or run.json is of another run"
    return Finding(Tone.WARN, text, detail, "timeline", main.time.method, weight=49, doubt=True)


def _several_traces(main: _Main) -> list[Finding]:
    """Runs of a method that several files were made of: perhaps of different machines."""
    if main.time.traces < 2:
        return []
    text = f"The time of {main.time.title} is the mean of {main.time.traces} traces"
    detail = "whether they were measured in the same way is unknown; open one, or compare them"
    return [Finding(Tone.WARN, text, detail, "timeline", main.time.method, weight=48, doubt=True)]


def _few(main: _Main) -> list[Finding]:
    """So few runs that first ones, which load caches, are among those shown."""
    runs = main.time.headline.times
    if len(runs) >= FEW:
        return []
    text = f"Times are of {plural(len(runs), 'run')}: whether first runs are slower is unknown"
    detail = f"{FEW} runs and more tell cold ones, outliers and percentiles"
    if len(runs) > 2 and runs[0] >= _SLOW_FIRST * (usual := median(runs[1:])) > 0:
        others = len(runs) - 1
        detail = f"the first took {runs[0] / usual:.1f} times the median of the other {others}"
    return [Finding(Tone.WARN, text, detail, "timeline", main.time.method, weight=47, doubt=True)]


def _noise(main: _Main) -> list[Finding]:
    """Runs that differ so much that their mean is uncertain."""
    runs = main.time.headline
    if not runs.noise:
        return []
    word, *_ = runs.noise_words().split(": ", 1)
    text = f"The runs of {main.time.method or 'the program'} are {word}"
    detail = runs.noise_words().removeprefix(f"{word}: ")
    uncertain = runs.noise != "slight"
    tone = Tone.WARN if uncertain else Tone.NEUTRAL
    method = main.time.method
    return [Finding(tone, text, detail, "timeline", method, weight=46, doubt=uncertain)]


def _left_out(main: _Main) -> list[Finding]:
    """Return which runs the figures leave out of a quiet measurement."""
    runs = main.time.headline
    if runs.noise or not runs.left_out():
        return []
    text = f"Means leave out {runs.left_out()} of {plural(len(runs.times), 'run')}"
    detail = "cold runs come first and are far slower than all later ones; outliers are far off"
    return [Finding(Tone.NEUTRAL, text, detail, "timeline", main.time.method, weight=11)]


def _unmatched(profile: Profile) -> list[Finding]:
    """Events inside delegates that only their call is known of."""
    if len(profile.rows) > _MANY_ROWS:
        return []
    inner = lost = 0
    for source in profile.rows.sources:
        for event in np.flatnonzero(source.inner).tolist():
            inner += 1
            grade = source.links.link(event).grade
            lost += grade in (Grade.DELEGATE_CALL_ONLY, Grade.NONE)
    if not lost:
        return []
    text = f"{lost} of {plural(inner, 'event')} inside delegates match no node"
    detail = "only the call they happened in is known"
    return [Finding(Tone.NEUTRAL, text, detail, "operators", weight=8)]
