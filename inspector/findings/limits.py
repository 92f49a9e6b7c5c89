"""Findings about the limits of the machine: what bounds the slowest operators."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inspector.files.session import Session
from inspector.findings.attempts import edits_that_shrink
from inspector.findings.finding import Finding, Tone
from inspector.profile.methods import MethodTime, analyse_profile
from inspector.profile.operator_columns import INNER, OPERATOR
from inspector.profile.operator_rows import OperatorRow, operator_rows
from inspector.roofline.rows import (
    Limit,
    Limits,
    RooflineRow,
    known_limits,
    rate_text,
    rows_at_limits,
)
from inspector.units import format_share, format_time
from schema.objects.plural import plural

_SLOWEST = 12  # operators looked at
_WORTH = 0.05  # of the time of a method
_MANY_ROWS = 20_000  # as of other findings


@dataclass(frozen=True, slots=True)
class _Bound:
    """The slowest operators of a method that are near the same limit."""

    limit: Limit
    rows: tuple[RooflineRow, ...]

    @property
    def time_ns(self) -> float:
        return sum(row.time_ns or 0.0 for row in self.rows)

    @property
    def share(self) -> float:
        return sum(row.share_of_time or 0.0 for row in self.rows)


def limit_findings(session: Session) -> list[Finding]:
    """Return what bounds the slowest operators; empty without a calibration of this machine."""
    if not session.timed_dumps or session.times_with_values:
        return []
    limits = known_limits(session)
    if limits.missing or not limits.comparable:
        return []
    found: list[Finding] = []
    for time in analyse_profile(session).methods[:2]:
        rows = _slowest(session, time.method)
        at_limits = rows_at_limits(session, time.method, rows, limits)
        found += [
            _finding(session, bound, time, limits)
            for limit in (Limit.OVERHEAD, Limit.MEMORY, Limit.COMPUTE)
            if (bound := _Bound(limit, _of(at_limits, limit))).share >= _WORTH
        ]
    return found


def _of(rows: list[RooflineRow], limit: Limit) -> tuple[RooflineRow, ...]:
    own = [row for row in rows if row.bound is limit]
    return tuple(sorted(own, key=lambda row: -(row.time_ns or 0.0)))


def _slowest(session: Session, method: str) -> list[OperatorRow]:
    rows = operator_rows(session, method)
    if len(rows.parts) != 1 or len(rows) > _MANY_ROWS:
        return []
    (part,) = rows.parts
    works = np.isin(part.kind, (OPERATOR, INNER)) & part.timed
    order = np.argsort(np.where(works, -part.mean_ns, np.inf), kind="stable")
    return [rows[int(at)] for at in order[: min(_SLOWEST, int(works.sum()))]]


def _finding(session: Session, bound: _Bound, time: MethodTime, limits: Limits) -> Finding:
    first, method = bound.rows[0], time.method
    whose = "the time" if not method else f"the time of {method}"
    what = plural(len(bound.rows), "operator that is", "operators that are")
    text = f"{format_share(bound.share)} of {whose} is in {what} "
    saved = None
    if bound.limit is Limit.OVERHEAD:
        calls = sum(row.passes for row in bound.rows)
        text += f"overhead-bound: {format_time(bound.time_ns / calls)} a call"
        detail = f"{first.label}: {first.words}; far below the peak and the bandwidth"
        saved = bound.share * time.latency_ms
    else:
        text += f"{bound.limit.value}"
        of = "bandwidth" if bound.limit is Limit.MEMORY else "peak"
        detail = f"{first.label}: {rate_text(first)}, {format_share(first.share)} of the {of}"
    note = f"; {limits.note}" if limits.note else ""
    return Finding(
        Tone.NEUTRAL if bound.limit is not Limit.OVERHEAD else Tone.WARN,
        text,
        f"{detail}{note}",
        "roofline",
        method,
        event=first.event,
        weight=16 + bound.share,
        saves_ms=saved,
        edits=edits_that_shrink(session, bound.rows) if bound.limit is Limit.MEMORY else (),
    )
