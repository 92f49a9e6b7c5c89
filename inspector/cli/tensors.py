"""tensors: constants, planned values and logged tensors, with what their numbers look like."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from inspector.cli.answer import Answer, Column, Table
from inspector.cli.options import add_files, methods, needs, open_files
from inspector.numerics.tensors import LoggedTensor, StoredTensor, logged_tensors, stored_tensors
from schema.errors import Issue, Severity


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the verb."""
    add_files(parser)
    parser.add_argument("--no-values", action="store_true", help="metadata only; reads no data")
    parser.add_argument("--run", type=int, default=0, help="run whose tensors; default: 0")


def run(options: Namespace) -> Answer:
    """Return stored and logged tensors."""
    session = open_files(options)
    stored = [
        one for method in methods(session, options) for one in stored_tensors(session, method)
    ]
    logged = logged_tensors(session, options.run)
    values = not options.no_values
    stored_rows = [_stored(one, values) for one in stored]
    logged_rows = [_logged(one, values) for one in logged]
    data = {"stored": stored_rows, "logged": logged_rows}
    issues: list[Issue] = []
    if not stored and not logged:
        words = "nothing is stored in the program and nothing was logged"
        if session.program is None:
            words = needs("tensors", "a program, or an ETDump with its debug buffer")
        issues.append(Issue(Severity.INFO, session.name, words))
    tables = (
        _table("stored tensors", stored_rows, "name"),
        _table("logged tensors", logged_rows, "event"),
    )
    return Answer(data, tables=[table for table in tables if table.rows], issues=issues)


def _stored(one: StoredTensor, values: bool) -> dict[str, Any]:
    return {
        "name": one.name,
        "method": one.method,
        "value": one.value,
        "role": one.role,
        "dtype": one.dtype,
        "sizes": list(one.sizes),
        "dim_order": list(one.dim_order),
        "bytes": one.nbytes,
        "missing": one.missing or None,
        "statistics": one.statistics() if values else None,
    }


def _logged(one: LoggedTensor, values: bool) -> dict[str, Any]:
    return {
        "event": one.event,
        "instruction_id": one.instruction,
        "position": one.position,
        "output": one.is_output,
        "dtype": one.dtype,
        "sizes": list(one.sizes),
        "bytes": one.nbytes,
        "missing": one.missing or None,
        "statistics": one.statistics() if values else None,
    }


def _table(title: str, rows: list[dict[str, Any]], name: str) -> Table:
    columns = (
        Column(name),
        Column("dtype", spare=1),
        Column("shape"),
        Column("bytes", "bytes"),
        Column("min", "number"),
        Column("mean", "number", spare=3),
        Column("max", "number"),
        Column("nan", "count", spare=2),
        Column("inf", "count", spare=2),
        Column("note"),
    )
    cells: list[tuple[Any, ...]] = []
    for row in rows:
        facts: dict[str, Any] = row["statistics"] or {}
        numbers = (facts.get(key) for key in ("min", "mean", "max", "nan", "inf"))
        note = row["missing"] or row.get("role") or ("program output" if row.get("output") else "")
        label = str(row[name])
        if name == "event" and row["instruction_id"] is not None:
            label = f"{row['instruction_id']} {label} [{row['position']}]"
        cells.append((label, row["dtype"], str(row["sizes"]), row["bytes"], *numbers, note))
    return Table(title, columns, cells)
