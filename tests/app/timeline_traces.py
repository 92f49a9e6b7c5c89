"""Traces for timeline tests, written event by event."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from inspector.files.session import LoadedFile, Session, SessionOptions
from schema import etdump
from schema.etdump import ProfileEvent
from schema.etdump.build import dump, run


def traced(runs: Iterable[Sequence[ProfileEvent]], unit: str = "ns", name: str = "made") -> Session:
    """Return a session of a trace alone, with these runs."""
    encoded = etdump.encode(dump([run("Execute", events) for events in runs]))
    decoded = etdump.decode(encoded, file="run.etdp")
    file = LoadedFile("run.etdp", "etdump", 1, memoryview(b"x"), decoded)
    return Session(name, (file,), SessionOptions(source_time_scale=unit))


def delegated_run(delegates: int, *, begin: int = 1000, late: int = 0) -> list[ProfileEvent]:
    """Return a run of delegate calls of 100 ns, each with two nodes, and an operator after each.

    Args:
        delegates: number of calls
        begin: first tick
        late: ticks by which what is inside the first call is late
    """
    events: list[ProfileEvent] = []
    at = begin + 10
    for number in range(delegates):
        off = late if number == 0 else 0
        step = 2 * number
        events += [
            ProfileEvent(None, 0, step, at + 10 + off, at + 40 + off, delegate_id_str="gemm"),
            ProfileEvent(None, 0, step, at + 40 + off, at + 90 + off, delegate_id_str="tanh"),
            ProfileEvent("DELEGATE_CALL", 0, step, at, at + 100),
            ProfileEvent("native_call_add.out", 0, step + 1, at + 105, at + 130),
            ProfileEvent("OPERATOR_CALL", 0, step + 1, at + 100, at + 135),
        ]
        at += 140
    return [*events, ProfileEvent("Method::execute", -1, 0, begin, at + 5)]
