"""Metrics of the numeric gap as one figure each: the worst of all comparisons."""

from __future__ import annotations

import math
from collections.abc import Iterator

from inspector.experiments.gates.evidence import Evidence, FoundValue, MissingError
from inspector.experiments.gates.requirement import COVERAGE, GAP, INHERITED, OWN
from inspector.numerics.metrics import Metrics
from inspector.numerics.report import GapReport, Row, RunGap
from schema.objects.plural import plural

_SMALLER_IS_WORSE = ("snr_db", "cosine")
_COUNTS = ("elements", "nan", "nan_reference", "inf", "inf_reference")


def gap_value(metric: str, evidence: Evidence) -> FoundValue:
    """Return a metric of the numeric gap, the worst over all rows of all runs.

    Raises: MissingError
    """
    report = evidence.gap
    assert report is not None
    runs = [run for run in report.runs if evidence.method in ("", run.method)]
    compared = [(run, row) for run in runs for row in run.rows if row.compared]
    rows = [(run, row) for run, row in compared if not row.doubtful]
    if compared and not rows:
        raise MissingError(f"{metric}: every join that differs is uncertain")
    if not rows:
        raise MissingError(f"{metric}: {_why(report, evidence)}")
    methods = list(dict.fromkeys(run.method for run in runs))
    judged = f"{'methods' if len(methods) > 1 else 'method'} {', '.join(methods)}"
    if metric == COVERAGE:
        return _coverage(report, runs, judged)
    return _worst(metric, rows, judged, len(compared) - len(rows))


def _why(report: GapReport, evidence: Evidence) -> str:
    """Return why nothing was compared, in one sentence."""
    if report.notes:
        return "; ".join(report.notes)
    reasons = [row.reason for run in report.runs for row in run.rows if row.reason]
    notes = [note for run in report.runs for note in run.notes]
    return next(iter([*notes, *reasons]), f"nothing of {evidence.what} can be compared")


def _coverage(report: GapReport, runs: list[RunGap], judged: str) -> FoundValue:
    cover = report.coverage(runs)
    total = cover["instruction_outputs"]
    if not total:
        return FoundValue(None, "no instruction has an output", judged)
    words = f"{cover['compared']:,} of {total:,} outputs of instructions compared"
    return FoundValue(100 * cover["compared"] / total, words, judged)


def _worst(metric: str, rows: list[tuple[RunGap, Row]], judged: str, doubtful: int) -> FoundValue:
    name = metric.rpartition(".")[2]
    known = list(_values(metric, rows))
    numbers = [(value, row) for value, row, _ in known if value is not None]
    if not numbers:
        return FoundValue(None, f"no row has its {name}", judged)
    if name in _COUNTS:
        total = sum(value for value, _ in numbers)
        return FoundValue(total, f"in {len(numbers):,} outputs and nodes", judged)
    choose = min if name in _SMALLER_IS_WORSE else max
    value, row = choose(numbers, key=lambda pair: pair[0])
    place = row.node or row.operator
    several = "outputs and nodes" if len(numbers) != 1 else "output or node"
    words = f"worst of {len(numbers):,} {several}, at {place}"
    if doubtful:
        words += f"; {doubtful:,} with an uncertain join skipped"
    return FoundValue(value, words, judged, refused=_odd([found for _, _, found in known]))


def _values(
    metric: str, rows: list[tuple[RunGap, Row]]
) -> Iterator[tuple[float | None, Row, Metrics]]:
    name = metric.rpartition(".")[2]
    for _, row in rows:
        found = _part(metric, row)
        if found is not None:
            value: float | None = getattr(found, name)
            yield (None if value is None or math.isnan(value) else float(value)), row, found


def _part(metric: str, row: Row) -> Metrics | None:
    if metric.startswith(OWN):
        return row.own
    if metric.startswith(INHERITED):
        return row.inherited
    assert metric.startswith(GAP)
    return row.total


def _odd(found: list[Metrics]) -> str:
    """Return what distances leave out: places where only one of the two is a finite number."""
    odd = sum(one.odd > 0 for one in found)
    if not odd:
        return ""
    return f"{plural(odd, 'of them has', 'of them have')} NaN or infinity and the other does not"
