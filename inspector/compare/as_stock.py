"""Times of sessions with the calls of the stock runtime, from its calibrated costs."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.compare.model import LESS, Delta
from inspector.compare.numbers import places
from inspector.files.session import Session
from inspector.roofline.as_target import exchanged_calls

AS_STOCK = "as the stock runtime would take"


def as_stock(
    sessions: Sequence[Session],
    method: str,
    values: Sequence[float | int | None],
    ran: Sequence[str] = (),
) -> list[Delta]:
    """Return the figure of times with other calls, none where the cost of calls is unknown.

    Args:
        sessions: compared
        method: that ran
        values: times of a run without a trace in ms, one per session
        ran: target that measured each; empty for those of the traces
    """
    found = [
        None if value is None else exchanged_calls(session, method, ran[number] if ran else "")
        for number, (session, value) in enumerate(zip(sessions, values, strict=True))
    ]
    taken = tuple(
        None if one is None or value is None else one.taken_ms(value)
        for one, value in zip(found, values, strict=True)
    )
    if any(one is None for one in taken):
        return []
    note = "; ".join(dict.fromkeys(one.words for one in found if one is not None))
    where = places(sessions, "timeline", method)
    return [Delta("time", AS_STOCK, "ms", taken, LESS, method, note=note, places=where)]
