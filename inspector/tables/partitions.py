"""The partitions view: nodes of each delegate, tensors at its border, remaining nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from inspector.files.session import Session
from inspector.graph.delegation import (
    DelegateFacts,
    MethodDelegation,
    analyse_delegation,
    stored_bytes,
)
from inspector.graph.model_graph import ModelGraph, ModelNode, model_graph
from inspector.graph.node_text import node_title, operator_title, summary_text, value_text
from inspector.profile.node_times import NodeTimes, node_times
from inspector.size.users import blob_name, constant_users, is_hash
from inspector.tables.boundaries import (
    DelegateBoundary,
    Inserted,
    border_group,
    boundaries,
    inserted_nodes,
    inserted_selection,
    join_group,
)
from inspector.tables.facts import Fact, FactGroup, FactSheet, shortened
from inspector.tables.partition_keys import PartitionKeys
from inspector.tables.query import QueryError
from inspector.tables.selection import Selection, SelectionKind, Units
from inspector.tables.table import (
    Column,
    Table,
    Total,
    badge_column,
    bounded_share,
    bounds_in,
    number_column,
    share_column,
    text_column,
)
from inspector.tables.tree import TOP, Tree
from inspector.units import Quantity, choose_unit, format_bytes, format_share
from schema.backends import short_backend
from schema.graph import NodeKind, is_compute
from schema.objects.identity_cache import identity_cache
from schema.objects.plural import plural

_FLOW = (NodeKind.PLACEHOLDER, NodeKind.OUTPUT)
_NOBODY = -1


@dataclass(frozen=True, slots=True, eq=False)
class Partitions:
    """Delegation of one method, for display.

    Attributes:
        facts: the analysis
        graph: the compiled graph, None without one
        times: times of its nodes
        boundaries: tensors at the borders of delegates
        tree: delegates with their nodes below, then what was not delegated by operator
        keys: of the rows of the tree
        sheets: delegate -> facts of its border and of its events
    """

    facts: MethodDelegation
    graph: ModelGraph | None
    times: NodeTimes | None
    boundaries: tuple[DelegateBoundary, ...]
    tree: Tree
    keys: PartitionKeys
    sheets: Mapping[int, tuple[FactGroup, ...]]


@dataclass(frozen=True, slots=True)
class _PartitionRow:
    name: str
    parent: int
    key: Selection | str | ModelNode
    backend: str = ""
    nodes: int | None = None
    nbytes: int | None = None
    inside: int | None = None
    outside: int | None = None
    ns: float = float("nan")
    is_node: bool = False
    tick_ns: float = 0.0
    computing: int | None = None


@identity_cache
def partitions(
    session: Session, method: str, time_unit: str = "auto", size_unit: str = "auto"
) -> Partitions | None:
    """Return the partitions of a method, None without delegation data."""
    facts = next((one for one in analyse_delegation(session) if one.method == method), None)
    if facts is None:
        return None
    graph = model_graph(session, method)
    times = node_times(session, method, graph) if graph is not None else None
    borders = boundaries(graph) if graph is not None else ()
    added = {
        one.index: inserted_nodes(session, method, one.index)
        for one in facts.delegates
        if graph is not None and graph.source == "record"  # else they are nodes of the graph
    }
    rows = _rows(facts, graph, times, borders, added)
    sheets = {
        one.index: (
            border_group(session, method, one.index, borders),
            join_group(session, method, one.index),
        )
        for one in facts.delegates
    }
    keys = PartitionKeys(method, graph, [row.key for row in rows])
    tree = _tree(rows, keys, times, time_unit, size_unit)
    return Partitions(facts, graph, times, borders, tree, keys, sheets)


def _rows(
    facts: MethodDelegation,
    graph: ModelGraph | None,
    times: NodeTimes | None,
    borders: Sequence[DelegateBoundary],
    added: Mapping[int, Sequence[Inserted]],
) -> list[_PartitionRow]:
    rows: list[_PartitionRow] = []
    taken: dict[int, list[ModelNode]] = {}
    for node in graph.nodes if graph is not None else ():
        taken.setdefault(_NOBODY if node.delegate is None else node.delegate, []).append(node)
    for delegate in facts.delegates:
        own = taken.get(delegate.index, [])
        parent = len(rows)
        rows.append(_delegate_row(facts.method, delegate, borders, times))
        if own:
            rows += [_node_row(node, parent, times) for node in own]
        else:
            named = zip(delegate.nodes, delegate.operators, strict=True)
            rows += [
                _PartitionRow(operator_title(one), parent, f"{delegate.index} {name}", is_node=True)
                for name, one in named
            ]
        rows += [_added_row(facts.method, one, parent) for one in added.get(delegate.index, ())]
    rows += _left_rows(facts, taken.get(_NOBODY, []), len(rows), times)
    return rows


def _delegate_row(
    method: str,
    delegate: DelegateFacts,
    borders: Sequence[DelegateBoundary],
    times: NodeTimes | None,
) -> _PartitionRow:
    return _PartitionRow(
        f"{short_backend(delegate.backend_id)} · delegate {delegate.index}",
        TOP,
        Selection(SelectionKind.DELEGATE, method, delegate=delegate.index),
        delegate.backend_id,
        len(delegate.nodes),
        delegate.nbytes + delegate.named_bytes if delegate.payload is not None else None,
        _border_bytes(borders, delegate.index, inward=True),
        _border_bytes(borders, delegate.index, inward=False),
        times.delegate_ns.get(delegate.index, float("nan")) if times else float("nan"),
        computing=delegate.computing,
    )


def _border_bytes(
    borders: Sequence[DelegateBoundary], delegate: int, *, inward: bool
) -> int | None:
    sizes = [one.nbytes for one in borders if one.delegate == delegate and one.inward is inward]
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


def _node_row(node: ModelNode, parent: int, times: NodeTimes | None) -> _PartitionRow:
    weights = [weight.nbytes for weight in node.weights]
    known = [size for size in weights if size is not None]
    return _PartitionRow(
        node_title(node),
        parent,
        node,
        node.backend,
        None,
        sum(known) if known and len(known) == len(weights) else None,
        ns=float(times.node_ns[node.id]) if times else float("nan"),
        is_node=True,
        tick_ns=float(times.tick_ns[node.id]) if times else 0.0,
    )


def _added_row(method: str, one: Inserted, parent: int) -> _PartitionRow:
    ns = float("nan") if one.ns is None else one.ns
    name = f"{one.node.node.target} · added by the compiler"
    key = inserted_selection(method, one)
    return _PartitionRow(name, parent, key, ns=ns, is_node=True, tick_ns=one.tick_ns)


def _left_rows(
    facts: MethodDelegation, nodes: Sequence[ModelNode], start: int, times: NodeTimes | None
) -> list[_PartitionRow]:
    groups: dict[str, list[ModelNode]] = {}
    for node in nodes:
        if node.node.kind not in _FLOW:
            groups.setdefault(operator_title(node.node.target), []).append(node)
    if not groups:
        return []
    rows = [
        _PartitionRow(
            "not delegated",
            TOP,
            "not delegated",
            nodes=sum(map(len, groups.values())),
            ns=_sum(times, [node for own in groups.values() for node in own]),
            computing=sum(map(_computing, groups.values())),
        )
    ]
    order = sorted(groups.items(), key=lambda item: (-_rank(_sum(times, item[1])), -len(item[1])))
    for title, own in order:
        parent = start + len(rows)
        rows.append(
            _PartitionRow(
                title,
                start,
                f"not delegated {title}",
                nodes=len(own),
                ns=_sum(times, own),
                computing=_computing(own),
            )
        )
        rows += [_node_row(node, parent, times) for node in own]
    return rows


def _computing(nodes: Sequence[ModelNode]) -> int:
    return sum(is_compute(node.node.target) for node in nodes)


def _rank(ns: float) -> float:
    return 0.0 if np.isnan(ns) else ns


def _sum(times: NodeTimes | None, nodes: Sequence[ModelNode]) -> float:
    if times is None:
        return float("nan")
    own = times.node_ns[[node.id for node in nodes]]
    known = own[~np.isnan(own)]
    return float(known.sum()) if known.size else float("nan")


def _tree(
    rows: Sequence[_PartitionRow],
    keys: PartitionKeys,
    times: NodeTimes | None,
    time_unit: str,
    size_unit: str,
) -> Tree:
    longest = max((row.ns for row in rows if not np.isnan(row.ns)), default=0.0)
    sizes = [size for row in rows for size in (row.nbytes, row.inside, row.outside) if size]
    clock = choose_unit(Quantity.TIME, longest, time_unit)
    unit = choose_unit(Quantity.SIZE, max(sizes, default=0), size_unit)
    columns: list[Column] = [
        text_column("partition", [row.name for row in rows], width=34),
        number_column("nodes", [row.nodes for row in rows], Quantity.COUNT, missing=""),
        number_column("computing", [row.computing for row in rows], Quantity.COUNT, missing=""),
    ]
    if longest > 0 and times is not None:
        values = np.array([row.ns for row in rows], np.float64)
        time = number_column("time", values, Quantity.TIME, unit=clock, missing="")
        ticks = np.array([row.tick_ns for row in rows], np.float64)
        columns.append(replace(time, least=ticks))
        shares = values / times.method_ns if times.method_ns > 0 else values * np.nan
        share = share_column("share of method", shares, missing="")
        columns.append(bounded_share(share, bounds_in(times.method_ns, ticks)))
    nbytes = [row.nbytes for row in rows]
    columns += [
        number_column("bytes", nbytes, Quantity.SIZE, unit=unit, missing="", total=Total.SUM),
        number_column("in", [row.inside for row in rows], Quantity.SIZE, unit=unit, missing=""),
        number_column("out", [row.outside for row in rows], Quantity.SIZE, unit=unit, missing=""),
        badge_column(
            "backend",
            [short_backend(row.backend) if row.backend and not row.is_node else "" for row in rows],
        ),
    ]
    muted = np.array([row.key == "not delegated" for row in rows], np.bool_)
    table = Table(tuple(columns), len(rows), keys, muted, "rows")
    return Tree(table, np.array([row.parent for row in rows], np.int64))


def counts_text(built: Partitions) -> str:
    """Return a line about nodes that the stock tool does not count."""
    return " · ".join(words for _, _, words in _counts(built))


def _counts(built: Partitions) -> list[tuple[str, str, str]]:
    """Return name and value of each count, and a line with both."""
    facts = built.facts
    share = f"{facts.compute_delegated:,} of "
    share += f"{facts.compute_delegated + facts.compute_non_delegated:,}"
    found = [("delegated", share, f"{share} nodes that compute are delegated")]
    if facts.unread:
        found.append(("not known", plural(len(facts.unread), "delegate"), facts.unread_words))
    if facts.nested_non_delegated:
        more = f"{facts.nested_non_delegated:,} more"
        words = f"{more} in branches and loop bodies are not"
        found.append(("not, in branches and loops", more, words))
    if built.times is not None and built.times.method_ns > 0 and built.times.delegate_ns:
        inside = format_share(sum(built.times.delegate_ns.values()) / built.times.method_ns)
        found.append(("time in delegates", inside, f"{inside} of the time is in delegates"))
    nbytes = stored_bytes(facts.delegates)
    if nbytes:
        size = format_bytes(nbytes)
        found.append(("payloads and constants", size, f"payloads and constants {size}"))
    return found


COUNTING = {
    "lowered": "counted in the recorded graph after delegation",
    "handles": "counted in the recorded graph by the handles listed at the delegate instructions",
    "payload": "counted in the decoded payloads against the kernel calls of the program",
}


def delegate_sheet(built: Partitions, index: int) -> FactSheet:
    """Return the facts of a delegate; may be empty."""
    delegate = next((one for one in built.facts.delegates if one.index == index), None)
    if delegate is None:
        return FactSheet()
    groups = [
        FactGroup("Delegate", _lines(_delegate_lines(delegate))),
        FactGroup("Compile specs", _lines(delegate.compile_specs.items())),
    ]
    payload = delegate.payload
    if payload is not None:
        facts = [(key, summary_text(key, value)) for key, value in payload.summary.items()]
        groups.append(FactGroup("Payload", _lines([("format", payload.format), *facts])))
        odd = [(issue.where, issue.message) for issue in payload.issues]
        groups.append(FactGroup("Odd", _lines(odd)))
    groups[1:1] = built.sheets.get(index, ())
    title = f"{short_backend(delegate.backend_id)} · delegate {delegate.index}"
    return FactSheet(title, delegate.backend_id, tuple(one for one in groups if one.facts))


def method_sheet(built: Partitions) -> FactSheet:
    """Return the counts of a method: those of the stock tool, and further ones."""
    facts = built.facts
    stock = [tuple(line.split(": ", 1)) for line in facts.summary.splitlines()]
    honest = [(label, value) for label, value, _ in _counts(built)]
    both = [(op.op_type, f"{op.delegated:,} / {op.non_delegated:,}") for op in facts.by_operator]
    groups = (
        FactGroup("As the stock tool counts", _lines((pair[0], pair[-1]) for pair in stock)),
        FactGroup("Nodes that compute", text="", facts=_lines(honest)),
        shortened("By operator: delegated / not", _lines(both)),
    )
    return FactSheet(facts.method, COUNTING.get(facts.counting, facts.counting), groups)


def _lines(pairs: Iterable[tuple[str, str]]) -> tuple[Fact, ...]:
    return tuple(Fact(label, value) for label, value in pairs)


def _nodes_text(delegate: DelegateFacts) -> str:
    count = f"{len(delegate.nodes):,}"
    same = delegate.computing == len(delegate.nodes)
    return count if same else f"{count}, {delegate.computing:,} of them compute"


def _delegate_lines(delegate: DelegateFacts) -> list[tuple[str, str]]:
    lines = [("backend", delegate.backend_id), ("nodes", _nodes_text(delegate))]
    if delegate.payload is not None:
        lines.append(("payload", f"{delegate.nbytes:,} bytes"))
        if delegate.named_bytes:
            lines.append(("named data", f"{delegate.named_bytes:,} bytes"))
    calls = ", ".join(map(str, delegate.calls)) or "none"
    return [*lines, ("called at instruction", calls)]


def boundary_table(built: Partitions, delegate: int | None, size_unit: str = "auto") -> Table:
    """Return the tensors at the border of a delegate, or of all."""
    own = [one for one in built.boundaries if delegate in (None, one.delegate)]
    columns = (
        text_column("tensor", [one.value.name for one in own], mono=True),
        badge_column("way", ["in" if one.inward else "out" for one in own]),
        badge_column("outside", [one.conversion for one in own]),
        text_column("type", [value_text(one.value) for one in own], mono=True),
        number_column(
            "size", [one.nbytes for one in own], Quantity.SIZE, unit=size_unit, total=Total.SUM
        ),
        text_column("from or to", [one.other for one in own], mono=True),
        number_column("delegate", [one.delegate for one in own], Quantity.COUNT),
    )
    keys = [Selection(SelectionKind.NODE, built.facts.method, "compiled", one.other) for one in own]
    return Table(columns, len(own), keys, noun="tensors")


def constants_table(
    session: Session, built: Partitions, delegate: int | None, size_unit: str = "auto"
) -> Table:
    """Return the constants of the payload of a delegate, or of all, by the names of modules."""
    found = [
        (one.index, constant)
        for one in built.facts.delegates
        if delegate in (None, one.index) and one.payload is not None
        for constant in one.payload.constants
    ]
    sizes = [constant.nbytes for _, constant in found]
    keys = [constant.name for _, constant in found]
    names = [_constant_name(session, built.facts.method, key) for key in keys]
    columns = (
        text_column("constant", names, mono=True),
        text_column("role", [constant.role for _, constant in found]),
        number_column("size", sizes, Quantity.SIZE, unit=size_unit, total=Total.SUM),
        text_column("kept", [constant.location for _, constant in found]),
        number_column("delegate", [index for index, _ in found], Quantity.COUNT),
        text_column(
            "stored as",
            [None if key == name else key for key, name in zip(keys, names, strict=True)],
            missing="",
            mono=True,
        ),
    )
    return Table(columns, len(found), noun="constants")


def _constant_name(session: Session, method: str, key: str) -> str:
    """Return what a constant is called; the hash of its content names nothing."""
    users = constant_users(session, method, key) if is_hash(key) else ()
    own = [replace(one, text=one.text.removeprefix(f"{method} ")) for one in users]
    return blob_name(own) or key


def known_partitions(session: Session, method: str, units: Units) -> Partitions:
    """Return the partitions of a method.

    Raises: QueryError when no file has delegation data
    """
    found = partitions(session, method, units.time, units.size)
    if found is None:
        raise QueryError("delegation needs a program, or an ETRecord of a delegated one")
    return found


def partition_tree(session: Session, method: str, units: Units) -> Tree:
    """Return delegates with their nodes below, then what was not delegated by operator.

    Raises: QueryError if no file has delegation data
    """
    return known_partitions(session, method, units).tree


def boundary_tensors(session: Session, method: str, units: Units) -> Table:
    """Return the tensors that enter and leave delegates.

    Raises: QueryError if no file has delegation data
    """
    return boundary_table(known_partitions(session, method, units), None, units.size)


def delegate_constants(session: Session, method: str, units: Units) -> Table:
    """Return the constants in the payloads of delegates.

    Raises: QueryError when no file has delegation data
    """
    return constants_table(session, known_partitions(session, method, units), None, units.size)
