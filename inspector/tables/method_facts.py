"""Facts of a method: inputs, outputs, instructions, delegates, planned memory."""

from __future__ import annotations

from collections import Counter

from inspector.check.session import own_part
from inspector.files.run_report import run_report
from inspector.files.session import Session
from inspector.graph.delegation import MethodDelegation, analyse_delegation, stored_bytes
from inspector.graph.model_graph import model_graph
from inspector.graph.node_text import value_text
from inspector.join import record_maps
from inspector.memory.measured import measured_as, measured_memory
from inspector.memory.plan import analyse_memory
from inspector.roofline.method_work import work_note
from inspector.roofline.rows import known_limits, rate_text, roofline
from inspector.roofline.work import work_text
from inspector.tables.facts import Fact, FactGroup
from inspector.tables.selection import Units
from inspector.units import Quantity, exact_text, format_bytes, format_share, format_time
from schema.backends import short_backend
from schema.dtypes.scalar_type import scalar_type
from schema.graph import NodeKind
from schema.objects.plural import plural
from schema.program import instruction_kind, instructions
from schema.program import model as m

_NS = 1e6  # a millisecond in nanoseconds
_STORED = ("pte", "ptd", "bpte")  # files that a program consists of
_MOST = 6
_ONCE = "FLOPs and bytes follow from shapes; bytes are those of each operand once"
CALIBRATE = "Calibrate in the Roofline view, or etscope roofline --calibrate, measures it"
_KINDS = {
    "KernelCall": "kernel call",
    "DelegateCall": "delegate call",
    "MoveCall": "move",
    "JumpFalseCall": "jump",
    "FreeCall": "free",
}


def method_group(session: Session, method: str, units: Units) -> FactGroup:
    """Return the facts of a method, without those of files that contradict the program."""
    facts: list[Fact] = []
    session = own_part(session)
    program = session.program
    plan = program.plan(method) if program is not None else None
    if plan is not None:
        facts += _values("input", [_described_value(plan, one) for one in plan.inputs])
        facts += _values("output", [_described_value(plan, one) for one in plan.outputs])
        facts.append(_instructions(plan))
    else:
        facts += _recorded(session, method)
    entry = next((one for one in analyse_delegation(session) if one.method == method), None)
    if entry is not None:
        facts += _delegation(entry, units, sized=program is not None)
    if program is not None:
        facts += [
            Fact(
                f"buffer {arena.mem_id}",
                f"{format_bytes(arena.planned_bytes, units.size)} planned,"
                f" {format_bytes(arena.peak_bytes, units.size)} at its peak",
                f"{arena.planned_bytes:,} B planned, {arena.peak_bytes:,} B live at instruction"
                f" {arena.peak_instruction}",
            )
            for arena in analyse_memory(program, method).arenas
        ]
    return FactGroup(method, tuple(facts))


def cost_facts(session: Session, method: str, units: Units) -> tuple[Fact, ...]:
    """Return what a method costs beside its time: cold start, memory, bytes of the program."""
    return tuple(
        fact
        for fact in (
            cold_start(session, method, units),
            _memory(own_part(session), method, units),
            _file(session, units),
        )
        if fact is not None
    )


def cold_start(session: Session, method: str, units: Units) -> Fact | None:
    """Return how long loading and the first run took; None where no report has them."""
    found = (run_report(dump) for dump in session.timed_dumps)
    report = next((one for one in found if one is not None and one.only_method == method), None)
    if report is None:
        return None
    loads = [time for time in (report.load_ms, report.init_ms) if time is not None]
    times = {"load": sum(loads) if loads else None, "first run": report.first_run_ms}
    known = {name: ms * _NS for name, ms in times.items() if ms is not None}
    words = [f"{name} {format_time(ns, units.time)}" for name, ns in known.items()]
    exact = [f"{name} {exact_text(round(ns, 3), Quantity.TIME)}" for name, ns in known.items()]
    return Fact("cold start", ", ".join(words), ", ".join(exact)) if known else None


def _memory(session: Session, method: str, units: Units) -> Fact | None:
    """Return planned and measured memory; None without a program."""
    program = session.program
    if program is None or all(plan.name != method for plan in program.plans):
        return None
    planned = analyse_memory(program, method).planned_bytes
    parts = [(planned, "planned")]
    rows = measured_memory(session, method)
    whole = next((one for one in reversed(rows) if not one.part), None)
    if whole is not None and whole.nbytes is not None:
        parts.append((whole.nbytes, f"measured ({whole.phase}, {measured_as(rows)})"))
    words = ", ".join(
        f"{format_bytes(size, units.size)} {what.partition(' (')[0]}" for size, what in parts
    )
    return Fact("memory", words, ", ".join(f"{size:,} B {what}" for size, what in parts))


def _file(session: Session, units: Units) -> Fact | None:
    sizes = [file.size for file in session.files if file.kind in _STORED]
    if session.program is None or not sizes:
        return None
    return Fact("program", format_bytes(sum(sizes), units.size), f"{sum(sizes):,} B")


def work_facts(session: Session, method: str) -> tuple[Fact, ...]:
    """Return the FLOPs and bytes of a method, what it achieves and how near a limit that is."""
    session = own_part(session)
    limits = known_limits(session)
    whole = roofline(session, method, limits).method
    exact = whole.work.reason or "; ".join(filter(None, (_ONCE, work_note(session))))
    facts = [Fact("work", work_text(whole.work), exact)]
    if whole.has_other_sizes:
        facts.append(Fact("achieved", "missing", whole.without_rate))
    if whole.flops_per_s is None or session.times_with_values:
        return tuple(facts)
    facts.append(Fact("achieved", rate_text(whole), limits.note))
    if limits.missing:
        facts.append(Fact("of the limit", f"missing: {limits.missing}", CALIBRATE))
    elif whole.share is not None:
        words = f" ({whole.words})" if whole.words else ""
        facts.append(Fact("of the limit", f"{format_share(whole.share)}{words}", limits.note))
    return tuple(facts)


def _values(label: str, words: list[str]) -> list[Fact]:
    if not words:
        return [Fact(f"{label}s", "none")]
    shown = [
        Fact(label if len(words) == 1 else f"{label} {place}", text)
        for place, text in enumerate(words[:_MOST])
    ]
    rest = len(words) - len(shown)
    return [*shown, Fact("", f"and {plural(rest, f'more {label}')}")] if rest > 0 else shown


def _described_value(plan: m.ExecutionPlan, index: int) -> str:
    """Return type and shape of a value; its kind when it is not a tensor."""
    if not 0 <= index < len(plan.values):
        return f"value {index}, which does not exist"
    value = plan.values[index].val
    if not isinstance(value, m.Tensor):
        return type(value).__name__
    sizes = ", ".join(map(str, value.sizes))
    dynamic = {1: "  up to this size", 2: "  any size"}.get(value.shape_dynamism, "")
    return f"{scalar_type(value.scalar_type).short} [{sizes}]{dynamic}"


def _instructions(plan: m.ExecutionPlan) -> Fact:
    kinds = Counter(instruction_kind(one) for _, _, one in instructions(plan))
    total = sum(kinds.values())
    parts = [plural(count, _KINDS.get(kind, kind)) for kind, count in kinds.most_common()]
    return Fact("instructions", ", ".join(parts) or "none", f"{total:,} instructions")


def _recorded(session: Session, method: str) -> list[Fact]:
    graph = model_graph(session, method)
    if graph is None or session.record is None:
        return []
    inputs, outputs = record_maps.ends(session.record, method)
    passive = (NodeKind.PLACEHOLDER, NodeKind.OUTPUT)
    return [
        *_values("input", list(map(value_text, inputs))),
        *_values("output", list(map(value_text, outputs))),
        Fact("operators", f"{sum(one.node.kind not in passive for one in graph.nodes):,}"),
    ]


def _delegation(entry: MethodDelegation, units: Units, *, sized: bool) -> list[Fact]:
    if not entry.num_delegated_subgraphs:
        return [Fact("delegates", "none")]
    backends = Counter(one.backend_id for one in entry.delegates)
    nbytes = {
        backend: stored_bytes(one for one in entry.delegates if one.backend_id == backend)
        for backend in backends
    }
    total = entry.num_delegated_nodes + entry.num_non_delegated_nodes
    facts = [
        Fact(
            "delegated" if place == 0 else "",
            f"{count} × {short_backend(backend)}"
            + (f"  {format_bytes(nbytes[backend], units.size)}" if sized else ""),
            f"{backend}, {nbytes[backend]:,} B of payload and named data" if sized else backend,
        )
        for place, (backend, count) in enumerate(backends.most_common())
    ]
    words = f"{entry.num_delegated_nodes:,} of {total:,} delegated"
    computing = entry.compute_delegated + entry.compute_non_delegated
    if computing and computing != total:
        words += f"; of those that compute {entry.compute_delegated:,} of {computing:,}"
    if entry.unread:
        words += f"; {entry.unread_words}"
    hint = f"counted by {entry.counting}; getitems, copies, views and conversions do not count"
    return [*facts, Fact("nodes", words, hint)]
