"""The memory view: values of a planned buffer by address and instruction, and the peak."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from devtools_app.appearance.colours import NOT_DELEGATED, PLAIN, backend_index
from devtools_app.viewmodels.canvas_data import LegendEntry, MemoryData, Swatch
from devtools_app.viewmodels.scene_search import related_to
from inspector.files.session import Session
from inspector.join.int_maps import GroupMap, places_of
from inspector.memory.measured import INCREASE, PHASES, STEADY, measured_memory
from inspector.memory.plan import Arena, MemoryPlan, PlannedValue
from inspector.profile.join_index import JoinIndex
from inspector.tables.memory import value_names
from inspector.tables.selection import Selection
from inspector.units import format_bytes, format_share
from schema.backends import short_backend
from schema.objects.plural import plural
from schema.program import instructions
from schema.program import model as m


@dataclass(frozen=True, slots=True, eq=False)
class MemoryMap:
    """One planned buffer with its drawing data.

    Attributes:
        arena: the planned buffer
        data: content of the canvas; value n of it is value n of the buffer
        legend: meaning of the colours
        headline: planned, peak, bound and unused part in words
        issues: issues of the plan
        places: index of each value of the program
    """

    arena: Arena
    data: MemoryData
    legend: tuple[LegendEntry, ...]
    headline: str
    issues: tuple[str, ...]
    places: GroupMap


def arena_titles(plan: MemoryPlan, size_unit: str = "auto") -> tuple[str, ...]:
    """Return a title for each planned buffer, as in ``1 · 1.11 MiB``."""
    return tuple(
        f"{arena.mem_id} · {format_bytes(arena.planned_bytes, size_unit)}" for arena in plan.arenas
    )


def memory_map(
    session: Session, plan: MemoryPlan, place: int, size_unit: str = "auto", *, planner: str = ""
) -> MemoryMap:
    """Return one planned buffer by its index.

    Args:
        session: the session
        plan: of the file, or by another planner
        place: index of the buffer
        size_unit: of sizes
        planner: name shown beside the planned size
    """
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
        planner=planner,
    )
    legend = _legend(session, plan.method, colours)
    issues = tuple(issue.message for issue in plan.issues)
    places = places_of(value.value for value in values)
    words = headline(plan, arena, size_unit)
    return MemoryMap(arena, data, legend, words, issues, places)


def on_one_scale(one: MemoryMap, other: MemoryMap) -> tuple[MemoryMap, MemoryMap]:
    """Return two plans that are drawn beside each other, with the same scale of addresses."""
    size = max(one.data.planned_bytes, other.data.planned_bytes)
    first, second = (
        replace(each, data=replace(each.data, scale_bytes=size)) for each in (one, other)
    )
    return first, second


def _column(numbers: list[int]) -> NDArray[np.int64]:
    return np.array(numbers, np.int64)


def headline(plan: MemoryPlan, arena: Arena, size_unit: str = "auto") -> str:
    """Return the facts of a planned buffer as one line."""
    unused = arena.hole_bytes / arena.planned_bytes if arena.planned_bytes else 0.0
    storages = len({value.storage for value in arena.values})
    shared = f" on {storages:,} places" if storages != len(arena.values) else ""
    parts = [
        f"{plural(len(arena.values), 'value')}{shared}",
        plural(plan.instruction_count, "instruction"),
        f"peak {format_bytes(arena.peak_bytes, size_unit)}",
        f"lower bound {format_bytes(arena.lower_bound_bytes, size_unit)}",
        f"unused at the peak {format_share(unused)}",
    ]
    return " · ".join(parts)


def measured_words(session: Session, method: str, size_unit: str = "auto") -> str:
    """Return what a steady run took of memory, empty where it was not measured."""
    steady = (one for one in measured_memory(session, method) if one.phase == PHASES[STEADY])
    whole = next((one.nbytes for one in steady if not one.part), None)
    return "" if whole is None else f"measured {format_bytes(whole, size_unit)}, {INCREASE}"


def _makers(session: Session, method: str) -> list[str | None]:
    """Return the backend that each instruction calls, empty for kernels, None for others."""
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
        result = value.made_by
        backend = makers[result] if result is not None and result < len(makers) else None
        if backend is None:
            found.append(PLAIN)
        else:
            found.append(backend_index(backend) if backend else NOT_DELEGATED)
    return _column(found)


def _legend(session: Session, method: str, colours: NDArray[np.int64]) -> tuple[LegendEntry, ...]:
    used = set(colours.tolist())
    backends = dict.fromkeys(one for one in _makers(session, method) if one)
    entries = [
        LegendEntry(f"written by {short_backend(one)}", Swatch.FILL, backend_index(one))
        for one in backends
        if backend_index(one) in used
    ]
    if NOT_DELEGATED in used:
        entries.append(LegendEntry("written by a kernel", Swatch.FILL, NOT_DELEGATED))
    if PLAIN in used:
        entries.append(LegendEntry("input or state", Swatch.FILL, PLAIN))
    return tuple(entries)


def selected_values(shown: MemoryMap, selection: Selection, index: JoinIndex) -> tuple[int, ...]:
    """Return the indices of the values related to the selection, written before read."""
    related = related_to(selection, index)
    written = any(value in shown.places for value in related.values)
    requested = related.values if written else related.reads
    return tuple(shown.places[value][0] for value in requested if value in shown.places)
