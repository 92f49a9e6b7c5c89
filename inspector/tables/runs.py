"""Results of a run or a verification, as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from inspector.compare.statistics import ALIKE
from inspector.jobs.executing import REPORT
from inspector.jobs.messages import Expected
from inspector.tables.reports import table_of_report
from inspector.tables.rows import RowField, row_table
from inspector.tables.selection import Units
from inspector.tables.table import Table, badge_column, number_column, text_column
from inspector.units import (
    NS_PER_MS,
    Quantity,
    choose_unit,
    column_formatter,
    format_bytes,
    format_change,
    format_estimate,
    format_share,
)
from schema.objects.plural import plural
from schema.origins import ValueOrigin

_WHAT = "the report of a run"
_TONES = {"passed": "good", "failed": "bad", "error": "bad", "not compared": "muted"}
_NAMES = {
    "mean": "mean of the steady runs",
    "median": "median",
    "p10": "10 % of them within",
    "p90": "90 % of them within",
    "min": "fastest",
    "max": "slowest",
    "stdev": "standard deviation",
}


def times_table(report: Mapping[str, Any]) -> Table:
    """Return the times of a run: loading, and statistics of its runs."""
    once = {
        "load the program": "load_ms",
        "load the method": "init_ms",
        "first run": "first_run_ms",
    }
    found = [(name, report.get(word)) for name, word in once.items()]
    rows: list[tuple[str, float]] = [(name, time) for name, time in found if time is not None]
    latency: Mapping[str, float | None] = report["latency_ms"]
    runs: Sequence[float] = report["run_ms"]
    if len(runs) == 1:
        rows.append(("run", runs[0]))
    elif runs:
        known = [(name, latency.get(word)) for word, name in _NAMES.items()]
        rows += [(name, value) for name, value in known if value is not None]
        traced: Mapping[str, float | None] = report.get("traced_latency_ms", {})
        if (mean := traced.get("mean")) is not None:
            rows.append(("mean with a trace", mean))
    longest = max((value for _, value in rows), default=0.0)
    shortest = latency.get("mean") or longest  # loading may take seconds
    digits_of = shortest * NS_PER_MS
    unit = choose_unit(Quantity.TIME, digits_of)
    times = [value * NS_PER_MS for _, value in rows]
    column = number_column("time", times, Quantity.TIME, unit=unit)
    column = replace(column, text=column_formatter(Quantity.TIME, unit, digits_of))
    return Table(
        (
            text_column("what", [name for name, _ in rows], width=24),
            column,
        ),
        len(rows),
        keys=[name for name, _ in rows],
        noun="times",
    )


def expected_text(cost: Expected) -> str:
    """Return the expected duration of measuring a slow program: ``a run takes 6.2 s: …``."""
    runs = plural(cost.bare, "bare run takes", "bare runs take")
    if cost.timed:
        runs = f"{cost.timed:,} timed and {plural(cost.bare, 'bare run')} take"
    one, all_runs = format_estimate(cost.run_ms / 1e3), format_estimate(cost.seconds)
    return f"a run takes {one}: {runs} about {all_runs}"


def threads_table(report: Mapping[str, Any]) -> Table:
    """Return one row per number of threads of a sweep: its times, beside one and beside the best.

    Units: times in ns
    """
    sweep: Sequence[Mapping[str, Any]] = report.get("thread_sweep") or ()
    rows = [
        (
            f"{one['threads']} (best)" if one["best"] else str(one["threads"]),
            *(None if one[name] is None else one[name] * NS_PER_MS for name in _SWEPT),
            one["speedup"],
            _verdict(one["against_one"]) if one["threads"] != 1 else "—",
            _verdict(one["against_best"]) if one["against_best"]["ratio"] != 1 else "—",
            one["noise"] or "",
        )
        for one in sweep
    ]
    fields = (
        RowField("threads"),
        *(RowField(title, Quantity.TIME) for title in ("mean", "p10", "p90")),
        RowField("speedup", Quantity.PLAIN),
        RowField("beside one thread"),
        RowField("beside the fastest"),
        RowField("noise"),
    )
    return row_table(fields, rows, "numbers of threads", keys=[one["threads"] for one in sweep])


_SWEPT = ("mean_ms", "p10_ms", "p90_ms")


def _verdict(content: Mapping[str, Any]) -> str:
    ends = content["low"], content["high"]
    if content["ratio"] is None or None in ends:
        return str(content["word"])
    word = str(content["word"])
    if word != ALIKE:
        word = f"{word} by {format_share(abs(content['ratio'] - 1))}"
    return f"{word} ({format_change(ends[0])} to {format_change(ends[1])})"


def threads_text(report: Mapping[str, Any]) -> str:
    """Return which number of threads is best, in words."""
    sweep: Sequence[Mapping[str, Any]] = report["thread_sweep"]
    best = next(one for one in sweep if one["best"])
    words = f"{plural(best['threads'], 'thread is', 'threads are')} best"
    if best["threads"] != 1 and best["speedup"]:
        words += f", {best['speedup']:.2f} times as fast as one"
    alike = [
        str(one["threads"])
        for one in sweep
        if not one["best"] and one["against_best"]["word"] == ALIKE
    ]
    return f"{words}; {', '.join(alike)} not distinguishable from the fastest" if alike else words


def thread_times(folder: Path, _units: Units) -> Table:
    """Return the times of each number of threads in the report of a run.

    Raises: FormatError for a folder without one; OSError
    """
    return table_of_report(folder, REPORT, _WHAT, threads_table)


def run_times(folder: Path, _units: Units) -> Table:
    """Return the times in the report of a run.

    Raises: FormatError for a folder without one; OSError
    """
    return table_of_report(folder, REPORT, _WHAT, times_table)


def cases_table(report: Mapping[str, Any]) -> Table:
    """Return one row per bundled case: whether it passed, and its error."""
    cases: Sequence[Mapping[str, Any]] = report["cases"]
    badges = badge_column(
        "verdict",
        [case["verdict"] for case in cases],
        tone=lambda value: _TONES.get(str(value), "bad"),
    )
    times = [None if case["time_ms"] is None else case["time_ms"] * NS_PER_MS for case in cases]
    return Table(
        (
            text_column("method", [case["method"] for case in cases], width=14),
            text_column("case", [str(case["case"]) for case in cases], width=6),
            badges,
            text_column("elements outside", [_outside(case) for case in cases], width=18),
            number_column("largest error", [_largest(case) for case in cases], Quantity.PLAIN),
            number_column("time", times, Quantity.TIME),
            text_column("why", [case["error"] for case in cases], width=30),
        ),
        len(cases),
        keys=[(case["method"], case["case"]) for case in cases],
        noun="cases",
    )


def _outside(case: Mapping[str, Any]) -> str:
    outputs = case["outputs"]
    if not outputs:
        return "—"
    outside = sum(one["mismatched"] for one in outputs)
    return f"{outside:,} of {sum(one['elements'] for one in outputs):,}"


def _largest(case: Mapping[str, Any]) -> float | None:
    return max((one["max_abs_error"] for one in case["outputs"]), default=None)


def bundled_table(cases: Sequence[Mapping[str, Any]]) -> Table:
    """Return one row per case of a bundled program: how many inputs and expected outputs it has."""
    rows = [
        (
            case["method"],
            case["case"],
            len(case["inputs"]),
            None if case["expected"] is None else len(case["expected"]),
        )
        for case in cases
    ]
    titles = ("case", "inputs", "expected")
    counts = (RowField(title, Quantity.COUNT, missing="none") for title in titles)
    return row_table((RowField("method", mono=True), *counts), rows, "cases")


def requested_cases(cases: Sequence[tuple[str, str | None]]) -> Table:
    """Return one row per case that a bundled program will have: its inputs, expected outputs."""
    computed = RowField("expected outputs", missing="outputs of the module, if any")
    return row_table((RowField("inputs"), computed), cases, "cases")


def outputs_text(report: Mapping[str, Any]) -> str:
    """Return one line per output, and notes on memory and the trace."""
    lines = [f"output {place}  {described(one)}" for place, one in enumerate(report["outputs"])]
    memory = report["memory"]
    lines.append(f"planned   {format_bytes(sum(memory['planned_bytes']))}")
    if memory["peak_bytes"] is not None:
        lines.append(f"process   {format_bytes(memory['peak_bytes'])} at most")
    increase = memory.get("increase", {})
    known = [
        f"{name.replace('_', ' ')} {format_bytes(one)}"
        for name, one in increase.items()
        if one is not None
    ]
    if known:
        lines.append(f"resident  {', '.join(known)} beyond the idle worker at their peaks")
    if "where" in report:
        lines.append(f"runtime   {report['where']}")
    lines += delegate_lines(report["partitions"])
    trace = report["trace"]
    logged = format_bytes(trace["debug_bytes"])
    lines.append(f"trace     {trace['events']:,} events, {logged} of values")
    lines += [f"files     {one['path']}, {format_bytes(one['bytes'])}" for one in report["files"]]
    lines += [f"warning   {text}" for text in warnings_of(report)]
    return "\n".join(lines)


def warnings_of(report: Mapping[str, Any]) -> list[str]:
    """Return what a run warned of: options without effect, then what may disturb its times."""
    return [*report.get("ignored", ()), *report.get("warnings", ())]


def delegate_lines(partitions: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the engines of delegates, one line for each."""
    kinds = Counter((one["backend"], _ran(one), one["note"]) for one in partitions)
    return [
        f"delegates {count} × {backend}: {ran}{f' ({note})' if note else ''}"
        for (backend, ran, note), count in kinds.items()
    ]


def _ran(partition: Mapping[str, Any]) -> str:
    is_emulated = partition["engine"] == ValueOrigin.EMULATED.value  # of older releases too
    return ValueOrigin.EMULATED.words if is_emulated else str(partition["source"])


def described(value: Mapping[str, Any]) -> str:
    """Return a short description of a value."""
    if value["kind"] == "tensor":
        return f"{value['dtype']} {value['shape']}"
    if value["kind"] == "list":
        return f"list of {len(value['items'])}"
    return "none" if value["value"] is None else f"{value['kind']} {value['value']}"
