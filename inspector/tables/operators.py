"""The operators table: operators, owners, times, and certainty of the join."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inspector.files.session import Session
from inspector.graph.model_graph import ModelNode, graph_names, model_graph
from inspector.join.int_maps import GroupMap
from inspector.join.links import Link
from inspector.profile.attribution import mean, of_steady_set, spread
from inspector.profile.join_index import Related, join_index
from inspector.profile.methods import analyse_profile
from inspector.profile.operator_columns import (
    INNER,
    KINDS,
    LEFT,
    REST,
    TRACED,
    BlockRows,
    delegate_label,
)
from inspector.profile.operator_rows import OperatorRows, operator_rows
from inspector.roofline.method_work import method_work
from inspector.roofline.rows import COUNTED, Limits, known_limits, only_work, roofline
from inspector.roofline.work import NO_WORK
from inspector.tables.event_keys import EventKeys
from inspector.tables.glossary import JOINS
from inspector.tables.grouping import group_rows
from inspector.tables.roofline import WORK_TITLES, work_columns
from inspector.tables.row_order import RowOrder
from inspector.tables.selection import AUTOMATIC, Selection, SelectionKind, Units, node_selection
from inspector.tables.table import (
    Categories,
    Column,
    MoreColumns,
    RunParts,
    Table,
    Total,
    badge_column,
    bounded_share,
    number_column,
    share_column,
    share_of_ticks,
    text_column,
)
from inspector.tables.tree import Tree
from inspector.trace.group_keys import pack, ranks
from inspector.units import MISSING, Quantity, choose_unit
from schema.backends import short_backend
from schema.graph import NodeKind

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
RunSamples = tuple[Floats, NDArray[np.bool_]]  # of each run: time, and whether it is steady
DELEGATE = "delegate"
UNNAMED_CALL = "delegate call"  # with its number among those of a method, from 1
_PASSIVE = (NodeKind.PLACEHOLDER, NodeKind.OUTPUT)
_TOO_FEW = "—"  # runs for a percentile
JOIN_WORDS = {
    "INSTRUCTION": "instruction",
    "DEBUG_HANDLE": "exact",
    "DELEGATE_ID": "exact",
    "ORDER": "inferred",
    "DELEGATE_CALL_ONLY": "call only",
    "NONE": "none",
}
_PAYLOAD_ONLY = "payload only"
JOIN_REASONS = {word: JOINS[word] for word in (*dict.fromkeys(JOIN_WORDS.values()), _PAYLOAD_ONLY)}
JOIN_TONES = {"exact": "good", "instruction": "good", "inferred": "warn", "call only": "warn"}


@dataclass(frozen=True, slots=True, eq=False)
class OperatorsTable:
    """A table of operators or events, and the maps from selections to rows.

    Attributes:
        table: the rows
        runs: steady samples of the row with the most
        samples_of: time of a row in each run in ns, and which are steady; None without samples
        by_event: profile row -> row
        by_step: instruction -> rows outside of delegates
        by_node: node -> row
    """

    table: Table
    runs: int
    samples_of: Callable[[int], RunSamples | None]
    by_event: Mapping[int, int]
    by_step: Mapping[int, tuple[int, ...]]
    by_node: Mapping[str, int]

    def rows_of(self, related: Related) -> list[int]:
        """Return the rows of a selection: its events, else its instructions, else nodes."""
        rows = [self.by_event[one] for one in related.events if one in self.by_event]
        if not rows:
            rows = [row for step in related.instructions for row in self.by_step.get(step, ())]
        if not rows:
            rows = [self.by_node[name] for name in related.nodes if name in self.by_node]
        return list(dict.fromkeys(rows))

    def tick_ns(self, row: int) -> float:
        """Return the step of the clock of a row, 0 for differences of times."""
        ticks = next((one.least for one in self.table.columns if one.title == "mean"), None)
        return 0.0 if ticks is None else float(ticks[row])

    def selection(self, row: int) -> Selection:
        """Return the selection of a row; empty for unattributed time."""
        key = self.table.key(row)
        return key if isinstance(key, Selection) else Selection()


def operators_table(session: Session, method: str, units: Units) -> OperatorsTable:
    """Return one row per operator; without a trace the times are missing."""
    rows = operator_rows(session, method)
    if rows:
        return _timed(session, method, rows, units)
    return _untimed(session, method)


def _timed(session: Session, method: str, rows: OperatorRows, units: Units) -> OperatorsTable:
    parts = rows.parts
    timed, kind = _joined(parts, lambda part: part.timed), _joined(parts, lambda part: part.kind)
    points = sample_points(parts, timed)
    largest = _largest(np.where(kind >= LEFT, np.nan, points[0]))
    ticks = _joined(parts, lambda part: part.tick_ns)
    times = time_columns(points, units, ticks, largest, run_parts(parts))
    unit = choose_unit(Quantity.TIME, largest, units.time)
    kernels = _joined(parts, lambda part: part.kernel_ns)
    passes = _joined(parts, lambda part: part.passes)
    columns = (
        text_column("operator", Categories.of((one.label, one.labels) for one in parts), width=23),
        text_column("module", Categories.of(map(_modules, parts)), missing="", width=16),
        text_column(DELEGATE, Categories.of(map(_delegates, parts)), width=13),
        times[0],
        _share_of_method(parts),
        *times[1:4],
        join_column(_by_kind(parts, _join)),
        *times[4:],
        *_ticks(session, rows, timed),
        number_column("kernel, mean", kernels, Quantity.TIME, unit=unit, missing="—"),
        *_kernel_names(parts),
        number_column("passes", passes, Quantity.COUNT),
        text_column("block", Categories.of((one.kind * 0, (one.name,)) for one in parts)),
        text_column("backend", _by_kind(parts, _backend)),
        text_column("node", _by_kind(parts, _nodes), missing="", mono=True, width=24),
        text_column("source", Categories.of((one.link, one.sources) for one in parts), missing=""),
    )
    more = MoreColumns(WORK_TITLES, 5, lambda: _timed_work(session, method, units))
    keys = _keys(method, parts)
    steps = _joined(parts, lambda part: part.instruction)
    calls = np.flatnonzero((steps != -1) & (kind != INNER))
    return OperatorsTable(
        Table(columns, len(rows), keys, np.isin(kind, (REST, LEFT, TRACED)), "operators", more),
        max((int(part.steady.sum()) for part in parts if part.timed.any()), default=0),
        lambda row: _samples(rows, row),
        keys.by_event,
        GroupMap(steps[calls], calls),
        {},
    )


def _kernel_names(parts: Sequence[BlockRows]) -> tuple[Column, ...]:
    """Return the column of kernels inside of delegates, if a backend named any."""
    if not any(part.kernel.any() for part in parts):
        return ()
    found = Categories.of((part.kernel, part.kernel_names) for part in parts)
    return (text_column("kernel inside", found, missing="", mono=True, width=24),)


def _share_of_method(parts: Sequence[BlockRows]) -> Column:
    """Return the column of shares; where the time is only bounded, its share is bounded as well."""
    column = share_column("share of method", _joined(parts, lambda part: part.share))
    least = _joined(parts, lambda part: share_of_ticks(part.tick_ns, part.mean_ns, part.share))
    return replace(bounded_share(column, least), width=17)


def _timed_work(session: Session, method: str, units: Units) -> tuple[Column, ...]:
    """Return FLOPs, bytes and limits: those of the roofline, none of rows that do no work."""
    limits = known_limits(session)
    found = iter(roofline(session, method, limits).rows)
    kinds = _joined(operator_rows(session, method).parts, lambda part: part.kind).tolist()
    idle = only_work(NO_WORK)
    rows = [next(found) if KINDS[kind] in COUNTED else idle for kind in kinds]
    return work_columns(rows, limits, units)


def _untimed_work(
    session: Session, method: str, nodes: Sequence[tuple[ModelNode, Sequence[int]]]
) -> tuple[Column, ...]:
    work = method_work(session, method)
    rows = [only_work(work.of_node(node, steps)) for node, steps in nodes]
    return work_columns(rows, Limits(), AUTOMATIC)


def _joined(
    parts: Sequence[BlockRows], column: Callable[[BlockRows], NDArray[Any]]
) -> NDArray[Any]:
    return np.concatenate([column(part) for part in parts])


def _samples(rows: OperatorRows, row: int) -> RunSamples | None:
    part, at = rows.place(row)
    if not part.timed[at] or part.kind[at] == TRACED:
        return None
    return part.samples[at], part.steady


def _keys(method: str, parts: Sequence[BlockRows]) -> EventKeys:
    first = np.cumsum([0, *(len(part.links) for part in parts)])
    start = np.cumsum([0, *map(len, parts)])
    others = {
        int(start[number]) + int(row): (KINDS[int(part.kind[row])], part.name)
        for number, part in enumerate(parts)
        for row in np.flatnonzero(part.event < 0)
    }
    return EventKeys(
        method,
        np.concatenate([np.where(part.event < 0, -1, part.events) for part in parts]),
        _joined(parts, lambda part: part.instruction),
        np.concatenate([part.link + first[number] for number, part in enumerate(parts)]),
        tuple(link.delegate for part in parts for link in part.links),
        others,
    )


def _modules(part: BlockRows) -> tuple[Ints, Sequence[str]]:
    return part.link, part.modules


def _by_kind(parts: Sequence[BlockRows], words: Callable[[Link, int, bool], str]) -> Categories:
    """Return a column of strings for links by kind of row, inside of delegates or not."""

    def coded(part: BlockRows) -> tuple[Ints, list[str]]:
        inside = part.in_delegate
        codes, first = ranks(pack(part.link, part.kind, inside))
        texts = [
            words(part.links[int(part.link[row])], int(part.kind[row]), bool(inside[row]))
            for row in first.tolist()
        ]
        return codes, texts

    return Categories.of(map(coded, parts))


def join_word(link: Link) -> str:
    """Return how certain a join is; an exact one may be to a node of the payload alone.

    An identifier with the handles of a whole call identifies no more than the call does.
    """
    word = JOIN_WORDS["DELEGATE_CALL_ONLY" if link.of_call else link.grade.value]
    return _PAYLOAD_ONLY if word == "exact" and link.payload_nodes and not link.nodes else word


def _join(link: Link, kind: int, _inside: bool) -> str:
    return join_word(link) if kind < LEFT else ""


def _backend(link: Link, kind: int, inside: bool) -> str:
    return backend_label(link.backend, inside=inside) if kind < LEFT else KINDS[kind]


def _nodes(link: Link, kind: int, _inside: bool) -> str:
    """Return the recorded names, since kernels have other names."""
    if kind >= LEFT:
        return ""
    return link.node or ", ".join(link.nodes or link.payload_nodes)


def _delegates(part: BlockRows) -> tuple[Ints, list[str]]:
    """Return the delegate of each row; a trace alone has only the order of their calls."""
    named = [delegate_label(link) for link in part.links]
    is_named = np.array([bool(name) for name in named], np.bool_)[part.link]
    inside, step = part.in_delegate, part.instruction
    calls = np.unique(step[inside & (step >= 0)])
    outside = len(named)
    codes = np.where(is_named, part.link, np.where(inside, outside + 1, outside))
    numbered = inside & ~is_named & (step >= 0)
    codes[numbered] = outside + 2 + np.searchsorted(calls, step[numbered])
    unnamed = [f"{UNNAMED_CALL} {number}" for number in range(1, len(calls) + 1)]
    return codes, [*named, "—", "unknown", *unnamed]


def backend_label(backend: str, *, inside: bool) -> str:
    """Return a backend in short; a trace alone does not name the one a delegate ran on."""
    if backend:
        return short_backend(backend)
    return "unknown" if inside else "not delegated"


def run_parts(parts: Sequence[BlockRows]) -> RunParts | None:
    """Return over which runs the means of the rows are, None where all are over the same."""
    if len(parts) < 2:
        return None
    runs = np.array([part.steady.sum() for part in parts], np.float64)
    return RunParts(np.repeat(np.arange(len(parts)), [len(part) for part in parts]), runs)


def sample_points(parts: Sequence[BlockRows], timed: NDArray[np.bool_]) -> list[Floats]:
    """Return mean, p50, p10, p90, min and max of each row, NaN where it has none.

    Shapes: timed bool[rows of all]; float64[rows of all] each
    """
    found = [np.concatenate([part.mean_ns[None], spread(part.steady_samples)]) for part in parts]
    return list(np.where(timed, np.concatenate(found, axis=1), np.nan))


def _largest(times: Floats) -> float:
    return float(np.nanmax(times, initial=0.0))


def time_columns(
    points: list[Floats],
    units: Units,
    ticks: Floats,
    largest: float | None = None,
    parts: RunParts | None = None,
) -> tuple[Column, ...]:
    """Return the columns of mean, p50, p10, p90, min and max, all in one unit.

    The plot of runs also shows the extremes, so these columns may need scrolling. Only means add
    up.

    Args:
        points: of each row, in nanoseconds
        units: of the user
        ticks: step of the clock of each row, in nanoseconds
        largest: value that determines the unit, by default the largest mean
        parts: over which runs the means are, None where all are over the same
    """
    unit = choose_unit(
        Quantity.TIME, _largest(points[0]) if largest is None else largest, units.time
    )
    totals = (Total.SUM, *[Total.NONE] * 5)
    titles = ("mean", "p50", "p10", "p90", "min", "max")
    gaps = (MISSING, *[_TOO_FEW] * 3, MISSING, MISSING)
    cells = zip(titles, points, totals, gaps, strict=True)
    return tuple(
        replace(
            number_column(title, values, Quantity.TIME, unit=unit, total=total, missing=gap),
            least=ticks,
            parts=parts,
        )
        for title, values, total, gap in cells
    )


def join_column(words: Sequence[str | None]) -> Column:
    """Return the column on how certain the joins are."""
    return badge_column("join", words, tone=_tone, explain=_reason)


def _tone(value: object) -> str:
    return JOIN_TONES.get(str(value), "muted")


def _reason(value: object) -> str:
    return JOIN_REASONS.get(str(value), "")


def _ticks(session: Session, rows: OperatorRows, timed: NDArray[np.bool_]) -> tuple[Column, ...]:
    """Return a column of ticks for rows without times, or no column."""
    if timed.all():
        return ()
    profile = analyse_profile(session).rows
    values = np.full(len(rows), np.nan)
    for row in np.flatnonzero(~timed).tolist():
        part, at = rows.place(row)
        source, event = profile.place(int(part.events[at]))
        values[row] = float(mean(of_steady_set(source.block.elapsed[:, event], source.steady)))
    return (number_column("mean of ticks", values, Quantity.TICKS, missing="—"),)


def _untimed(session: Session, method: str) -> OperatorsTable:
    name = graph_names(session, method)[0]  # of a program that was only exported, that one
    graph = model_graph(session, method, name)
    nodes = [node for node in graph.nodes if node.node.kind not in _PASSIVE] if graph else []
    index = join_index(session, method)
    steps = [index.node_instructions.get(node.name, ()) for node in nodes]
    delegates = [
        f"{short_backend(node.backend)} {node.delegate}" if node.delegate is not None else "—"
        for node in nodes
    ]
    decided = graph is not None and graph.source in ("record", "program")
    outside = "not delegated" if decided else "—"
    backends = [short_backend(node.backend) if node.backend else outside for node in nodes]
    weights = [sum(weight.nbytes or 0 for weight in node.weights) for node in nodes]
    columns = (
        text_column("operator", [node.node.target.replace("::", ".") for node in nodes], width=23),
        text_column("module", [node.node.module_path for node in nodes], missing="", width=16),
        text_column(DELEGATE, delegates, width=13),
        number_column("instruction", [own[0] if own else None for own in steps], Quantity.COUNT),
        number_column("mean", np.full(len(nodes), np.nan), Quantity.TIME),
        number_column(
            "output", [node.output_bytes for node in nodes], Quantity.SIZE, total=Total.SUM
        ),
        number_column("weights", weights, Quantity.SIZE, total=Total.SUM),
        text_column("backend", backends),
    )
    keys: list[Hashable] = [node_selection(node, method, name) for node in nodes]
    by_node = {node.name: row for row, node in enumerate(nodes)}
    more = MoreColumns(
        WORK_TITLES, 5, lambda: _untimed_work(session, method, list(zip(nodes, steps, strict=True)))
    )
    table = Table(columns, len(nodes), keys, None, "operators", more)
    return OperatorsTable(table, 0, _no_samples, {}, {}, by_node)


def _no_samples(_row: int) -> RunSamples | None:
    return None


def operators(session: Session, method: str, units: Units) -> Table:
    """Return one row per operator; without a trace the times are missing."""
    return operators_table(session, method, units).table


def group_selection(tree: Tree, node: int, method: str) -> Selection:
    """Return the delegate that all operators below a row are in, empty where that is not one."""
    keys = [tree.rows.key(int(one)) for one in np.flatnonzero(tree.parents == node)]
    found = {key.delegate if isinstance(key, Selection) else None for key in keys}
    delegate = next(iter(found)) if len(found) == 1 else None
    if delegate is None:
        return Selection()
    return Selection(SelectionKind.DELEGATE, method, delegate=delegate)


def call_groups(tree: Tree) -> dict[int, int]:
    """Return the overhead of a call -> the row of its delegate, where that has this call alone.

    An overhead has the event of its call; who asks for the call means all that is below the
    delegate.

    Args:
        tree: from ``operators_tree``
    """
    if tree.rows.muted is None:
        return {}
    overheads = np.flatnonzero(tree.rows.muted & (tree.parents >= 0))
    groups, first, calls = np.unique(tree.parents[overheads], return_index=True, return_counts=True)
    alone = calls == 1
    return dict(zip(overheads[first[alone]].tolist(), groups[alone].tolist(), strict=True))


def operators_tree(order: RowOrder) -> Tree | None:
    """Return operators with those of each delegate below it, None where none has an owner.

    What a call of a delegate takes beyond its operators, its overhead, is then a part of the
    delegate.

    Args:
        order: of the table of operators
    """
    table = order.table
    by = next((at for at, one in enumerate(table.columns) if one.title == DELEGATE), None)
    if by is None or not table.length:
        return None
    tree = group_rows(order, by, np.arange(table.length))
    return tree if len(tree.parents) > table.length else None
