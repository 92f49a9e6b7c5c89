"""Differences between two sessions: program, delegation, values, data, memory, size and time.

Things are compared by name or structure, never by index: an inserted operator is one difference.
Times are means over the recorded runs, without a verdict on their significance.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from inspector.compare.change import MOST_SAMPLES, Change
from inspector.compare.data_changes import bundled_changes, named_data_changes, tensor_changes
from inspector.compare.node_changes import node_alignment, node_changes
from inspector.compare.program_changes import instruction_alignment, program_changes
from inspector.compare.time_changes import time_changes
from inspector.files.session import Session
from inspector.graph.delegation import analyse_delegation
from inspector.memory.plan import analyse_memory
from inspector.size.files import session_sizes
from schema.objects.identity_cache import identity_cache

__all__ = ["AREAS", "Change", "diff_sessions", "instruction_alignment", "node_alignment"]

AREAS = (
    "files",
    "program",
    "operators",
    "instructions",
    "nodes",
    "values",
    "delegates",
    "delegation",
    "memory",
    "tensors",
    "named data",
    "test cases",
    "size",
    "time",
)
_COUNTS = ("num_delegated_subgraphs", "num_delegated_nodes", "num_non_delegated_nodes")
_ARENA = ("planned_bytes", "peak_bytes", "lower_bound_bytes")
_MEASURED = ("pte", "ptd", "bpte")


@identity_cache
def diff_sessions(
    old: Session, new: Session, samples: int = MOST_SAMPLES, method: str = ""
) -> tuple[Change, ...]:
    """Return all differences, area by area.

    Args:
        old: the first session
        new: the second session
        samples: largest number of listed elements per tensor
        method: only this one, and facts without a method; empty for all
    """
    both = [name for name in old.methods if name in new.methods and method in ("", name)]
    found = [*_files(old, new), *_methods(old, new, method)]
    for method in both:
        found += program_changes(old, new, method)
        found += node_changes(old, new, method)
        found += _memory(old, new, method)
        found += tensor_changes(old, new, method, samples)
    found += _delegation(old, new, both)
    found += named_data_changes(old, new)
    found += bundled_changes(old, new, method)
    found += _size(old, new)
    found += time_changes(old, new, method)
    return tuple(sorted(found, key=lambda change: AREAS.index(change.area)))


def comparable(old: Session, new: Session) -> bool:
    """Return whether both sessions have a file of the same kind, or a program each."""
    kinds = [{file.kind for file in session.files} for session in (old, new)]
    return bool(kinds[0] & kinds[1]) or None not in (old.program, new.program)


def _files(old: Session, new: Session) -> list[Change]:
    """List the kinds of files only one side has, which is not a difference."""
    before, after = ([file.kind for file in session.files] for session in (old, new))
    counts = not comparable(old, new)
    return [
        Change("files", kind, before.count(kind), after.count(kind), counts=counts)
        for kind in sorted({*before, *after})
        if before.count(kind) != after.count(kind)
    ]


def _methods(old: Session, new: Session, method: str) -> list[Change]:
    if not old.methods or not new.methods:
        return []
    before, after = (
        [name for name in session.methods if method in ("", name)] for session in (old, new)
    )
    return _one_sided("program", before, after, "method")


def _one_sided(area: str, old: Iterable[str], new: Iterable[str], what: str) -> list[Change]:
    before, after = list(old), list(new)
    gone = [Change(area, f"{what} {name}", "there", None) for name in before if name not in after]
    come = [Change(area, f"{what} {name}", None, "there") for name in after if name not in before]
    return gone + come


def _memory(old: Session, new: Session, method: str) -> list[Change]:
    if old.program is None or new.program is None:
        return []
    before = {arena.mem_id: arena for arena in analyse_memory(old.program, method).arenas}
    after = {arena.mem_id: arena for arena in analyse_memory(new.program, method).arenas}
    found: list[Change] = []
    for mem_id in sorted(before.keys() | after.keys()):
        one, two = before.get(mem_id), after.get(mem_id)
        for name in _ARENA:
            here = getattr(one, name) if one is not None else None
            there = getattr(two, name) if two is not None else None
            if here != there:
                word = name.removesuffix("_bytes").replace("_", " ")
                what = f"{method} arena {mem_id} {word}"
                found.append(Change("memory", what, here, there, "bytes"))
    return found


def _delegation(old: Session, new: Session, both: Sequence[str]) -> list[Change]:
    before = {entry.method: entry for entry in analyse_delegation(old)}
    after = {entry.method: entry for entry in analyse_delegation(new)}
    found: list[Change] = []
    for method in sorted(before.keys() & after.keys() & set(both)):
        one, two = before[method], after[method]
        if one.counting != two.counting:
            note = "the values cannot be compared: one side has no record"
            change = Change(
                "delegation",
                f"{method} counting",
                one.counting,
                two.counting,
                counts=False,
                note=note,
            )
            found.append(change)
            continue
        for name in _COUNTS:
            here, there = getattr(one, name), getattr(two, name)
            if here != there:
                what = f"{method} {name.removeprefix('num_').replace('_', ' ')}"
                found.append(Change("delegation", what, here, there))
    return found


def _size(old: Session, new: Session) -> list[Change]:
    common = {file.kind for file in old.files} & {file.kind for file in new.files}
    before, after = _kinds(old, common), _kinds(new, common)
    return [
        Change("size", kind, before.get(kind, 0), after.get(kind, 0), "bytes")
        for kind in sorted(before.keys() | after.keys())
        if before.get(kind, 0) != after.get(kind, 0)
    ]


def _kinds(session: Session, common: set[str]) -> dict[str, int]:
    """Return bytes by kind of part, and of each kind of file that both sides have."""
    counts: dict[str, int] = {}
    for one in session_sizes(session):
        if one.size is None or one.file.kind not in _MEASURED:
            continue
        if one.file.kind not in common:
            continue
        whole = f".{one.file.kind} file"
        counts[whole] = counts.get(whole, 0) + one.size.total_bytes
        for part in one.size.parts:
            name = f".{one.file.kind} {part.kind}"
            counts[name] = counts.get(name, 0) + part.nbytes
    return counts
