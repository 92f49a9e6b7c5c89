"""The node panel: all facts about the selection."""

from __future__ import annotations

from dataclasses import dataclass

from devtools_app.viewmodels.delegate_calls import called_delegate, rows_of
from devtools_app.viewmodels.event_facts import event_sheet
from devtools_app.viewmodels.gap_facts import gap_group
from devtools_app.viewmodels.inside_facts import inside_groups, weight_groups
from devtools_app.viewmodels.node_sections import (
    also_group,
    argument_group,
    dtype_group,
    memory_group,
    schema_group,
    tensor_group,
    time_group,
    weight_group,
    work_group,
)
from devtools_app.viewmodels.scene_search import related_to
from devtools_app.viewmodels.selected_tensors import exported_graph
from devtools_app.viewmodels.tensor_facts import with_tensors
from inspector.files.session import Session
from inspector.graph.delegation import DelegateFacts, analyse_delegation
from inspector.graph.model_graph import ModelNode
from inspector.graph.node_text import node_title, operator_title, summary_text
from inspector.graph.snippet import file_name, snippet
from inspector.graph.source import SourceFrame, frames, user_frame
from inspector.memory.plan import PlannedValue, analyse_memory
from inspector.numerics.report import RunGap
from inspector.profile.join_index import Related, join_index
from inspector.profile.operator_rows import OperatorRow, operator_rows
from inspector.roofline.method_work import method_work
from inspector.roofline.rows import COUNTED, Limits, known_limits, only_work, rows_at_limits
from inspector.size.files import session_sizes
from inspector.size.users import User, part_title, stored_users, users_of
from inspector.tables.boundaries import border_group, boundaries, join_group
from inspector.tables.facts import Fact, FactGroup, FactSheet, shortened
from inspector.tables.memory import value_names
from inspector.tables.selection import Selection, SelectionKind, Units
from inspector.tables.size import part_selection
from inspector.tables.verdicts import verdict_group
from inspector.units import Quantity, exact_text, format_bytes, format_share, format_total
from schema.backends import short_backend
from schema.graph import NodeKind

_WITHOUT_OWNER = (NodeKind.PLACEHOLDER, NodeKind.GET_ATTR, NodeKind.OUTPUT)  # they run nowhere


def node_facts(
    session: Session,
    method: str,
    selection: Selection,
    units: Units,
    gap: RunGap | None = None,
) -> FactSheet:
    """Return the facts about a selection; may be empty.

    Args:
        session: the session
        method: name of the method
        selection: the selection
        units: for display
        gap: numeric comparison of the method, or None
    """
    if not selection:
        return FactSheet()
    return with_tensors(_sheet(session, method, selection, units, gap), session, method, selection)


def _sheet(
    session: Session, method: str, selection: Selection, units: Units, gap: RunGap | None
) -> FactSheet:
    if selection.kind is SelectionKind.PART:
        return _part_sheet(session, selection, units)
    if selection.kind is SelectionKind.DELEGATE and selection.delegate is not None:
        return _delegate_sheet(session, method, selection.delegate, units)
    index = join_index(session, method)
    related = related_to(selection, index)
    if selection.kind is SelectionKind.VALUE and selection.value is not None:
        return _value_sheet(session, method, selection.value, related, units)
    nodes = _nodes(session, method, related)
    rows = rows_of(session, method, selection, related)
    if not nodes and not rows and not related.instructions:
        alone = _node_sheet(session, method, selection, units)
        return alone if alone.title else event_sheet(session, selection.event, units)
    called = called_delegate(selection, nodes, rows)
    if called is not None:
        return _delegate_sheet(session, method, called, units)
    found = _Found(nodes, rows, related, gap_group(gap, related))
    return _operator_sheet(session, method, found, units)


def _node_sheet(session: Session, method: str, selection: Selection, units: Units) -> FactSheet:
    """Return the facts of a node that was only exported; empty for any other selection."""
    graph = exported_graph(session, method, selection)
    if graph is None:
        return FactSheet()
    node = graph.nodes[graph.by_name[selection.node]]
    groups = [
        tensor_group(node, graph, units, selection.graph),
        *_weights(session, method, node, units),
        *(schema_group(node.node), argument_group(node), dtype_group(node.node)),
        _source_group(session, node),
    ]
    return FactSheet(node_title(node), node.node.module_path, _filled(groups))


@dataclass(frozen=True, slots=True)
class _Found:
    """Items related to a selected operator."""

    nodes: list[ModelNode]
    rows: list[OperatorRow]
    related: Related
    gap: FactGroup


def _nodes(session: Session, method: str, related: Related) -> list[ModelNode]:
    graph = join_index(session, method).graph
    if graph is None:
        return []
    return [graph.nodes[graph.by_name[name]] for name in related.nodes if name in graph.by_name]


def _operator_sheet(session: Session, method: str, found: _Found, units: Units) -> FactSheet:
    nodes, rows, related = found.nodes, found.rows, found.related
    first = nodes[0] if nodes else None
    work = _work(session, method, found, units)
    groups = [_why(session, method, first), time_group(rows, units), work, found.gap]
    if first is not None:
        groups += [
            tensor_group(first, join_index(session, method).graph, units),
            *inside_groups(session, method, first),
            *_weights(session, method, first, units),
        ]
    groups.append(memory_group(session, method, related, units))
    if first is not None:
        groups += [schema_group(first.node), argument_group(first), dtype_group(first.node)]
        groups.append(_source_group(session, first))
        groups.append(also_group("Belongs to it as well", nodes[1:]))
    title = node_title(first) if first is not None else _row_title(rows, related)
    return FactSheet(title, _subtitle(first, related), _filled(groups))


def _work(session: Session, method: str, found: _Found, units: Units) -> FactGroup:
    """Return FLOPs and bytes of a selection, held against the limits of this machine."""
    if any(row.kind in COUNTED for row in found.rows):
        limits = known_limits(session)
        rows = rows_at_limits(session, method, found.rows, limits)
        return work_group(rows, limits, units)
    works = method_work(session, method)
    nodes = [works.of_node(node, found.related.instructions) for node in found.nodes[:1]]
    return work_group([only_work(one) for one in nodes], Limits(), units)


def _weights(session: Session, method: str, node: ModelNode, units: Units) -> list[FactGroup]:
    """Return the weights with their statistics where their bytes are known, else their names."""
    named = weight_group(node, units)
    return [named, *weight_groups(session, method, node, units)]


def _filled(groups: list[FactGroup]) -> tuple[FactGroup, ...]:
    return tuple(group for group in groups if group.facts or group.notice or group.code)


def _row_title(rows: list[OperatorRow], related: Related) -> str:
    if rows:
        return operator_title(rows[0].label)
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


def _why(session: Session, method: str, node: ModelNode | None) -> FactGroup:
    if node is None:
        return FactGroup("")
    verdict = verdict_group(session, method, node)
    if verdict is not None:
        return verdict
    if node.delegate is not None:
        name = f"{short_backend(node.backend)} delegate {node.delegate}"
        if "/" in node.name and node.node.debug_handle is None:
            text = "Not in the recorded graph: known only from the payload of the delegate."
            return FactGroup("", notice=f"Inside {name}", text=text)
        text = "The partitioner took it; it runs inside the delegate's call."
        return FactGroup("", notice=f"Delegated to {name}", text=text)
    if node.node.kind in _WITHOUT_OWNER:
        return FactGroup("")
    program = session.program
    if program is not None and not any(plan.delegates for plan in program.plans):
        return FactGroup("", notice="Not delegated", text="This program has no delegates.")
    if session.record is None and program is None:
        return FactGroup("")
    text = "Not delegated. The files do not record the reason."
    return FactGroup("", notice="Not delegated", text=text)


def _source_group(session: Session, node: ModelNode) -> FactGroup:
    trace = node.node.stack_trace
    frame = user_frame(trace)
    if frame is None:
        return FactGroup("")
    found = snippet(frame, session)
    others = [one for one in reversed(frames(trace)) if one != frame]
    facts = [_frame_fact("line", frame), *(_frame_fact("called from", one) for one in others)]
    listed = shortened("Source", facts).facts
    if found is None:
        return FactGroup("Source", listed)
    return FactGroup("Source", listed, code=found.lines, first_line=found.first, marked=frame.line)


def _frame_fact(label: str, frame: SourceFrame) -> Fact:
    text = f"{file_name(frame.file)}:{frame.line}"
    return Fact(label, text, f"{frame.label} in {frame.function}", link=frame)


def _value_sheet(
    session: Session, method: str, value: int, related: Related, units: Units
) -> FactSheet:
    planned = _planned(session, method, value)
    nodes = _nodes(session, method, related)
    if planned is None and not related.instructions:
        return FactSheet()
    name = f"value {value}"
    if planned is not None:  # as on its block of memory
        name = value_names(session, method, (planned,))[0]
    facts: list[Fact] = []
    if planned is not None:
        facts.append(
            Fact("size", format_bytes(planned.nbytes, units.size), f"{planned.nbytes:,} B")
        )
        facts.append(Fact("lives", f"instruction {planned.first} to {planned.last}"))
        facts.append(Fact("role", planned.role))
        if planned.operator:
            facts.append(Fact("produced by", operator_title(planned.operator)))
    groups = [
        FactGroup("Value", tuple(facts)),
        memory_group(session, method, Related(values=(value,)), units),
        also_group("Nodes", nodes),
    ]
    if nodes:
        groups.append(_source_group(session, nodes[0]))
    return FactSheet(name, f"value {value} of {method}", _filled(groups))


def _planned(session: Session, method: str, value: int) -> PlannedValue | None:
    program = session.program
    if program is None or method not in session.methods:
        return None
    arenas = analyse_memory(program, method).arenas
    return next((one for arena in arenas for one in arena.values if one.value == value), None)


def _part_sheet(session: Session, selection: Selection, units: Units) -> FactSheet:
    for sized in session_sizes(session):
        for part in sized.size.parts if sized.size is not None else ():
            if part_selection(sized.file, part) != selection:
                continue
            share = part.nbytes / sized.file.size if sized.file.size else 0.0
            facts = [
                Fact("size", format_bytes(part.nbytes, units.size), f"{part.nbytes:,} B"),
                Fact("share", f"{format_share(share)} of the file", f"{share:.6%}"),
                Fact("offset", f"{part.offset:#x}", f"byte {part.offset:,}"),
                Fact("in", " / ".join(part.group) or "the file", sized.file.path),
            ]
            if part.duplicate_of:
                facts.append(Fact("same content as", part.duplicate_of))
            users = stored_users(session)
            heading = part_title(part, users)
            if heading != part.name:
                facts.append(Fact("stored as", part.name))
            readers = [_reader(user) for user in users_of(part, users)]
            title = f"{file_name(sized.file.path)} · {part.kind}"
            groups = [FactGroup("Part", tuple(facts)), shortened("Used by", readers)]
            return FactSheet(heading, title, _filled(groups))
    return FactSheet()


def _reader(user: User) -> Fact:
    """Return what reads a part, with a link to it."""
    if user.node:
        link = Selection(SelectionKind.NODE, method=user.method, node=user.node)
    elif user.instruction is not None:
        step = user.instruction
        link = Selection(SelectionKind.INSTRUCTION, method=user.method, instruction=step)
    else:
        link = Selection(SelectionKind.DELEGATE, method=user.method, delegate=user.delegate)
    return Fact("read by", user.text, link=link)


def _delegate_sheet(session: Session, method: str, index: int, units: Units) -> FactSheet:
    entry = next((one for one in analyse_delegation(session) if one.method == method), None)
    if entry is None or not 0 <= index < len(entry.delegates):
        return FactSheet()
    delegate = entry.delegates[index]
    specs = (Fact(key, value, value) for key, value in delegate.compile_specs.items())
    summary: list[Fact] = []
    if delegate.payload is not None:
        summary = [
            Fact(name.replace("_", " "), summary_text(name, value), str(value))
            for name, value in delegate.payload.summary.items()
        ]
    groups = [
        FactGroup("Delegate", tuple(_delegate_facts(session, method, delegate, units))),
        *_border(session, method, index),
        shortened("Compile specs", specs),
        shortened("Payload", summary),
    ]
    title = f"{short_backend(delegate.backend_id)} · delegate {index}"
    return FactSheet(title, delegate.backend_id, _filled(groups))


def _border(session: Session, method: str, index: int) -> list[FactGroup]:
    graph = join_index(session, method).graph
    if graph is None:
        return []
    group = border_group(session, method, index, boundaries(graph))
    return [group, join_group(session, method, index)]


def _delegate_facts(
    session: Session, method: str, delegate: DelegateFacts, units: Units
) -> list[Fact]:
    facts = _call_times(session, method, delegate.index, units)
    facts.append(
        Fact("payload", format_bytes(delegate.nbytes, units.size), f"{delegate.nbytes:,} B")
    )
    facts.append(
        Fact(
            "named data",
            format_bytes(delegate.named_bytes, units.size),
            f"{delegate.named_bytes:,} B",
        )
    )
    facts.append(Fact("nodes", f"{len(delegate.nodes):,}"))
    if not delegate.calls:
        facts.append(Fact("called by", "nothing"))
    facts += [
        Fact(
            "called by",
            f"instruction {step}",
            link=Selection(SelectionKind.INSTRUCTION, method=method, instruction=step),
        )
        for step in delegate.calls
    ]
    return facts


def _call_times(session: Session, method: str, delegate: int, units: Units) -> list[Fact]:
    rows = operator_rows(session, method).of_delegate(delegate)
    facts: list[Fact] = []
    text = (("inner", "operators inside"), ("rest", "delegate overhead"))
    for kind, label in ((None, "mean time"), *text):
        own = [row for row in rows if kind in (None, row.kind)]
        known = [row.mean_ns for row in own if row.mean_ns is not None]
        if not known:
            continue
        shares = [row.share for row in own if row.share is not None]
        share = sum(shares) if len(shares) == len(known) else 0.0
        total = format_total(known, [row.tick_ns for row in own], units.time)
        exact = exact_text(sum(known), Quantity.TIME)
        facts.append(Fact(label, f"{total}  {format_share(share)}" if share else total, exact))
    return facts
