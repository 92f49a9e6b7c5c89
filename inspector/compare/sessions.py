"""Two sessions or more side by side: changes, and their effect on time, memory and error."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from inspector.compare.alignment import GraphAlignment, align_graphs
from inspector.compare.as_stock import as_stock
from inspector.compare.change import MOST_SAMPLES, Change
from inspector.compare.common_graphs import common_graphs
from inspector.compare.differences import diff_sessions
from inspector.compare.event_times import (
    MethodTimes,
    method_times,
    recorded_times,
    timed_methods,
)
from inspector.compare.gaps import gap_rows, gap_summary
from inspector.compare.model import (
    LESS,
    ComparePlace,
    Comparison,
    Delta,
    GapRow,
    MethodGraphs,
    OwnerChange,
    PartitionChange,
    TimeRow,
    WeightChange,
)
from inspector.compare.numbers import (
    delegation_summary,
    measured_deltas,
    memory_deltas,
    memory_summary,
    places,
    size_deltas,
    work_summary,
)
from inspector.compare.output_errors import OutputErrors
from inspector.compare.ownership import owner_changes, partition_changes
from inspector.compare.recipes import recipe_changes
from inspector.compare.relation import relation_problems
from inspector.compare.statistics import TimeVerdict, judge
from inspector.compare.time_origins import without_verdict
from inspector.compare.times import module_rows, node_rows, operator_rows
from inspector.compare.weights import recorded_weights, weight_changes
from inspector.files.session import Session
from inspector.graph.model_graph import ModelGraph
from inspector.jobs.measure import Measurement, ProgramTimes
from inspector.memory.measured import PHASES, STEADY
from inspector.numerics.report import GapReport
from inspector.profile.methods import unit_assumed
from inspector.recipes.compile_job import EXECUTORCH
from inspector.roofline.call_costs import STOCK, THIS, device_target
from inspector.trace.timing import is_time
from inspector.units import format_share

_FILE = " file"
NOT_COMPARED = "values were logged while its runs were timed: its times are not compared"


def compare_sessions(
    sessions: Sequence[Session],
    measured: Measurement | None = None,
    gaps: Sequence[GapReport | None] = (),
    method: str = "",
    samples: int = MOST_SAMPLES,
    errors: OutputErrors | None = None,
) -> Comparison:
    """Return how sessions differ from the first one.

    Args:
        sessions: two or more
        measured: times of their programs, measured side by side, in the same order
        gaps: errors of each or None; may be empty
        method: only this one; empty for all that the first shares with another
        samples: largest number of listed elements per tensor
        errors: of the outputs of their programs on the same inputs, if computed

    Raises: ValueError for fewer than two sessions, or mismatching numbers of programs or errors
    """
    if len(sessions) < 2:
        raise ValueError(f"expected two sessions or more, found {len(sessions)}")
    for what, given in (("programs", measured.programs if measured else ()), ("errors", gaps)):
        if given and len(given) != len(sessions):
            raise ValueError(f"expected {what} of {len(sessions)} sessions, found {len(given)}")
    changes = tuple(diff_sessions(sessions[0], each, samples, method) for each in sessions[1:])
    found = _Comparing(sessions, measured, gaps or [None] * len(sessions), method)
    return found.result(changes, errors)


class _Comparing:
    """One comparison in progress."""

    def __init__(
        self,
        sessions: Sequence[Session],
        measured: Measurement | None,
        gaps: Sequence[GapReport | None],
        method: str,
    ) -> None:
        self._sessions = sessions
        self._measured = measured
        self._gaps = gaps
        self._names = _names(sessions)
        others = {name for session in sessions[1:] for name in session.methods}
        common = [name for name in sessions[0].methods if name in others]
        self._methods = tuple(name for name in common if method in ("", name))
        self._unnamed = method == "" and all("" in timed_methods(one) for one in sessions)
        self._notes = _missing(sessions, self._names)
        self._summary: list[Delta] = []
        self._graphs: list[MethodGraphs] = []
        self._owners: list[OwnerChange] = []
        self._partitions: list[PartitionChange] = []
        self._operators: list[TimeRow] = []
        self._modules: list[TimeRow] = []
        self._nodes: list[TimeRow] = []
        self._memory: list[Delta] = []
        self._rows: list[GapRow] = []
        self._weights: list[WeightChange] = []

    def result(
        self, changes: tuple[tuple[Change, ...], ...], errors: OutputErrors | None
    ) -> Comparison:
        """Return the comparison.

        Args:
            changes: all differences of each session from the first
            errors: of outputs on the same inputs, or None
        """
        self._measured_times()
        for method in self._methods:
            self._method(method)
        if self._unnamed:
            nothing = [None] * len(self._sessions)
            self._times("", nothing, nothing[1:])
        if errors is not None:
            self._summary += errors.deltas()
            self._notes = [*errors.notes, *self._notes]
        sizes = size_deltas(self._sessions)
        self._summary += [delta for delta in sizes if delta.what.endswith(_FILE)]
        self._tensor_summary(changes)
        problems = relation_problems(self._sessions, self._names, self._graphs)
        unlike = frozenset(problems)
        return Comparison(
            self._names,
            self._methods,
            _claiming(self._summary, unlike),
            recipe_changes(self._sessions),
            tuple(self._graphs),
            tuple(self._owners),
            tuple(self._partitions),
            tuple(self._operators),
            tuple(self._modules),
            tuple(self._nodes),
            _claiming(self._memory, unlike),
            _claiming(sizes, unlike),
            tuple(self._rows),
            tuple(self._weights),
            changes,
            tuple(dict.fromkeys(self._notes)),
            tuple(dict.fromkeys(word for each in problems.values() for word in each)),
            unlike,
            self._measured.fastest_runs() if self._measured is not None else (),
        )

    def _method(self, method: str) -> None:
        sessions = self._sessions
        graphs, note = common_graphs(sessions, method)
        alignments = tuple(_aligned(graphs[0], each) for each in graphs[1:])
        self._graphs.append(MethodGraphs(method, alignments, note))
        self._notes += [f"{method}: {note}"] if note else []
        for number, alignment in enumerate(alignments, 1):
            if alignment is not None:
                self._owners += owner_changes(alignment, sessions[number], method, number)
                self._partitions += partition_changes(alignment, method, number)
        self._times(method, graphs, alignments)
        self._summary += delegation_summary(sessions, method)
        self._summary += self._graph_summary(method, alignments)
        self._summary += memory_summary(sessions, method)
        measured = measured_deltas(sessions, method)
        self._summary += [one for one in measured if one.what.endswith(PHASES[STEADY])]
        self._summary += work_summary(sessions, method)
        self._memory += [*memory_deltas(sessions, method), *measured]
        self._summary += gap_summary(method, self._gaps)
        self._rows += gap_rows(method, self._gaps, alignments)
        self._method_weights(method)

    # ---- weights
    def _method_weights(self, method: str) -> None:
        saved = [recorded_weights(session, method) for session in self._sessions]
        first = saved[0]
        values: list[int | None] = [None if first is None else 0]
        for number, each in enumerate(saved[1:], 1):
            if first is None or each is None:
                values.append(None)
                continue
            found = weight_changes(first, each, method, number)
            self._weights += found
            values.append(len(found))
        if any(value is not None for value in values[1:]):
            what = "changed weights"
            where = places(self._sessions, "structure", method)
            delta = Delta("tensors", what, "", tuple(values), "", method, places=where)
            self._summary.append(delta)

    def _tensor_summary(self, changes: Sequence[Sequence[Change]]) -> None:
        """Count constants of the programs that are in both and differ, and those on one side."""
        first, *others = self._sessions
        if any(session.program is None for session in self._sessions):
            return
        known = [not set(first.methods).isdisjoint(one.methods) for one in others]  # by method
        where = places(self._sessions, "structure")
        for what, gone in (("constants with other values", False), ("constants on one side", True)):
            counts = [
                sum(_is_tensor(one, gone=gone) for one in each) if compared else None
                for each, compared in zip(changes, known, strict=True)
            ]
            note = "weights in delegates are part of their payloads" if gone else ""
            delta = Delta("tensors", what, "", (0, *counts), note=note, places=where)
            self._summary += [delta] if any(known) else []

    # ---- time
    def _measured_times(self) -> None:
        """Put measured times first, each with its verdict."""
        found = self._measured
        if found is None:
            return
        for name, program in zip(self._names, found.programs, strict=True):
            if program.failure:
                self._notes.append(f"{name} could not be measured: {program.failure}")
        facts = [program.facts or {} for program in found.programs]
        verdicts = [
            without_verdict(judge(*found.common(0, number)), facts[0], facts[number])
            for number in range(1, len(found.programs))
        ]
        values = _measured_values(found, verdicts)
        method = next((str(one.facts["method"]) for one in found.programs if one.facts), "")
        clocks = {str(one.facts["clock"]) for one in found.programs if one.facts}
        count = max(len(one.blocks) for one in found.programs)
        note = (
            f"the fastest run of a block, over {count} blocks of warm runs side by side,"
            f" {' and '.join(sorted(clocks))}"
        )
        self._notes += _other_engines(found, self._names)
        self._summary.append(
            Delta(
                "time",
                f"latency, measured {_where(found)}",
                "ms",
                tuple(values),
                LESS,
                method,
                (None, *verdicts),
                note,
                places(self._sessions, "timeline", method),
            )
        )
        ran = [_target(program) for program in found.programs]
        self._summary += as_stock(self._sessions, method, values, ran)

    def _times(
        self,
        method: str,
        graphs: Sequence[ModelGraph | None],
        alignments: Sequence[GraphAlignment | None],
    ) -> None:
        pairs = zip(self._sessions, graphs, strict=True)
        times = [method_times(session, method, graph) for session, graph in pairs]
        self._time_notes(method, times)
        if all(each is None for each in times):
            return
        values, note = recorded_times(times)
        where = places(self._sessions, "timeline", method)
        self._summary.append(
            Delta("time", "recorded runs", "ms", values, LESS, method, note=note, places=where)
        )
        if all(each is None or each.time.bare is not None for each in times):
            self._summary += as_stock(self._sessions, method, values)
        self._operators += operator_rows(method, times)
        self._modules += module_rows(method, times, graphs)
        self._nodes += node_rows(method, times, graphs, alignments)

    def _time_notes(self, method: str, times: Sequence[MethodTimes | None]) -> None:
        for session, name, each in zip(self._sessions, self._names, times, strict=True):
            if session.times_with_values and method in timed_methods(session):
                self._notes.append(f"{name}: {NOT_COMPARED}")
            if each is None:
                continue
            whole = each.time.method_ms
            self._notes += [f"{name}, {method}: {note}" for note in each.notes]
            if whole > 0 and each.unattributed_ms > 0.05 * whole:
                share = format_share(each.unattributed_ms / whole)
                self._notes.append(f"{name}, {method}: {share} of the time is unattributed")
            if noise := each.time.headline.noise_words():
                self._notes.append(f"{name}, {method}: {noise}")
            if unit_assumed(session):
                unit = session.options.source_time_scale
                self._notes.append(f"{name}: ticks are taken for {unit} (assumed)")

    # ---- graph
    def _graph_summary(
        self, method: str, alignments: Sequence[GraphAlignment | None]
    ) -> list[Delta]:
        if all(each is None for each in alignments):
            return []
        mine = [one for one in self._owners if one.method == method]
        moved = Counter(one.session for one in mine if one.other)
        within = Counter(one.session for one in mine if not one.other)
        known = [0, *(None if each is None else 0 for each in alignments)]
        owners = [None if one is None else moved[number] for number, one in enumerate(known)]
        others = [None if one is None else within[number] for number, one in enumerate(known)]
        gone = [0, *(None if one is None else len(one.removed) for one in alignments)]
        come = [0, *(None if one is None else len(one.added) for one in alignments)]
        found: list[Delta] = []
        for what, values, view in (
            ("nodes that changed owner", owners, "partitions"),
            ("nodes in another partition", others, "partitions"),
            ("nodes removed", gone, "graph"),
            ("nodes added", come, "graph"),
        ):
            where = self._first_places(method, view)
            area = "delegation" if view == "partitions" else "graph"
            found.append(Delta(area, what, "", tuple(values), method=method, places=where))
        return found

    def _first_places(self, method: str, view: str) -> tuple[ComparePlace | None, ...]:
        """Return where the first change of each session is."""
        found: list[ComparePlace | None] = [ComparePlace(0, view, method)]
        for number in range(1, len(self._sessions)):
            mine = [one for one in self._owners if (one.session, one.method) == (number, method)]
            changed = [*(one for one in mine if one.other), *mine]
            first = changed[0] if changed and view == "partitions" else None
            found.append(
                ComparePlace(number, view, method, first.new_node if first is not None else "")
            )
        return tuple(found)


def _target(program: ProgramTimes) -> str:
    """Return the target that measured a program."""
    if program.job.device:
        return device_target(program.job.device)
    return STOCK if program.job.toolchain == EXECUTORCH else THIS


def _claiming(deltas: Sequence[Delta], unlike: frozenset[int]) -> tuple[Delta, ...]:
    """Return figures that know which sessions are not variants of the first."""
    return tuple(replace(one, unlike=unlike) for one in deltas)


def _where(found: Measurement) -> str:
    """Return where programs were measured: here, or on a device."""
    devices = {one.job.device for one in found.programs}
    return f"on {devices.pop()}" if len(devices) == 1 and all(devices) else "here"


def _measured_values(measured: Measurement, verdicts: Sequence[TimeVerdict]) -> list[float | None]:
    """Return the time of each program: others stand to the first in the ratio of their verdicts.

    A program that has no verdict has its own time.
    """
    own = [program.fastest_ms for program in measured.programs]
    first = own[0]
    found = [first]
    for value, verdict in zip(own[1:], verdicts, strict=True):
        known = first is not None and math.isfinite(verdict.ratio) and verdict.blocks > 1
        found.append(first * verdict.ratio if first is not None and known else value)
    return found


def _is_tensor(change: Change, *, gone: bool) -> bool:
    return change.area == "tensors" and (None in (change.old, change.new)) == gone


def _aligned(old: ModelGraph | None, new: ModelGraph | None) -> GraphAlignment | None:
    return None if old is None or new is None else align_graphs(old, new)


def _names(sessions: Sequence[Session]) -> tuple[str, ...]:
    """Return the shortest names that distinguish the sessions."""
    names = [session.name for session in sessions]
    if len(set(names)) == len(names):
        return tuple(names)
    folders = [
        str(Path(session.files[0].path).parent) if session.files else "" for session in sessions
    ]
    longer = [f"{name} in {folder}" for name, folder in zip(names, folders, strict=True)]
    if len(set(longer)) == len(longer):
        return tuple(longer)
    return tuple(f"{name} ({number})" for number, name in enumerate(names, 1))


def _missing(sessions: Sequence[Session], names: Sequence[str]) -> list[str]:
    """Return the parts that only one of a session and the first session has."""
    found: list[str] = []
    for what, has in (
        ("no program", [session.program is not None for session in sessions]),
        ("no ETRecord", [session.record is not None for session in sessions]),
        ("no trace: no recorded times", [bool(session.dumps) for session in sessions]),
        (
            "no debug buffer: its numbers are not compared",
            [s.debug_buffer is not None for s in sessions],
        ),
    ):
        if any(has):
            found += [
                f"{name}: {what}" for name, there in zip(names, has, strict=True) if not there
            ]
    for session, name in zip(sessions, names, strict=True):
        if session.dumps and not is_time(session.options.source_time_scale):
            found.append(f"{name}: its trace counts cycles, which are not time")
    return found


def _other_engines(measured: Measurement, names: Sequence[str]) -> list[str]:
    """Return the engines of partitions if they differ."""
    engines = [", ".join(program.engines) for program in measured.programs]
    if len({each for each in engines if each}) < 2:
        return []
    pairs = zip(names, engines, strict=True)
    return [f"{name}: partitions ran by {engine}" for name, engine in pairs if engine]
