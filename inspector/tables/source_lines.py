"""Source files named by stack traces, with the time and the nodes of each line."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from inspector.files.session import Session
from inspector.graph.model_graph import ModelGraph, model_graph
from inspector.graph.snippet import file_name
from inspector.graph.source import SourceFrame, find_source, read_source, user_frame
from inspector.profile.node_times import NodeTimes, node_times
from inspector.tables.selection import Units
from inspector.tables.table import (
    Table,
    Total,
    bounded_share,
    bounds_in,
    number_column,
    share_column,
    text_column,
)
from inspector.tables.tree import TOP, Tree
from inspector.units import Quantity, bound_of_total, choose_unit


@dataclass(frozen=True, slots=True)
class LineKey:
    """A line of a file, or with line 0 the file itself."""

    file: str
    line: int = 0


@dataclass(slots=True, eq=False)
class SourceLine:
    """The nodes and times of one line.

    Attributes:
        code: as recorded, may be empty
        nodes: names in the compiled graph, the slowest first
        nanoseconds: mean time of a run, NaN if not measured
        ticks: steps of the clocks that measured its nodes, in nanoseconds
    """

    code: str
    nodes: list[str] = field(default_factory=list[str])
    nanoseconds: float = float("nan")
    ticks: list[float] = field(default_factory=list[float])

    @property
    def bound_ns(self) -> float:
        """Return the upper bound of a time below a tick, else 0."""
        return bound_of_total(self.nanoseconds, self.ticks)


@dataclass(frozen=True, slots=True, eq=False)
class SourceFiles:
    """The files of a method.

    Attributes:
        files: recorded file -> line number -> its nodes and times
        tree: files with their lines below, keyed by LineKey
        line_of: node -> its line
        times: times of the nodes
        unplaced: nodes without a source line
    """

    files: Mapping[str, Mapping[int, SourceLine]]
    tree: Tree
    line_of: Mapping[str, LineKey]
    times: NodeTimes | None
    unplaced: int


@dataclass(frozen=True, slots=True)
class SourceText:
    """The lines of one file on this machine.

    Attributes:
        file: as recorded
        path: on this machine, None if missing
        lines: its text
        problem: why it cannot be shown, else empty
    """

    file: str
    path: Path | None
    lines: tuple[str, ...] = ()
    problem: str = ""


def source_files(session: Session, method: str, units: Units) -> SourceFiles:
    """Return the source lines of the nodes of a method; empty without stack traces."""
    graph = model_graph(session, method)
    if graph is None:
        return _built({}, {}, None, 0, units)
    times = node_times(session, method, graph)
    files: dict[str, dict[int, SourceLine]] = {}
    line_of: dict[str, LineKey] = {}
    unplaced = 0
    frames: dict[str, SourceFrame | None] = {}
    for node in graph.nodes:
        trace = node.node.stack_trace
        if trace not in frames:  # nodes of one line share their trace
            frames[trace] = user_frame(trace) if trace else None
        frame = frames[trace]
        if frame is None:
            unplaced += 1
            continue
        line = files.setdefault(frame.file, {}).setdefault(frame.line, SourceLine(frame.code))
        line.nodes.append(node.name)
        line_of[node.name] = LineKey(frame.file, frame.line)
        own = float(times.node_ns[node.id])
        if not np.isnan(own):
            known = line.nanoseconds
            line.nanoseconds = own if np.isnan(known) else known + own
            line.ticks.append(float(times.tick_ns[node.id]))
    _slowest_first(files, graph, times)
    return _built(files, line_of, times, unplaced, units)


def _slowest_first(
    files: Mapping[str, Mapping[int, SourceLine]], graph: ModelGraph, times: NodeTimes
) -> None:
    def cost(name: str) -> float:
        return -float(np.nan_to_num(times.node_ns[graph.by_name[name]]))

    for lines in files.values():
        for line in lines.values():
            line.nodes.sort(key=cost)


def _built(
    files: Mapping[str, Mapping[int, SourceLine]],
    line_of: Mapping[str, LineKey],
    times: NodeTimes | None,
    unplaced: int,
    units: Units,
) -> SourceFiles:
    return SourceFiles(files, _tree(files, times, units), line_of, times, unplaced)


def _tree(
    files: Mapping[str, Mapping[int, SourceLine]], times: NodeTimes | None, units: Units
) -> Tree:
    names: list[str] = []
    code: list[str] = []
    nodes: list[int] = []
    spent: list[float] = []
    bounds: list[float] = []
    parents: list[int] = []
    keys: list[Hashable] = []
    for file, lines in files.items():
        parent = len(names)
        known = [line.nanoseconds for line in lines.values() if not np.isnan(line.nanoseconds)]
        names.append(file_name(file))
        code.append(file.removesuffix(file_name(file)).rstrip("/\\"))  # its folder
        nodes.append(sum(len(line.nodes) for line in lines.values()))
        spent.append(sum(known) if known else float("nan"))
        ticks = [tick for line in lines.values() for tick in line.ticks]
        bounds.append(bound_of_total(spent[-1], ticks))
        parents.append(TOP)
        keys.append(LineKey(file))
        for number, line in sorted(lines.items()):
            names.append(f"line {number}")
            code.append(line.code)
            nodes.append(len(line.nodes))
            spent.append(line.nanoseconds)
            bounds.append(line.bound_ns)
            parents.append(parent)
            keys.append(LineKey(file, number))
    ns = np.array(spent, np.float64)
    whole = times.method_ns if times is not None else float("nan")
    unit = choose_unit(Quantity.TIME, float(np.nanmax(ns, initial=0.0)), units.time)
    least = np.array(bounds, np.float64)
    shares = ns / whole if whole > 0 else np.full(len(ns), np.nan)
    columns = (
        text_column("file and line", names, mono=True, total=Total.NONE),
        replace(number_column("time", ns, Quantity.TIME, unit=unit), least=least),
        number_column("nodes", np.array(nodes, np.int64), Quantity.COUNT),
        bounded_share(share_column("share of method", shares), bounds_in(whole, least)),
        text_column("code", code, mono=True, total=Total.NONE, width=48),
    )
    rows = Table(columns, len(names), keys, None, "lines")
    return Tree(rows, np.array(parents, np.int64))


def source_text(file: str, session: Session) -> SourceText:
    """Return the text of a recorded file, or why it is missing."""
    path = find_source(file, session)
    if path is None:
        return SourceText(file, None, (), "It is not on this machine under any source root.")
    try:
        return SourceText(file, path, read_source(path))
    except OSError as error:
        return SourceText(file, path, (), str(error))


def source_tree(session: Session, method: str, units: Units) -> Tree:
    """Return source files with their lines below; empty without stack traces."""
    return source_files(session, method, units).tree
