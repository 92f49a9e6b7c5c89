"""The memory view: values of an arena by address and step, and who makes the peak."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from devtools_app.viewmodels.canvas_data import (
    NOT_DELEGATED,
    PLAIN,
    LegendEntry,
    MemoryData,
    Swatch,
)
from devtools_app.viewmodels.colours import backend_index
from devtools_app.viewmodels.scene_search import related_to
from devtools_app.viewmodels.timeline_events import call_label
from inspector.files.session import Session
from inspector.findings.finding import plural
from inspector.graph.model_graph import short_backend
from inspector.join.index import JoinIndex
from inspector.join.value_sources import value_sources
from inspector.memory.plan import Arena, MemoryPlan, PlannedValue, analyse_memory
from inspector.tables.selection import Selection, SelectionKind
from inspector.tables.table import Table, Total, number_column, share_column, text_column
from inspector.tables.units import Quantity, choose_unit, format_bytes, format_share
from schema.program import instructions
from schema.program import model as m


@dataclass(frozen=True, slots=True, eq=False)
class MemoryMap:
    """One arena, ready to be drawn.

    Attributes:
        arena: what it is made of
        data: what the canvas draws; value n of it is value n of the arena
        legend: what colours mean
        headline: planned, peak, bound and holes in words
        issues: what is odd about the plan
    """

    arena: Arena
    data: MemoryData
    legend: tuple[LegendEntry, ...]
    headline: str
    issues: tuple[str, ...]


def memory_plan(session: Session, method: str) -> MemoryPlan | None:
    """Return the plan of a method, None without a program that has it."""
    program = session.program
    if program is None or method not in {plan.name for plan in program.plans}:
        return None
    return analyse_memory(program, method)


def arena_titles(plan: MemoryPlan, size_unit: str = "auto") -> tuple[str, ...]:
    """Return a title for each arena, as in ``1 · 1.11 MiB``."""
    return tuple(
        f"{arena.mem_id} · {format_bytes(arena.planned_bytes, size_unit)}" for arena in plan.arenas
    )


def memory_map(
    session: Session, plan: MemoryPlan, place: int, size_unit: str = "auto"
) -> MemoryMap:
    """Return one arena of a plan by its place in it."""
    arena = plan.arenas[place]
    values = arena.values
    colours = _colours(session, plan.method, values)
    step = arena.peak_instruction
    first = _column([max(value.first, 0) for value in values])  # of the unused an empty box
    last = _column([value.last for value in values])
    strong = np.zeros(len(values), np.bool_)
    if step is not None:
        strong = (first <= step) & (last >= step)
    data = MemoryData(
        names=value_names(session, plan.method, values),
        first=first,
        last=last,
        offset=_column([value.offset for value in values]),
        nbytes=_column([value.nbytes for value in values]),
        colour=colours,
        strong=strong,
        steps=max(plan.instruction_count, 1),
        planned_bytes=arena.planned_bytes,
        peak_step=step,
        peak_bytes=arena.peak_bytes,
        lower_bound_bytes=arena.lower_bound_bytes,
    )
    legend = _legend(session, plan.method, colours)
    issues = tuple(issue.message for issue in plan.issues)
    return MemoryMap(arena, data, legend, headline(plan, arena, size_unit), issues)


def value_names(session: Session, method: str, values: Sequence[PlannedValue]) -> tuple[str, ...]:
    """Return what the record calls each value, as in ``v20`` where none says."""
    known = value_sources(session, method)
    return tuple(
        known[value.value].name if value.value in known else value.name for value in values
    )


def _column(numbers: list[int]) -> NDArray[np.int64]:
    return np.array(numbers, np.int64)


def headline(plan: MemoryPlan, arena: Arena, size_unit: str = "auto") -> str:
    """Return the facts of an arena as one line."""
    holes = arena.hole_bytes / arena.planned_bytes if arena.planned_bytes else 0.0
    storages = len({value.storage for value in arena.values})
    shared = f" on {storages:,} places" if storages != len(arena.values) else ""
    parts = [
        f"{plural(len(arena.values), 'value')}{shared}",
        plural(plan.instruction_count, "instruction"),
        f"peak {format_bytes(arena.peak_bytes, size_unit)}",
        f"lower bound {format_bytes(arena.lower_bound_bytes, size_unit)}",
        f"holes {format_share(holes)}",
    ]
    return " · ".join(parts)


def _makers(session: Session, method: str) -> list[str | None]:
    """Return for each instruction the backend it calls, empty for kernels, None for control."""
    program = session.program
    if program is None:
        return []
    plan = program.plan(method)
    found: list[str | None] = []
    for _, _, instruction in instructions(plan):
        args = instruction.instr_args
        if isinstance(args, m.DelegateCall) and 0 <= args.delegate_index < len(plan.delegates):
            found.append(plan.delegates[args.delegate_index].id)
        else:
            found.append("" if isinstance(args, m.KernelCall) else None)
    return found


def _colours(session: Session, method: str, values: tuple[PlannedValue, ...]) -> NDArray[np.int64]:
    makers = _makers(session, method)
    found: list[int] = []
    for value in values:
        made = value.made_by
        backend = makers[made] if made is not None and made < len(makers) else None
        if backend is None:
            found.append(PLAIN)
        else:
            found.append(backend_index(backend) if backend else NOT_DELEGATED)
    return _column(found)


def _legend(session: Session, method: str, colours: NDArray[np.int64]) -> tuple[LegendEntry, ...]:
    used = set(colours.tolist())
    backends = dict.fromkeys(one for one in _makers(session, method) if one)
    entries = [
        LegendEntry(f"made by {short_backend(one)}", Swatch.FILL, backend_index(one))
        for one in backends
        if backend_index(one) in used
    ]
    if NOT_DELEGATED in used:
        entries.append(LegendEntry("made by a kernel", Swatch.FILL, NOT_DELEGATED))
    if PLAIN in used:
        entries.append(LegendEntry("input or state", Swatch.FILL, PLAIN))
    return tuple(entries)


def culprits(
    session: Session, method: str, arena: Arena, *, peak_only: bool, size_unit: str = "auto"
) -> Table:
    """Return the values of an arena as a table, largest first; by default those of the peak.

    Keys are Selections, so that a row can be selected.
    """
    values = arena.at_peak() if peak_only else tuple(sorted(arena.values, key=lambda v: -v.nbytes))
    sizes = [value.peak_bytes if peak_only else value.nbytes for value in values]
    unit = choose_unit(Quantity.SIZE, max(sizes, default=0), size_unit)
    peak = arena.peak_bytes
    labels = _labels(session, method)
    known = value_sources(session, method)
    places = [known[one.value].source or None if one.value in known else None for one in values]
    columns = (
        text_column("value", value_names(session, method, values), mono=True),
        number_column("size", _column(sizes), Quantity.SIZE, unit=unit, total=Total.SUM),
        text_column("made by", [_maker(value, labels) for value in values]),
        share_column("of peak" if peak_only else "against peak", _shares(sizes, peak)),
        text_column("type", [_type(value) for value in values], mono=True),
        number_column("address", [value.offset for value in values], Quantity.ADDRESS),
        number_column("first", [_step(value.first) for value in values], Quantity.COUNT),
        number_column("last", [_step(value.last) for value in values], Quantity.COUNT),
        text_column("role", [value.role for value in values]),
        text_column("shares with", _sharers(session, method, values), missing=""),
        text_column("source", places, missing=""),
        text_column("number", [value.name for value in values], mono=True),
    )
    keys = [
        Selection(SelectionKind.VALUE, method, value=value.value, instruction=value.made_by)
        for value in values
    ]
    return Table(columns, len(values), keys, noun="values")


def _step(step: int) -> int | None:
    return step if step >= 0 else None


def _maker(value: PlannedValue, labels: Sequence[str]) -> str:
    made = value.made_by
    if made is None or made >= len(labels):
        return f"not written: {value.role}"
    return f"{labels[made]} · {made}"


def _labels(session: Session, method: str) -> list[str]:
    """Return what each instruction calls."""
    program = session.program
    if program is None:
        return []
    plan = program.plan(method)
    return [call_label(plan, step.instr_args) for _, _, step in instructions(plan)]


def _shares(sizes: list[int], peak: int) -> list[float | None]:
    return [nbytes / peak if peak else None for nbytes in sizes]


def _sharers(session: Session, method: str, values: Sequence[PlannedValue]) -> list[str | None]:
    """Return whom each value shares its bytes with at the peak."""
    known = value_sources(session, method)
    return [
        ", ".join(known[one].name if one in known else f"v{one}" for one in value.shares_with)
        or None
        for value in values
    ]


def _type(value: PlannedValue) -> str:
    return f"{value.scalar_type} [{', '.join(map(str, value.sizes))}]"


def selected_values(arena: Arena, selection: Selection, index: JoinIndex) -> tuple[int, ...]:
    """Return the places in the arena of what belongs to the selection, made values before read."""
    related = related_to(selection, index)
    if not related.values and not related.reads:
        return ()
    by_value = {value.value: place for place, value in enumerate(arena.values)}
    wanted = related.values if any(v in by_value for v in related.values) else related.reads
    return tuple(by_value[value] for value in wanted if value in by_value)
