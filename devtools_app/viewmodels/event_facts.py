"""The facts of an event that belongs to no operator, such as a whole run or the loading."""

from __future__ import annotations

from inspector.files.session import Session
from inspector.profile.methods import analyse_profile
from inspector.profile.rows import ProfileRow
from inspector.tables.facts import Fact, FactGroup, FactSheet
from inspector.tables.selection import Units
from inspector.units import NS_PER_MS, Quantity, exact_text, format_duration, format_share
from schema.objects.plural import plural

_NO_OPERATOR = "No operator"
_RUNTIME = "The runtime logged it itself: no instruction of the program and no node belongs to it."


def event_sheet(session: Session, row: int | None, units: Units) -> FactSheet:
    """Return name and times of a row of the profile; empty without one.

    Args:
        session: with the trace
        row: of its profile
        units: for display
    """
    rows = analyse_profile(session).rows
    if row is None or not 0 <= row < len(rows):
        return FactSheet()
    found = rows[row]
    runs = int(rows.place(row)[0].steady.sum())
    title = f"Time, {plural(runs, 'run')}"
    groups = (
        FactGroup("", notice=_NO_OPERATOR, text=_RUNTIME),
        FactGroup(title, tuple(_times(found, runs, units))),
    )
    name = found.event_name or "event without a name"
    return FactSheet(name, f"{found.block_name}, outside of the operators", groups)


def _times(found: ProfileRow, runs: int, units: Units) -> list[Fact]:
    known = found.statistics
    if known is None or found.total_ms is None:
        return [Fact("time", "missing", "it has no duration, or its ticks are not time")]
    share = "" if found.share is None else f"  {format_share(found.share)}"
    text = f"{_time(known.avg, units)}{share}"
    facts = [Fact("mean" if runs > 1 else "time", text, _exact(known.avg))]
    if known.p50 is not None:
        facts.append(Fact("p50", _time(known.p50, units), _exact(known.p50)))
    if runs > 1:
        ends = dict.fromkeys(_time(end, units) for end in (known.min, known.max))
        facts.append(Fact("min … max", " … ".join(ends), _exact(known.min, known.max)))
    if found.occurrences > 1:
        facts.append(Fact("times per run", f"{found.occurrences:,}"))
        facts.append(Fact("together", _time(found.total_ms, units), _exact(found.total_ms)))
    return facts


def _time(ms: float, units: Units) -> str:
    return format_duration(ms * NS_PER_MS, 0.0, units.time)


def _exact(*ms: float) -> str:
    return " … ".join(exact_text(one * NS_PER_MS, Quantity.TIME) for one in ms)
