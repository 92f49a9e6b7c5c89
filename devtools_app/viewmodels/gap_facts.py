"""Numeric gap of the selection, for the Node panel."""

from __future__ import annotations

from devtools_app.state.requests import ShowView
from inspector.numerics.metrics import Metrics
from inspector.numerics.report import BY_RUN, Row, RunGap
from inspector.profile.join_index import Related
from inspector.tables.facts import Fact, FactGroup
from inspector.tables.numeric_gap import selected_row
from inspector.units import format_share

_TITLE = "Numeric gap"


def gap_group(run: RunGap | None, related: Related) -> FactGroup:
    """Return the error of a node against the reference; an empty group without a comparison."""
    row = None if run is None else selected_row(run, related)
    if row is None:
        return FactGroup(_TITLE)
    if row.total is None:
        return FactGroup(_TITLE, (Fact("not compared", row.reason),))
    facts = [_distance(_basis(row), row.total)]
    if row.own is not None:
        badge, tone = ("diverges", "bad") if row.diverges else ("", "")
        facts.append(_distance("own error", row.own, badge, tone))
    if row.inherited is not None:
        facts.append(_distance("received", row.inherited))
    facts += _measures(row.total)
    if len(row.covers) > 1:
        names = ", ".join(row.covers)
        facts.append(Fact("compared as", f"last of {len(row.covers)} nodes", names))
    if row.note:
        facts.append(Fact("note", row.note))
    how, badge, tone = _joined(row)
    facts.append(Fact("joined", how, row.grade, badge, tone))
    facts.append(Fact("", "show in Numeric gap", link=ShowView("gap")))
    return FactGroup(_TITLE, tuple(facts))


_EXACT = {
    "INSTRUCTION": "by instruction",
    "DEBUG_HANDLE": "by debug handle",
    "DELEGATE_ID": "by delegate id",
}


def _joined(row: Row) -> tuple[str, str, str]:
    """Return how a row was joined, as a badge with its tone."""
    if row.uncertain:
        return "by order", "join uncertain", "warn"
    if row.inferred:
        return "by data flow", "inferred", "good"
    return _EXACT.get(row.grade, row.grade), "exact", "good"


def _basis(row: Row) -> str:
    return "from values of the run" if row.basis == BY_RUN else "from the reference"


def _distance(label: str, metrics: Metrics, badge: str = "", tone: str = "") -> Fact:
    text = f"{metrics.max_abs:.4g}"
    if metrics.out_of_tolerance:
        text += f"  {format_share(metrics.out_of_tolerance)} of elements above the tolerance"
    return Fact(label, text, f"largest difference {metrics.max_abs!r}", badge, tone)


def _measures(metrics: Metrics) -> list[Fact]:
    facts: list[Fact] = []
    if metrics.snr_db is not None:
        facts.append(Fact("SNR", f"{metrics.snr_db:.1f} dB", repr(metrics.snr_db)))
    if metrics.ulp is not None:
        near = "  near zero" if metrics.near_zero else ""
        facts.append(Fact("ULP", f"{metrics.ulp:.4g}{near}", repr(metrics.ulp)))
    for name, found, requested in (
        ("NaN", metrics.nan, metrics.nan_reference),
        ("infinite", metrics.inf, metrics.inf_reference),
    ):
        if found or requested:
            facts.append(Fact(name, f"{found:,}, the reference has {requested:,}"))
    return facts
