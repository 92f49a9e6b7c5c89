"""What differs between two sessions: program, delegation, memory, size and time.

Programs are compared by structure, not by index: an inserted operator is one difference. Times
are medians without a claim whether their difference is real.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass

from inspector.delegation import analyse_delegation
from inspector.graph_diff import Alignment, align
from inspector.memory import analyse_memory, instruction_label
from inspector.profile import analyse_profile
from inspector.session import Session
from inspector.size_files import session_sizes
from inspector.tensors import StoredTensor, stored_tensors
from schema.identity_cache import identity_cache
from schema.program import instructions
from schema.program import model as m


@dataclass(frozen=True, slots=True)
class Change:
    """One difference.

    Attributes:
        area: program, operators, delegation, memory, size, tensors or time
        what: the thing that differs
        old: before, None when it was not there
        new: after, None when it is gone
        unit: ms, bytes or empty
        counts: whether it makes the two different; times of runs always vary and do not
    """

    area: str
    what: str
    old: object
    new: object
    unit: str = ""
    counts: bool = True


@identity_cache
def diff_sessions(old: Session, new: Session) -> tuple[Change, ...]:
    """Return all differences, by area."""
    found: list[Change] = []
    found += _methods(old, new)
    for method in (name for name in old.methods if name in new.methods):
        found += _operators(old, new, method)
        found += _memory(old, new, method)
        found += _tensors(old, new, method)
    found += _delegation(old, new)
    found += _size(old, new)
    found += _time(old, new)
    return tuple(found)


def _methods(old: Session, new: Session) -> list[Change]:
    gone = [
        Change("program", f"method {name}", name, None)
        for name in old.methods
        if name not in new.methods
    ]
    come = [
        Change("program", f"method {name}", None, name)
        for name in new.methods
        if name not in old.methods
    ]
    return gone + come


def _labels(session: Session, method: str) -> list[str]:
    if session.program is None:
        return []
    plan = session.program.plan(method)
    labels: list[str] = []
    for _, _, instruction in instructions(plan):
        args = instruction.instr_args
        if isinstance(args, m.DelegateCall) and 0 <= args.delegate_index < len(plan.delegates):
            labels.append(plan.delegates[args.delegate_index].id)
        else:
            labels.append(instruction_label(plan, args))
    return labels


def instruction_alignment(old: Session, new: Session, method: str) -> Alignment:
    """Return which instructions of a method are the same in both."""
    return align(_labels(old, method), _labels(new, method))


def _operators(old: Session, new: Session, method: str) -> list[Change]:
    before, after = _labels(old, method), _labels(new, method)
    if not before or not after:
        return []
    found: list[Change] = []
    counts, later = Counter(before), Counter(after)
    for name in sorted(counts.keys() | later.keys()):
        if counts[name] != later[name]:
            found.append(Change("operators", f"{method} {name}", counts[name], later[name]))
    alignment = align(before, after)
    if not found and (alignment.added or alignment.removed):
        moved = len(alignment.added)
        found.append(Change("operators", f"{method} order", None, f"{moved} instruction(s) moved"))
    return found


def _memory(old: Session, new: Session, method: str) -> list[Change]:
    if old.program is None or new.program is None:
        return []
    before = {arena.mem_id: arena for arena in analyse_memory(old.program, method).arenas}
    after = {arena.mem_id: arena for arena in analyse_memory(new.program, method).arenas}
    found: list[Change] = []
    for mem_id in sorted(before.keys() | after.keys()):
        one, two = before.get(mem_id), after.get(mem_id)
        for name in ("planned_bytes", "peak_bytes"):
            here = getattr(one, name) if one is not None else None
            there = getattr(two, name) if two is not None else None
            if here != there:
                what = f"{method} arena {mem_id} {name.removesuffix('_bytes')}"
                found.append(Change("memory", what, here, there, "bytes"))
    return found


def _tensors(old: Session, new: Session, method: str) -> list[Change]:
    """Compare stored tensors by content; names are compared where files have them."""
    before, after = stored_tensors(old, method), stored_tensors(new, method)
    alignment = align([_signature(one) for one in before], [_signature(one) for one in after])
    gone = (_tensor(method, before[index]) for index in alignment.removed)
    come = (_tensor(method, after[index]) for index in alignment.added)
    return [
        *(Change("tensors", what, "stored", None) for what in gone),
        *(Change("tensors", what, None, "stored") for what in come),
    ]


def _signature(one: StoredTensor) -> tuple[object, ...]:
    content = hashlib.sha256(one.data).digest() if one.data is not None else one.missing
    return (one.dtype, one.sizes, content)


def _tensor(method: str, one: StoredTensor) -> str:
    return f"{method} {one.name} {one.dtype} {list(one.sizes)}"


def _delegation(old: Session, new: Session) -> list[Change]:
    before = {entry.method: entry for entry in analyse_delegation(old)}
    after = {entry.method: entry for entry in analyse_delegation(new)}
    found: list[Change] = []
    for method in sorted(before.keys() & after.keys()):
        one, two = before[method], after[method]
        if one.counting != two.counting:
            note = f"counted by {one.counting} and by {two.counting}: not comparable"
            found.append(Change("delegation", f"{method} counting", one.counting, note))
            continue
        for name in ("num_delegated_subgraphs", "num_delegated_nodes", "num_non_delegated_nodes"):
            here, there = getattr(one, name), getattr(two, name)
            if here != there:
                what = f"{method} {name.removeprefix('num_').replace('_', ' ')}"
                found.append(Change("delegation", what, here, there))
    return found


def _size(old: Session, new: Session) -> list[Change]:
    before, after = _kinds(old), _kinds(new)
    return [
        Change("size", kind, before.get(kind, 0), after.get(kind, 0), "bytes")
        for kind in sorted(before.keys() | after.keys())
        if before.get(kind, 0) != after.get(kind, 0)
    ]


def _kinds(session: Session) -> Counter[str]:
    counts: Counter[str] = Counter()
    for one in session_sizes(session):
        if one.size is not None and one.file.kind in ("pte", "ptd", "bpte"):
            counts["total"] += one.size.total_bytes
            for part in one.size.parts:
                counts[part.kind] += part.nbytes
    return counts


def _time(old: Session, new: Session) -> list[Change]:
    before = {time.method: time for time in analyse_profile(old).methods}
    after = {time.method: time for time in analyse_profile(new).methods}
    found: list[Change] = []
    for method in sorted(before.keys() & after.keys()):
        for name in ("method_ms", "delegates_ms", "operators_ms", "unattributed_ms"):
            here, there = getattr(before[method], name), getattr(after[method], name)
            what = f"{method or 'run'} {name.removesuffix('_ms')} (mean)"
            if here or there:
                found.append(Change("time", what, here, there, "ms", counts=False))
    return found
