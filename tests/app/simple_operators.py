"""Operators and events in their simple form, event by event: what the columns have to say."""

from __future__ import annotations

from dataclasses import replace
from os.path import commonpath
from typing import Any

import numpy as np

from inspector.files.session import Session
from inspector.graph.model_graph import ModelGraph, model_graph
from inspector.join.links import NO_LINK, Link, link_block
from inspector.join.node_index import walk_nodes
from inspector.memory.plan import instruction_label
from inspector.profile.attribution import steady_set
from inspector.profile.block_names import block_labels
from inspector.profile.join_index import _instruction_nodes
from inspector.profile.methods import analyse_profile, time_of
from inspector.profile.operator_columns import UNATTRIBUTED, delegate_label
from inspector.profile.operator_rows import OperatorRow
from inspector.tables.events import _node_labels
from inspector.tables.operators import JOIN_WORDS, backend_label
from inspector.trace.event_kinds import CALLS, EXECUTE
from inspector.trace.timed_blocks import timed_blocks
from inspector.trace.timing import is_time, scale_factor
from schema.backends import BACKENDS, backend_of
from schema.graph import is_compute
from schema.program import instructions


def operators(session: Session, method: str) -> list[OperatorRow]:
    """Return the rows of a method, made one after another."""
    parts: dict[int, list[OperatorRow]] = {}
    start = 0
    blocks = timed_blocks(session.timed_dumps).blocks
    for number, (block, label) in enumerate(zip(blocks, block_labels(blocks), strict=True)):
        links = link_block(session, block)
        if (block.layout.chain >= 0).any() and links.method in (method, None):
            parts[number] = _Block(session, method, block, links, start, label).rows()
        start += len(block)
    time = time_of(session, method)
    if time is not None and len(parts) > 1 and set(parts) <= set(time.blocks) and time.method_ms:
        steady = {number: int(steady_set(blocks[number]).sum()) for number in parts}
        for number, rows in parts.items():
            scale = steady[number] / sum(steady.values()) / (time.method_ms * 1e6)
            parts[number] = [
                row if row.share is None else replace(row, share=(row.mean_ns or 0.0) * scale)
                for row in rows
            ]
    return [row for rows in parts.values() for row in rows]


class _Block:
    def __init__(self, session, method, block, links, start, label) -> None:
        self.block, self.links, self.start, self.label = block, links, start, label
        self.source = session.options.source_time_scale
        self.is_time = is_time(self.source)
        self.scale = scale_factor(self.source, "ns") if self.is_time else 1.0
        self.names = [block.event_name(event) for event in range(len(block))]
        whole = [
            event
            for event, name in enumerate(self.names)
            if name in EXECUTE and block.delegate_id(event) is None
        ]
        total = sum((block.total[:, event] for event in whole), np.zeros(1))
        self.method_ns = total / self.scale if whole and self.is_time else None
        self.logged = session.times_with_values
        self.steady = steady_set(block)
        program = session.program if method in session.methods else None
        self.plan = program.plan(method) if program is not None and links.plan is not None else None

    def ns(self, event: int):
        return self.block.total[:, event] / self.scale

    def rows(self) -> list[OperatorRow]:
        outer: dict[int, int] = {}
        kernels: dict[int, int] = {}
        inner: dict[int, list[int]] = {}
        for event, name in enumerate(self.names):
            number = self.block.instruction(event)
            if self.block.layout.chain[event] < 0 or number is None:
                continue
            if self.block.delegate_id(event) is not None:
                inner.setdefault(number, []).append(event)
            else:
                (outer if name in CALLS else kernels).setdefault(number, event)
        rows: list[OperatorRow] = []
        for number in sorted({*outer, *kernels, *inner}):
            inside = inner.get(number, [])
            rows += [self.row(self.inner(one), one, number, None, "inner") for one in inside]
            event = outer.get(number, kernels.get(number))
            if event is not None and inside:
                rows.append(self.rest(number, event, inside))
            elif event is not None:
                rows.append(self.operator(number, event, kernels.get(number)))
        if self.method_ns is None:
            return rows
        calls = sorted({**kernels, **outer}.values())
        rest = self.method_ns - sum((self.ns(event) for event in calls), np.zeros(1))
        none = OperatorRow(
            *(UNATTRIBUTED, "", "", self.label, NO_LINK, None, None, rest, self.steady),
            *(self.mean(rest), 0.0, None, 1, UNATTRIBUTED, self.share(rest)),
        )
        return [*rows, none]

    def inner(self, event: int) -> str:
        """Return the payload node of an event that is named by a number."""
        nodes = self.links.link(event).payload_nodes
        return nodes[0] if nodes and self.names[event].isdecimal() else self.names[event]

    def operator(self, number: int, event: int, kernel: int | None) -> OperatorRow:
        own = None
        if kernel is not None and kernel != event and self.is_time:
            own = self.mean(self.ns(kernel))
        called = self.names[event] == "OPERATOR_CALL"
        label = self.names[kernel if called and kernel is not None else event]
        label = label.removeprefix("native_call_")
        if self.plan is not None:
            steps = instructions(self.plan)
            if 0 <= number < len(steps):
                label = instruction_label(self.plan, steps[number][2].instr_args)
                label = label.replace("::", ".")
        return self.row(label, event, number, own, "operator")

    def rest(self, number: int, event: int, inner: list[int]) -> OperatorRow:
        row = self.row("delegate overhead", event, number, None, "rest")
        if row.samples_ns is None:
            return row
        left = row.samples_ns - sum(self.ns(one) for one in inner)
        return replace(row, samples_ns=left, mean_ns=self.mean(left), share=self.share(left))

    def row(self, label, event, number, kernel_ns, kind) -> OperatorRow:
        link = self.links.link(event)
        backend = link.backend if kind == "inner" else ""
        samples = self.ns(event) if self.is_time and is_time(self.source, backend) else None
        return OperatorRow(
            label,
            self.module(link),
            delegate_label(link),
            self.label,
            link,
            self.start + event,
            number,
            samples,
            self.steady,
            self.mean(samples),
            0.0 if kind == "rest" else self.tick(backend),
            kernel_ns,
            int(self.block.layout.occurrences[event]),
            kind,
            self.share(samples),
        )

    def share(self, samples) -> float | None:
        if samples is None or self.method_ns is None or self.logged:
            return None
        whole = self.mean(self.method_ns)
        return self.mean(samples) / whole if whole else None

    def mean(self, samples) -> float | None:
        return None if samples is None else float(samples[self.steady].mean())

    def tick(self, backend: str) -> float:
        """Return the step of the clock of all events inside the delegates of a backend."""
        tick = 1 / self.scale
        step = float(backend_of(backend).clock_ns)
        inner = [
            self.ns(event)
            for event in range(len(self.block))
            if self.block.delegate_id(event) is not None
            and self.block.layout.chain[event] >= 0
            and self.block.instruction(event) is not None
            and self.links.link(event).backend == backend
        ]
        if not backend and any(one.any() for one in inner):
            step = float(max(one.clock_ns for one in BACKENDS.values()))
        whole = all(bool((one % step == 0).all()) for one in inner) if step > tick else False
        return step if whole else tick

    def module(self, link: Link) -> str:
        own = [node for handle in link.handles for node in self.links.nodes.get(handle, ())]
        every = walk_nodes(self.links.graph) if self.links.graph is not None else []
        found = []
        for name in (link.node,) if link.node else link.nodes:
            near = [node for node in own if node.name == name][:1]
            near = near or [node for node in every if node.name == name]
            found += near if len(near) == 1 else []
        found = found or own
        found = [node for node in found if is_compute(node.target)] or found
        paths = [node.module_path.replace(".", "/") for node in found]
        return commonpath(paths).replace("/", ".") if paths else ""


def _join(link: Link) -> str:
    inside_alone = link.payload_nodes and not link.nodes
    word = JOIN_WORDS[link.grade.value]
    return "payload only" if word == "exact" and inside_alone else word


def delegate_calls(rows: list[OperatorRow]) -> dict[str, list[int]]:
    """Return the instructions that call delegates by block."""
    found: dict[str, set[int]] = {}
    for row in rows:
        if row.in_delegate and row.instruction is not None and row.instruction >= 0:
            found.setdefault(row.block, set()).add(row.instruction)
    return {block: sorted(steps) for block, steps in found.items()}


def operator_cells(row: OperatorRow, calls: dict[str, list[int]]) -> dict[str, object]:
    """Return what the table of operators says of a row."""
    rest = row.kind == UNATTRIBUTED
    nodes = row.link.node or ", ".join(row.link.nodes or row.link.payload_nodes)
    return {
        "operator": row.label,
        "module": row.module,
        "delegate": row.delegate or _unnamed(row, calls.get(row.block, [])),
        "join": "" if rest else _join(row.link),
        "block": row.block,
        "backend": UNATTRIBUTED
        if rest
        else backend_label(row.link.backend, inside=row.in_delegate),
        "node": "" if rest else nodes,
        "passes": row.passes,
        "kernel, mean": row.kernel_ns,
        "share of method": row.share,
        **points(row.samples_ns, row.steady),
    }


def _unnamed(row: OperatorRow, calls: list[int]) -> str:
    if not row.in_delegate:
        return "—"
    if row.instruction not in calls:
        return "unknown"
    return f"delegate call {calls.index(row.instruction) + 1}"


def points(samples, steady) -> dict[str, Any]:
    """Return the mean and the percentiles of one row alone; few runs have no percentiles."""
    names = ("p50", "p10", "p90", "min", "max")
    if samples is None:
        return dict.fromkeys((*names, "mean"))
    kept = samples[steady]
    values = list(np.percentile(kept, (50, 10, 90, 0, 100)))
    if len(kept) < 5:
        values[:3] = [None] * 3
    return dict(zip((*names, "mean"), (*values, kept.mean()), strict=True))


def event_cells(session: Session) -> list[dict[str, object]]:
    """Return what the table of all events says of each."""
    found: list[dict[str, object]] = []
    sources = analyse_profile(session).rows.sources
    labels = block_labels([source.block for source in sources])
    for source, label in zip(sources, labels, strict=True):
        for event in range(len(source.block)):
            found.append(_event(source, event, label))
    return found


def _event(source, event: int, label: str) -> dict[str, object]:
    block, link = source.block, source.links.link(event)
    identifier, name = block.delegate_id(event), block.event_name(event)
    operators_of, modules = _node_labels(source.links, link)
    inside = identifier is not None or name == "DELEGATE_CALL"
    return {
        "event": name,
        "operators": operators_of,
        "module": modules,
        "identifier": None if identifier is None else str(identifier),
        "join": _join(link),
        "instruction": block.instruction(event) if block.layout.chain[event] >= 0 else None,
        "block": label,
        "backend": backend_label(link.backend, inside=inside),
        "mean": source.means[event] * 1e6 if source.is_time(event) else None,
    }


def _event_nodes(
    graph: ModelGraph | None, link: Link, number: int, of_step: tuple[str, ...]
) -> tuple[str, ...]:
    if graph is None:
        return ()
    if graph.source == "program":
        names = [f"{link.backend}_{number}/{name}" for name in link.payload_nodes]
    else:
        names = [_full_name(name, of_step) for name in ([link.node] if link.node else link.nodes)]
    return tuple(name for name in names if name in graph.by_name)


def _full_name(name: str, of_step: tuple[str, ...]) -> str:
    """Return the one node of an instruction that has a name in its own graph, else the name."""
    found = [full for full in of_step if full.rsplit("/", 1)[-1] == name]
    return found[0] if len(found) == 1 else name


def joined_events(session: Session, method: str) -> dict[int, tuple[int, tuple[str, ...], bool]]:
    """Return row of the profile -> instruction, nodes and whether it is inside a delegate."""
    graph = model_graph(session, method)
    by_step = _instruction_nodes(session, method, graph)
    found: dict[int, tuple[int, tuple[str, ...], bool]] = {}
    start = 0
    for block in timed_blocks(session.timed_dumps).blocks:
        links = link_block(session, block)
        wanted = links.method == method or (links.method is None and links.plan is None)
        for event in range(len(block)) if wanted else ():
            number = block.instruction(event)
            if block.layout.chain[event] < 0 or number is None:
                continue
            inner = block.delegate_id(event) is not None
            of_step = by_step.get(number, ())
            names = _event_nodes(graph, links.link(event), number, of_step)
            if of_step and not inner:
                names = of_step
            found[start + event] = (number, names, inner)
        start += len(block)
    return found
