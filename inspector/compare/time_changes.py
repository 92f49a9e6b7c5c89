"""Mean times of two sets of recorded runs: of entire methods, and by operator."""

from __future__ import annotations

from inspector.compare.change import Change
from inspector.compare.common_graphs import common_graphs
from inspector.compare.event_times import method_times, recorded_times, timed_methods
from inspector.compare.times import operator_rows
from inspector.files.session import Session

_MOST = 20  # operators of a method, those with the largest difference


def time_changes(old: Session, new: Session, method: str = "") -> list[Change]:
    """Return the times of the methods that both ran, and of the operators that differ most.

    Args:
        old: on the one side
        new: on the other
        method: only this one; empty for all
    """
    after = timed_methods(new)
    both = [name for name in timed_methods(old) if name in after and method in ("", name)]
    return [change for name in both for change in _of_method(old, new, name)]


def _of_method(old: Session, new: Session, method: str) -> list[Change]:
    sessions = (old, new)
    graphs, _ = common_graphs(sessions, method)
    pairs = zip(sessions, graphs, strict=True)
    times = [method_times(session, method, graph) for session, graph in pairs]
    one, two = times
    if one is None or two is None:
        return []
    name = method or "run"
    (before, now), note = recorded_times(times)
    found = [Change("time", name, before, now, "ms", counts=False, note=note)]
    both = [row for row in operator_rows(method, times) if row.difference(1)]
    for row in sorted(both, key=lambda row: -abs(row.difference(1) or 0.0))[:_MOST]:
        what = f"{name} {row.name}"
        before, now = row.ms
        found.append(Change("time", what, before, now, "ms", counts=False, note="mean of a run"))
    return found
