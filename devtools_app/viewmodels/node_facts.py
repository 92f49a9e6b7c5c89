"""The node panel: everything known about the selected thing, in sections of name and value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from devtools_app.state import Selection, SelectionKind, Units
from devtools_app.viewmodels.operator_rows import OperatorRow, operator_rows
from devtools_app.viewmodels.operators import JOIN_REASONS, JOIN_WORDS
from devtools_app.viewmodels.units import Quantity, choose_unit, column_formatter, exact_text
from inspector.delegation import analyse_delegation
from inspector.join_index import NOTHING, JoinIndex, Related, join_index
from inspector.memory import PlannedValue, analyse_memory
from inspector.model_graph import ModelNode, describe, short_backend
from inspector.session import Session
from inspector.source import SourceFrame, frames


@dataclass(frozen=True, slots=True)
class Fact:
    """One line: what, its value as shown, the exact value on hover, a badge behind it."""

    name: str
    value: str
    exact: str = ""
    badge: str = ""
    link: Selection | None = None


@dataclass(frozen=True, slots=True)
class Section:
    """Facts under a heading."""

    title: str
    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What the panel shows.

    Attributes:
        title: operator name
        subtitle: module, instruction, handle
        why: heading and text of the delegation card, empty when nothing is known
        delegated: whether a delegate took it
        sections: facts
        trace: frames of the stack trace, innermost last
    """

    title: str
    subtitle: str
    why: tuple[str, str]
    delegated: bool
    sections: tuple[Section, ...]
    trace: tuple[SourceFrame, ...]


def related_to(session: Session, method: str, selection: Selection) -> Related:
    """Return all that belongs to a selection."""
    index = join_index(session, method)
    kind = selection.kind
    if kind is SelectionKind.NODE:
        return index.of_node(selection.node)
    if kind is SelectionKind.INSTRUCTION and selection.instruction is not None:
        return index.of_instruction(selection.instruction)
    if kind is SelectionKind.EVENT and selection.event is not None:
        return index.of_event(selection.event)
    if kind is SelectionKind.VALUE and selection.value is not None:
        return index.of_value(selection.value)
    if kind is SelectionKind.DELEGATE and selection.delegate is not None:
        return index.of_delegate(selection.delegate)
    return NOTHING


def node_facts(
    session: Session, method: str, selection: Selection, units: Units
) -> NodeFacts | None:
    """Return what is known about a selection, None when nothing is selected."""
    if not selection or selection.kind is SelectionKind.PART:
        return None
    if selection.kind is SelectionKind.DELEGATE and selection.delegate is not None:
        return _delegate_facts(session, method, selection.delegate, units)
    related = related_to(session, method, selection)
    index = join_index(session, method)
    nodes = [
        index.graph.nodes[index.graph.by_name[name]]
        for name in related.nodes
        if index.graph is not None and name in index.graph.by_name
    ]
    rows = [row for row in operator_rows(session, method) if row.event in set(related.events)]
    if not nodes and not rows and not related.instructions:
        return None
    first = nodes[0] if nodes else None
    title = first.node.target if first is not None else _row_title(rows, related)
    sections = [
        _time_section(rows, units),
        _tensor_section(first, index),
        _weight_section(first),
        _memory_section(session, method, related, units),
        _attribute_section(first),
        _also_section(nodes[1:], method),
    ]
    return NodeFacts(
        title,
        _subtitle(first, related),
        _why(session, first),
        first is not None and first.delegate is not None,
        tuple(section for section in sections if section.facts),
        frames(first.node.stack_trace) if first is not None else (),
    )


def _row_title(rows: list[OperatorRow], related: Related) -> str:
    if rows:
        return rows[0].label
    return f"instruction {related.instructions[0]}"


def _subtitle(node: ModelNode | None, related: Related) -> str:
    parts: list[str] = []
    if node is not None and node.node.module_path:
        parts.append(node.node.module_path)
    if related.instructions:
        shown = ", ".join(map(str, related.instructions[:3]))
        more = "…" if len(related.instructions) > 3 else ""
        parts.append(f"instruction {shown}{more}")
    if node is not None and node.node.debug_handle is not None:
        parts.append(f"handle {node.node.debug_handle}")
    return " · ".join(parts)


def _why(session: Session, node: ModelNode | None) -> tuple[str, str]:
    if node is None:
        return "", ""
    if node.delegate is not None:
        name = short_backend(node.backend)
        if "/" in node.name and node.node.debug_handle is None:
            return (
                f"Inserted inside {name} delegate {node.delegate}",
                "The compiler added it; no node of the model became it.",
            )
        return f"Delegated to {name}", f"It runs inside delegate {node.delegate}."
    if session.program is not None and not any(plan.delegates for plan in session.program.plans):
        return "Not delegated", "This program has no delegates."
    return (
        "Not delegated",
        "The files do not record why: only the compiler knows the rule that left it.",
    )


def _time_section(rows: list[OperatorRow], units: Units) -> Section:
    facts: list[Fact] = []
    for row in rows:
        facts += _time_facts(row, units, named=len(rows) > 1)
    runs = max((len(row.samples_ns) for row in rows if row.samples_ns is not None), default=0)
    plural = "s" if runs != 1 else ""
    return Section(f"Time, {runs} run{plural}" if runs else "Time", tuple(facts))


def _time_facts(row: OperatorRow, units: Units, *, named: bool) -> list[Fact]:
    join = JOIN_WORDS[row.link.grade.value]
    prefix = f"{row.label} " if named else ""
    facts: list[Fact] = []
    if row.samples_ns is None:
        facts.append(Fact(f"{prefix}time", "missing", "its ticks are not time"))
    else:
        low, middle, high = (float(np.percentile(row.samples_ns, p)) for p in (0, 50, 100))
        share = "" if row.share is None else f"{row.share * 100:.1f} %"
        facts.append(Fact(f"{prefix}p50", time_text(middle, units), exact(middle), share))
        if len(row.samples_ns) > 1:
            spread = f"{time_text(low, units)} … {time_text(high, units)}"
            facts.append(Fact("min … max", spread, f"{exact(low)} … {exact(high)}"))
        if row.kernel_ns is not None:
            facts.append(
                Fact("kernel alone", time_text(row.kernel_ns, units), exact(row.kernel_ns))
            )
        if row.passes > 1:
            facts.append(Fact("passes a run", str(row.passes)))
    facts.append(Fact("join", join, JOIN_REASONS[join], join))
    return facts


def time_text(nanoseconds: float, units: Units) -> str:
    """Return a time with its unit."""
    unit = choose_unit(Quantity.TIME, nanoseconds, units.time)
    return f"{column_formatter(Quantity.TIME, unit, nanoseconds)(nanoseconds)} {unit.symbol}"


def size_text(nbytes: float, units: Units) -> str:
    """Return a size with its unit."""
    unit = choose_unit(Quantity.SIZE, nbytes, units.size)
    return f"{column_formatter(Quantity.SIZE, unit, nbytes)(nbytes)} {unit.symbol}"


def exact(nanoseconds: float) -> str:
    """Return a time unrounded."""
    return exact_text(nanoseconds, Quantity.TIME)


def _tensor_section(node: ModelNode | None, index: JoinIndex) -> Section:
    if node is None or index.graph is None:
        return Section("Tensors", ())
    made = {value.name: value for other in index.graph.nodes for value in other.values}
    folded = {weight.name for weight in node.weights}
    facts: list[Fact] = []
    inputs = [name for name in dict.fromkeys(node.node.inputs) if name in made]
    for position, name in enumerate(name for name in inputs if made[name].constant not in folded):
        facts.append(_tensor_fact(f"in {position}", describe(made[name]), made[name].tensor))
    for position, value in enumerate(node.values):
        facts.append(_tensor_fact(f"out {position}", describe(value), value.tensor))
    return Section("Tensors", tuple(facts))


def _tensor_fact(name: str, text: str, tensor: object) -> Fact:
    nbytes = getattr(tensor, "nbytes", None)
    size = "" if nbytes is None else size_text(nbytes, Units())
    hover = f"{text}, {nbytes:,} B" if nbytes is not None else text
    order = getattr(tensor, "dim_order", ())
    if order and tuple(order) != tuple(range(len(order))):
        hover += f", dim order {list(order)}"
    return Fact(name, text, hover, size)


def _weight_section(node: ModelNode | None) -> Section:
    if node is None:
        return Section("Weights", ())
    facts = [
        Fact(
            weight.name,
            weight.description,
            f"{weight.nbytes:,} B" if weight.nbytes is not None else "size missing",
            size_text(weight.nbytes, Units()) if weight.nbytes is not None else "",
        )
        for weight in node.weights
    ]
    return Section("Weights", tuple(facts))


def _memory_section(session: Session, method: str, related: Related, units: Units) -> Section:
    program = session.program
    if program is None or method not in session.methods:
        return Section("Memory", ())
    facts: list[Fact] = []
    for arena in analyse_memory(program, method).arenas:
        for value in arena.values:
            if value.value in related.values:
                facts.append(_place(arena.mem_id, value, method, units))
    return Section("Memory", tuple(facts[:12]))


def _place(mem_id: int, value: PlannedValue, method: str, units: Units) -> Fact:
    text = f"arena {mem_id} @ {value.offset:#x}, {value.first}…{value.last}"
    hover = (
        f"{value.nbytes:,} B at byte {value.offset:,}, instructions {value.first} to {value.last}"
    )
    link = Selection(SelectionKind.VALUE, method=method, value=value.value)
    return Fact(value.name, text, hover, size_text(value.nbytes, units), link)


_HIDDEN = frozenset(
    {"instruction", "chain", "raw_target", "outputs", "debug_handle", "nn_module_stack", "torch_fn"}
)


def _attribute_section(node: ModelNode | None) -> Section:
    if node is None:
        return Section("Arguments", ())
    facts = [
        Fact(arg.name or f"argument {position}", str(arg.literal), repr(arg.literal))
        for position, arg in enumerate(node.node.args)
        if not arg.values and arg.literal is not None
    ]
    facts += [
        Fact(name.replace("_", " "), str(value), repr(value))
        for name, value in node.node.attributes.items()
        if name not in _HIDDEN and value not in (None, "", ())
    ]
    return Section("Arguments", tuple(facts))


def _also_section(nodes: list[ModelNode], method: str) -> Section:
    facts = tuple(
        Fact(
            node.node.target,
            node.name,
            node.name,
            link=Selection(SelectionKind.NODE, method=method, node=node.name),
        )
        for node in nodes[:12]
    )
    return Section("Same handle", facts)


def _delegate_facts(session: Session, method: str, index: int, units: Units) -> NodeFacts | None:
    entry = next((one for one in analyse_delegation(session) if one.method == method), None)
    if entry is None or index >= len(entry.delegates):
        return None
    delegate = entry.delegates[index]
    rows = [
        row
        for row in operator_rows(session, method)
        if row.link.delegate == index and row.kind in ("inner", "rest", "operator")
    ]
    total = sum(float(row.samples_ns.mean()) for row in rows if row.samples_ns is not None)
    facts = [
        Fact("payload", size_text(delegate.nbytes, units), f"{delegate.nbytes:,} B"),
        Fact("named data", size_text(delegate.named_bytes, units), f"{delegate.named_bytes:,} B"),
        Fact("nodes", str(len(delegate.nodes))),
        Fact("called by", ", ".join(f"instruction {step}" for step in delegate.calls) or "nothing"),
    ]
    if total:
        facts.insert(0, Fact("mean time", time_text(total, units), exact(total)))
    specs = tuple(Fact(key, value, value) for key, value in delegate.compile_specs.items())
    summary: tuple[Fact, ...] = ()
    if delegate.payload is not None:
        summary = tuple(
            Fact(name, str(value), str(value)) for name, value in delegate.payload.summary.items()
        )
    sections = (
        Section("Delegate", tuple(facts)),
        Section("Compile specs", specs),
        Section("Payload", summary),
    )
    return NodeFacts(
        f"{short_backend(delegate.backend_id)} · delegate {index}",
        delegate.backend_id,
        ("", ""),
        True,
        tuple(section for section in sections if section.facts),
        (),
    )
