"""Findings about a program: delegation, memory and size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from inspector.files.payloads import unread_payloads
from inspector.files.session import Session
from inspector.findings.attempts import (
    DELEGATE_ALL,
    edits_that_delegate,
    edits_that_exclude,
    edits_that_join,
    edits_that_replan,
    edits_that_share,
    overhead_ms,
)
from inspector.findings.finding import Finding, Tone
from inspector.graph.delegation import MethodDelegation, analyse_delegation
from inspector.join import record_maps
from inspector.memory.plan import Arena, PlannedValue, analyse_memory
from inspector.profile.methods import time_of
from inspector.roofline.call_costs import usual_costs
from inspector.size.files import SizedFile, session_sizes
from inspector.size.owners import FilePart, mark_duplicates
from inspector.size.users import part_title, stored_users, users_of, users_text
from inspector.units import format_bytes, format_share, format_time
from schema.dtypes.scalar_type import known_nbytes
from schema.objects.plural import plural
from schema.program import ProgramFile, instructions
from schema.program import model as m

_MEASURED = ("pte", "ptd")
_HASHED_BYTES = 64 << 20  # duplicates are searched only while hashing is not noticeable
# Equal tables of two delegates are no waste; equal weights are.
_CONTENT = ("constant", "mutable data", "named data", "payload constant")
_SMALL_FILE = 4096  # in smaller files the tables are most of it, which is no news
_FEW_NODES = 3


def delegation_findings(session: Session) -> list[Finding]:
    """Return delegation facts, the methods with most nodes first."""
    entries = [entry for entry in analyse_delegation(session) if _nodes(entry)]
    entries.sort(key=lambda entry: -_nodes(entry))
    found = [finding for entry in entries[:2] for finding in _delegation(session, entry)]
    return [*refusal_findings(session), *_unread(session.program), *found]


def refusal_findings(session: Session) -> list[Finding]:
    """Return the partitions that their engine refused when the program was compiled."""
    refusals = record_maps.refusals(session.record) if session.record is not None else ()
    if not refusals:
        return []
    first = refusals[0]
    what = f"{first.node} ({first.operator})" if first.node else f"a node of kind {first.kind}"
    more = f" and {len(refusals) - 1} more" if len(refusals) > 1 else ""
    text = f"Partition {first.delegate} of {first.method} does not load because of {what}{more}"
    rule = f"; {first.rule} accepted it" if first.rule else ""
    detail = f"{first.engine}: {first.reason}{rule}"
    method, delegate = first.method, first.delegate
    return [
        Finding(
            Tone.BAD,
            text,
            detail,
            "partitions",
            method,
            delegate=delegate,
            weight=95,
            doubt=True,
            edits=edits_that_exclude(refusals),
        )
    ]


def _unread(program: ProgramFile | None) -> list[Finding]:
    """Return that payloads are damaged, or of an unknown format."""
    issues = unread_payloads(program) if program is not None else ()
    if not issues:
        return []
    text = f"{plural(len(issues), 'delegate payload')} cannot be read"
    detail = f"{issues[0].where}: {issues[0].message}"
    return [Finding(Tone.BAD, text, detail, "issues", weight=60, doubt=True)]


def _nodes(entry: MethodDelegation) -> int:
    return entry.num_delegated_nodes + entry.num_non_delegated_nodes


def _delegation(session: Session, entry: MethodDelegation) -> list[Finding]:
    if not entry.num_delegated_subgraphs:
        count = entry.compute_non_delegated
        detail = plural(count, "computing node runs as a kernel", "computing nodes run as kernels")
        text = f"Nothing in {entry.method} is delegated"
        method = entry.method
        edits = (DELEGATE_ALL,) if not entry.verdicts else edits_that_delegate(session, method)
        time = time_of(session, method) if session.timed_dumps else None
        known = time is not None and not session.times_with_values and time.operators_ms > 0
        saves = min(time.operators_ms, time.latency_ms) if time is not None and known else None
        found = Finding(Tone.NEUTRAL, text, detail, "partitions", method, weight=4, edits=edits)
        return [replace(found, saves_ms=saves)]
    return [_partly(session, entry), *_scattered(session, entry)]


def _partly(session: Session, entry: MethodDelegation) -> Finding:
    computing = entry.compute_delegated + entry.compute_non_delegated
    share = entry.compute_delegated / computing if computing else 0.0
    whose = f" of {entry.method}" if len(session.methods) > 1 else ""
    text = (
        f"{entry.compute_delegated:,} of {plural(computing, 'computing node')}{whose} are in"
        f" {plural(entry.num_delegated_subgraphs, 'delegate')}"
    )
    backends = Counter(one.backend_id for one in entry.delegates)
    names = [f"{name} ×{count}" if count > 1 else name for name, count in backends.most_common()]
    crossing = _crossing(session.program, entry.method)
    if crossing:
        names.append(crossing)
    opaque = bool(entry.unread)
    if opaque and entry.compute_delegated:
        names.append(entry.unread_words)
    elif opaque:
        text = f"{plural(entry.num_delegated_subgraphs, 'delegate')} whose inside cannot be read"
    tone = Tone.NEUTRAL if opaque else Tone.GOOD if share >= 0.95 else Tone.WARN
    return Finding(
        tone,
        text,
        ", ".join(names),
        "partitions",
        entry.method,
        weight=20 + 19 * (1 - share),
        edits=() if session.timed_dumps else edits_that_delegate(session, entry.method),
    )


def _crossing(program: ProgramFile | None, method: str) -> str:
    """Return how many tensors enter and leave delegates in one run, and their bytes."""
    if program is None:
        return ""
    plan = program.plan(method)
    count = nbytes = unknown = 0
    for _, _, instruction in instructions(plan):
        args = instruction.instr_args
        if not isinstance(args, m.DelegateCall):
            continue
        for index in args.args:
            value = plan.values[index].val if 0 <= index < len(plan.values) else None
            if isinstance(value, m.Tensor):
                count += 1
                size = known_nbytes(value.scalar_type, value.sizes)
                nbytes += size or 0
                unknown += size is None
    least = "at least " if unknown else ""
    text = f"{plural(count, 'tensor')} ({least}{format_bytes(nbytes)}) cross their boundaries"
    return text if count else ""


def _scattered(session: Session, entry: MethodDelegation) -> list[Finding]:
    count = entry.num_delegated_subgraphs
    few = 0 < entry.compute_delegated <= _FEW_NODES * count
    if count < 4 or not few or entry.unread:
        return []
    text = (
        f"{count} delegates hold {entry.compute_delegated / count:.1f} computing nodes each"
        " on average"
    )
    costs = usual_costs()
    detail = "every boundary costs a call, and often a copy"
    if costs is not None:
        called = format_time(costs.call * count)
        detail += f": {count} calls take {called} on the {costs.where}, as measured here"
    return [
        Finding(
            Tone.WARN,
            text,
            detail,
            "partitions",
            entry.method,
            weight=22,
            saves_ms=overhead_ms(session, entry.method),
            edits=edits_that_join(entry),
        )
    ]


def memory_findings(session: Session) -> list[Finding]:
    """Return the peak of the method that plans the most memory."""
    program = session.program
    if program is None:
        return []
    arenas = [
        (plan.name, arena)
        for plan in program.plans
        for arena in analyse_memory(program, plan.name).arenas
        if arena.peak_bytes
    ]
    if not arenas:
        return []
    method, arena = max(arenas, key=lambda pair: pair[1].planned_bytes)
    several = len(program.plans) > 1
    some = analyse_memory(program, method).instruction_count > 0
    where = f" at instruction {arena.peak_instruction}" if some else ""
    return [_peak(session, (method, several), arena, where)]


def _peak(session: Session, of: tuple[str, bool], arena: Arena, where: str) -> Finding:
    method, several = of
    head = f"{method}: peak" if several else "Peak"
    peak, planned = format_bytes(arena.peak_bytes), format_bytes(arena.planned_bytes)
    text = f"{head} {peak}{where}, {planned} planned"
    detail = _writers(arena.at_peak()[:2])
    waste = arena.planned_bytes - arena.lower_bound_bytes
    wasteful = waste > 0.2 * arena.planned_bytes
    if wasteful:
        detail += f"; {format_bytes(waste)} more is planned than these lifetimes need"
    return Finding(
        Tone.WARN if wasteful else Tone.NEUTRAL,
        text,
        detail,
        "memory",
        method,
        instruction=arena.peak_instruction,
        weight=15,
        saves_bytes=waste if wasteful else None,
        edits=edits_that_replan(session) if wasteful else (),
    )


def _writers(values: Sequence[PlannedValue]) -> str:
    """Return what writes the largest values at a peak, or their role."""
    names = [value.operator or value.role for value in values]
    if len(names) > len(set(names)):
        return f"{len(names)} values of {names[0]}"
    return " and ".join(names)


def size_findings(session: Session) -> list[Finding]:
    """Return the largest parts of the program files, and duplicate parts."""
    sized = [
        one for one in session_sizes(session) if one.file.kind in _MEASURED and one.size is not None
    ]
    total = sum(one.file.size for one in sized)
    parts = [part for one in sized if one.size is not None for part in one.size.parts]
    if not parts:
        return []
    return [*_largest(session, parts, total), *_duplicates(session, sized, total)]


def _largest(session: Session, parts: list[FilePart], total: int) -> list[Finding]:
    kinds: Counter[str] = Counter()
    for part in parts:
        kinds[part.kind] += part.nbytes
    kind, nbytes = max(kinds.items(), key=lambda item: (item[1], item[0]))
    largest = max((part for part in parts if part.kind == kind), key=lambda part: part.nbytes)
    count = sum(part.kind == kind for part in parts)
    plurals = {"table": "tables", "constant": "constants", "vtable": "vtables", "header": "headers"}
    words = plurals.get(kind, kind)
    text = f"{format_share(nbytes / total)} of the {format_bytes(total)} is {words}"
    text += f", {count:,} parts" if count > 1 else ""
    known = stored_users(session)
    title, users = part_title(largest, known), users_of(largest, known)
    detail = f"largest: {short(title) if title == largest.name else title}"
    detail += f", {format_bytes(largest.nbytes)}"
    detail += f", used by {users_text(users)}" if users and title == largest.name else ""
    weight = 10 + nbytes / total if total >= _SMALL_FILE else 0.9
    return [Finding(Tone.NEUTRAL, text, detail, "size", part=largest.name, weight=weight)]


def _duplicates(session: Session, sized: list[SizedFile], total: int) -> list[Finding]:
    if total > _HASHED_BYTES:
        return []
    copies = [
        part
        for one in sized
        if one.size is not None
        for part in mark_duplicates(one.size.parts, one.file.data)
        if part.duplicate_of and part.kind in _CONTENT
    ]
    nbytes = sum(part.nbytes for part in copies)
    if nbytes < 256 or nbytes < 0.005 * total:
        return []
    copied = "a copy of another part" if len(copies) == 1 else "copies of other parts"
    text = f"{format_bytes(nbytes)} in {plural(len(copies), 'part')} is {copied}"
    largest = max(copies, key=lambda part: part.nbytes)
    detail = f"{short(largest.name)} equals {short(largest.duplicate_of)}"
    share = nbytes / total
    tone = Tone.WARN if share > 0.05 else Tone.NEUTRAL
    weight = 12 + 20 * share
    return [
        Finding(
            tone,
            text,
            detail,
            "size",
            part=largest.name,
            weight=weight,
            saves_bytes=nbytes,
            edits=edits_that_share(session),
        )
    ]


def short(name: str) -> str:
    """Return a long name with its middle elided."""
    return name if len(name) <= 60 else f"{name[:28]}…{name[-28:]}"
