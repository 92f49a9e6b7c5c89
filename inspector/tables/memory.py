"""Values of a planned buffer: size, the instruction that makes them, lifetime, shared bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from inspector.files.session import Session
from inspector.graph.instruction_names import call_label
from inspector.memory.measured import PHASES, MeasuredMemory, measured_as, measured_memory
from inspector.memory.plan import Arena, MemoryPlan, PlannedValue, analyse_memory
from inspector.numerics.value_sources import value_sources
from inspector.tables.query import QueryError
from inspector.tables.rows import RowField, row_table
from inspector.tables.selection import Selection, SelectionKind, Units
from inspector.tables.table import Column, Table, Total, number_column, share_column, text_column
from inspector.units import Quantity, choose_unit
from schema.program import instructions


def memory_plan(session: Session, method: str) -> MemoryPlan | None:
    """Return the plan of a method, None if no program has it."""
    program = session.program
    if program is None or method not in {plan.name for plan in program.plans}:
        return None
    return analyse_memory(program, method)


def value_names(session: Session, method: str, values: Sequence[PlannedValue]) -> tuple[str, ...]:
    """Return the recorded name of each value, or ``v20`` if not recorded."""
    known = value_sources(session, method)
    return tuple(
        known[value.value].name if value.value in known else value.name for value in values
    )


def culprits(
    session: Session, method: str, arena: Arena, *, peak_only: bool, size_unit: str = "auto"
) -> Table:
    """Return the values of an arena as a table, largest first; by default those of the peak.

    Keys are Selections, so that a row can be selected.
    """
    values = arena.at_peak() if peak_only else tuple(sorted(arena.values, key=lambda v: -v.nbytes))
    sizes = [value.peak_bytes if peak_only else value.nbytes for value in values]
    title = "of peak" if peak_only else "against peak"
    shares = share_column(title, _shares(sizes, [arena.peak_bytes] * len(sizes)))
    return _table(session, method, values, sizes, (shares,), size_unit)


def planned_values(session: Session, method: str, units: Units) -> Table:
    """Return the values of all planned buffers of a method, largest first.

    The peak is that of the buffer a value is in. Keys are Selections.

    Raises: QueryError without a program
    """
    plan = memory_plan(session, method)
    if plan is None:
        raise QueryError("the memory plan needs a program")
    placed = [(value, arena) for arena in plan.arenas for value in arena.values]
    placed.sort(key=lambda pair: -pair[0].nbytes)
    values = [value for value, _ in placed]
    sizes = [value.nbytes for value in values]
    at_peak = [value.peak_bytes for value in values]
    more = (
        share_column("of peak", _shares(at_peak, [arena.peak_bytes for _, arena in placed])),
        number_column("buffer", [arena.mem_id for _, arena in placed], Quantity.COUNT),
    )
    return _table(session, method, values, sizes, more, units.size)


_UNMEASURED = "etscope run measures it, and writes run.json beside the trace"


def measured(session: Session, method: str, units: Units) -> Table:
    """Return the resident memory of each phase of the run of a method, as increase."""
    found = measured_memory(session, method) or tuple(
        MeasuredMemory(phase, "", None, _UNMEASURED) for phase in PHASES.values()
    )
    cells = [(one.phase, one.part or None, one.nbytes, one.note) for one in found]
    fields = (
        RowField("phase"),
        RowField("part", missing="all"),
        RowField(measured_as(found), Quantity.SIZE),
        RowField("note"),
    )
    return row_table(fields, cells, "phases", units=units)


def _table(
    session: Session,
    method: str,
    values: Sequence[PlannedValue],
    sizes: Sequence[int],
    more: tuple[Column, ...],
    size_unit: str,
) -> Table:
    unit = choose_unit(Quantity.SIZE, max(sizes, default=0), size_unit)
    labels = _labels(session, method)
    known = value_sources(session, method)
    places = [known[one.value].source or None if one.value in known else None for one in values]
    columns = (
        text_column("value", value_names(session, method, values), mono=True),
        number_column("size", sizes, Quantity.SIZE, unit=unit, total=Total.SUM),
        replace(
            text_column("producer", [_maker(value, labels) for value in values]), key="made_by"
        ),
        *more,
        number_column(
            "instruction", [value.made_by for value in values], Quantity.COUNT, missing=""
        ),
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
    built = value.made_by
    if built is None or built >= len(labels):
        return f"not written: {value.role}"
    return labels[built]


def _labels(session: Session, method: str) -> list[str]:
    """Return the callee of each instruction."""
    program = session.program
    if program is None:
        return []
    plan = program.plan(method)
    return [call_label(plan, step.instr_args) for _, _, step in instructions(plan)]


def _shares(sizes: Sequence[int], peaks: Sequence[int]) -> list[float | None]:
    return [n / peak if peak else None for n, peak in zip(sizes, peaks, strict=True)]


def _sharers(session: Session, method: str, values: Sequence[PlannedValue]) -> list[str | None]:
    """Return the values that share bytes with each value at the peak."""
    known = value_sources(session, method)
    return [
        ", ".join(known[one].name if one in known else f"v{one}" for one in value.shares_with)
        or None
        for value in values
    ]


def _type(value: PlannedValue) -> str:
    return f"{value.scalar_type} [{', '.join(map(str, value.sizes))}]"
