"""The figures of several sessions side by side: memory plans, bytes of files, delegation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from inspector.compare.model import LESS, MORE, NEUTRAL, ComparePlace, Delta
from inspector.files.session import Session
from inspector.graph.delegation import MethodDelegation, analyse_delegation
from inspector.memory.measured import measured_as, measured_memory
from inspector.memory.plan import Arena, MemoryPlan, analyse_memory
from inspector.roofline.method_work import method_work
from inspector.size.files import session_sizes
from schema.objects.identity_cache import identity_cache

Sessions = Sequence[Session]
Number = float | int | None
_MEASURED = ("pte", "ptd", "bpte")
FLOPS, MOVED, MEASURED = "FLOPs", "bytes moved", "measured memory"
UNLIKE = "not comparable"  # runs in different runtimes or processes
_ARENA = (
    ("planned", "planned_bytes"),
    ("peak", "peak_bytes"),
    ("lower bound", "lower_bound_bytes"),
    ("free at the peak", "hole_bytes"),
)


def places(sessions: Sessions, view: str, method: str = "") -> tuple[ComparePlace | None, ...]:
    """Return the same place of every session."""
    return tuple(ComparePlace(number, view, method) for number in range(len(sessions)))


def memory_deltas(sessions: Sessions, method: str) -> tuple[Delta, ...]:
    """Return the figures of every planned buffer of a method; None if a session lacks it."""
    plans = [_plan(session, method) for session in sessions]
    if all(plan is None for plan in plans):
        return ()
    ids = sorted({arena.mem_id for plan in plans if plan is not None for arena in plan.arenas})
    found: list[Delta] = []
    where = places(sessions, "memory", method)
    for mem_id in ids:
        arenas = [_arena(plan, mem_id) for plan in plans]
        for words, name in _ARENA:
            values = tuple(None if one is None else int(getattr(one, name)) for one in arenas)
            what = f"arena {mem_id} {words}"
            found.append(Delta("memory", what, "bytes", values, LESS, method, places=where))
    return tuple(found)


def memory_summary(sessions: Sessions, method: str) -> tuple[Delta, ...]:
    """Return the totals of all planned buffers of a method."""
    plans = [_plan(session, method) for session in sessions]
    if all(plan is None for plan in plans):
        return ()
    where = places(sessions, "memory", method)

    def total(name: str) -> tuple[Number, ...]:
        return tuple(None if plan is None else int(getattr(plan, name)) for plan in plans)

    return (
        Delta("memory", "arenas", "bytes", total("planned_bytes"), LESS, method, places=where),
        Delta("memory", "peak", "bytes", total("peak_bytes"), LESS, method, places=where),
    )


def measured_deltas(sessions: Sessions, method: str) -> tuple[Delta, ...]:
    """Return the resident memory of the runs of a method, phase by phase, where it was measured."""
    rows = [measured_memory(session, method) for session in sessions]
    sides = [{(one.phase, one.part): one.nbytes for one in side} for side in rows]
    words = "; ".join(dict.fromkeys(measured_as(side) for side in rows if side))
    ways = {side[0].note for side in rows if side}  # a runtime takes memory of its own
    if len(ways) > 1:
        words = "; ".join([UNLIKE, *sorted(filter(None, ways)), words])
    better = LESS if len(ways) == 1 else NEUTRAL
    where = places(sessions, "memory", method)
    found: list[Delta] = []
    for phase, part in dict.fromkeys(key for side in sides for key in side):
        values = tuple(side.get((phase, part)) for side in sides)
        what = f"{MEASURED}, {phase}{f': {part}' if part else ''}"
        if any(value is not None for value in values):
            found.append(Delta("memory", what, "bytes", values, better, method, (), words, where))
    return tuple(found)


def work_summary(sessions: Sessions, method: str) -> tuple[Delta, ...]:
    """Return FLOPs and bytes moved of a method, each instruction once."""
    works = [method_work(session, method).total for session in sessions]
    reasons = dict.fromkeys(one.reason for one in works if one.flops is None or one.nbytes is None)
    note = "; ".join(filter(None, reasons))
    where = places(sessions, "roofline", method)
    rows = ((FLOPS, "FLOPs", "flops"), (MOVED, "bytes", "nbytes"))
    found = (
        Delta(
            "work",
            what,
            unit,
            tuple(getattr(one, name) for one in works),
            LESS,
            method,
            (),
            note,
            where,
        )
        for what, unit, name in rows
    )
    return tuple(one for one in found if any(value is not None for value in one.values))


def _plan(session: Session, method: str) -> MemoryPlan | None:
    program = session.program
    if program is None or method not in session.methods:
        return None
    return analyse_memory(program, method)


def _arena(plan: MemoryPlan | None, mem_id: int) -> Arena | None:
    arenas = plan.arenas if plan is not None else ()
    return next((arena for arena in arenas if arena.mem_id == mem_id), None)


def size_deltas(sessions: Sessions) -> tuple[Delta, ...]:
    """Return bytes by kind of part, file kind by file kind; the entire file comes first.

    A kind of file that a session lacks is missing there, not empty.
    """
    counts = [_bytes(session) for session in sessions]
    kinds = [{file.kind for file in session.files} for session in sessions]
    found: list[Delta] = []
    where = places(sessions, "size")
    for file in _MEASURED:
        names = dict.fromkeys(part for one in counts for kind, part in one if kind == file)
        ordered = sorted(names, key=lambda name: (name != "file", name))
        for name in ordered:
            values = tuple(
                one.get((file, name), 0) if file in there else None
                for one, there in zip(counts, kinds, strict=True)
            )
            found.append(Delta("size", f".{file} {name}", "bytes", values, LESS, places=where))
    return tuple(found)


def _bytes(session: Session) -> dict[tuple[str, str], int]:
    counts: dict[tuple[str, str], int] = {}
    for one in session_sizes(session):
        if one.size is None or one.file.kind not in _MEASURED:
            continue
        whole = (one.file.kind, "file")
        counts[whole] = counts.get(whole, 0) + one.size.total_bytes
        for part in one.size.parts:
            key = (one.file.kind, part.kind)
            counts[key] = counts.get(key, 0) + part.nbytes
    return counts


def delegation_summary(sessions: Sequence[Session], method: str) -> tuple[Delta, ...]:
    """Return how much of a method is delegated.

    Nodes of recorded graphs and of payloads are not comparable: unless all sessions
    have a recorded graph, the nodes of all programs are counted.
    """
    entries = [_delegation(session, method) for session in sessions]
    note = ""
    if len({_way(entry) for entry in entries if entry is not None}) > 1:
        note = "counted in the programs, since not all have a record"
        entries = [_delegation(without_records(session), method) for session in sessions]
    if all(entry is None for entry in entries):
        return ()
    where = places(sessions, "partitions", method)

    def each(read: Callable[[MethodDelegation], Number]) -> tuple[Number, ...]:
        return tuple(None if entry is None else read(entry) for entry in entries)

    return tuple(
        Delta("delegation", what, unit, each(read), better, method, (), note, where)
        for what, unit, read, better in (
            ("delegated", "share", _share, MORE),
            ("nodes in delegates", "", _inside, MORE),
            ("nodes outside", "", _outside, LESS),
            ("delegates", "", _subgraphs, LESS),
        )
    )


@identity_cache
def without_records(session: Session) -> Session:
    """Return a session without its ETRecord, as for its program only."""
    files = tuple(file for file in session.files if file.kind != "etrecord")
    return Session(session.name, files, session.options, session.issues)


def _delegation(session: Session, method: str) -> MethodDelegation | None:
    if session.program is None and session.record is None:
        return None
    found = analyse_delegation(session)
    return next((entry for entry in found if entry.method == method), None)


def _way(entry: MethodDelegation) -> str:
    return "payload" if entry.counting == "payload" else "recorded"


def _subgraphs(entry: MethodDelegation) -> int:
    return entry.num_delegated_subgraphs


def _share(entry: MethodDelegation) -> Number:
    whole = entry.compute_delegated + entry.compute_non_delegated
    return entry.compute_delegated / whole if whole and not entry.unread else None


def _inside(entry: MethodDelegation) -> Number:
    return None if entry.unread else entry.compute_delegated


def _outside(entry: MethodDelegation) -> int:
    return entry.compute_non_delegated
