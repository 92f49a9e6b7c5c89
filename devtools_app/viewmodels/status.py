"""The status line: time of the method by part, and its planned memory."""

from __future__ import annotations

from dataclasses import dataclass

from devtools_app.viewmodels.status_part import StatusPart
from inspector.files.session import Session
from inspector.memory.plan import analyse_memory
from inspector.profile.methods import MethodTime, Profile, analyse_profile, time_of, why_no_events
from inspector.tables.method_facts import cold_start
from inspector.tables.selection import AUTOMATIC, Units
from inspector.units import NS_PER_MS, Quantity, choose_unit, format_bytes, format_ms


@dataclass(frozen=True, slots=True)
class StatusFacts:
    """Time and memory of one method for the status line.

    Attributes:
        time: means over the runs of the trace; None without one, or when its unit is not time
        why_no_time: message shown instead of times
        tags: notes shown with the times, such as an assumed unit of the ticks
        arena_bytes: bytes planned for the method, None without a program
    """

    time: MethodTime | None = None
    why_no_time: str = ""
    tags: tuple[str, ...] = ()
    arena_bytes: int | None = None


def status_facts(session: Session, method: str) -> StatusFacts:
    """Return the time and memory of a method."""
    arena = _arena_bytes(session, method)
    if not session.dumps:
        return StatusFacts(None, "no trace in this session", (), arena)
    profile = analyse_profile(session)
    if not profile.unit_is_time:
        return StatusFacts(None, f"the trace counts {profile.unit}, not time", (), arena)
    time = time_of(session, method)
    why = "" if time is not None else _why_no_time(session, method, profile)
    return StatusFacts(time, why, profile.tags_of(time), arena)


def _why_no_time(session: Session, method: str, profile: Profile) -> str:
    if why := why_no_events(session):
        return why[0].lower() + why[1:].partition(":")[0]
    if not profile.methods:  # it was stopped before
        cold = cold_start(session, method, AUTOMATIC)
        return f"no run was traced; {cold.label}: {cold.value}" if cold else "no run was traced"
    if any(not one.method for one in profile.methods):
        return "the trace does not tell which method ran"
    ran = ", ".join(dict.fromkeys(one.method for one in profile.methods))
    return f"the trace has runs of {ran}, none of this method"


def _arena_bytes(session: Session, method: str) -> int | None:
    program = session.program
    if program is None or all(plan.name != method for plan in program.plans):
        return None
    return analyse_memory(program, method).planned_bytes


def time_parts(facts: StatusFacts, units: Units) -> tuple[StatusPart, ...]:
    """Return the sum and its parts: ``1.504 ms method = 0.561 ms delegates + ...``."""
    time = facts.time
    if time is None:
        return (StatusPart("", facts.why_no_time),) if facts.why_no_time else ()
    nanoseconds = time.latency_ms * NS_PER_MS
    unit = choose_unit(Quantity.TIME, nanoseconds, units.time).symbol  # of the whole sum
    shown = [StatusPart(format_ms(ms, unit), word) for word, ms in time.latency_parts if ms]
    whole = StatusPart(format_ms(time.latency_ms, unit), "method", strong=True)
    return (whole, *shown)


def memory_part(facts: StatusFacts, units: Units) -> StatusPart | None:
    """Return the planned bytes, None without a program."""
    if facts.arena_bytes is None:
        return None
    return StatusPart(format_bytes(facts.arena_bytes, units.size), "planned")
