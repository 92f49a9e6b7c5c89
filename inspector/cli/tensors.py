"""tensors: constants, planned values and logged tensors, with what their numbers look like."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from inspector.cli.answer import Answer, shown
from inspector.cli.options import add_files, methods, needs, open_files
from inspector.numerics.tensors import logged_tensors
from inspector.size.constant_names import named_tensors
from inspector.tables.tensors import (
    logged_json,
    logged_table,
    recorded_json,
    stored_json,
    stored_table,
)
from inspector.tensors.sources import RECORDED, session_tensors
from schema.errors import Issue, Severity


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the verb."""
    add_files(parser)
    parser.add_argument("--no-values", action="store_true", help="metadata only; reads no data")
    parser.add_argument("--run", type=int, default=0, help="run whose tensors; default: 0")


def run(options: Namespace) -> Answer:
    """Return stored and logged tensors."""
    session = open_files(options)
    stored = [one for method in methods(session, options) for one in named_tensors(session, method)]
    logged = logged_tensors(session, options.run)
    values = not options.no_values
    stored_rows = [stored_json(one, values) for one in stored]
    if session.program is None:  # a record or an exported program alone
        asked = methods(session, options)
        sources = [one for one in session_tensors(session) if one.origin == RECORDED]
        stored_rows += [recorded_json(one, values) for one in sources if one.method in asked]
    logged_rows = [logged_json(one, values) for one in logged]
    data = {"stored": stored_rows, "logged": logged_rows}
    issues: list[Issue] = []
    if not stored_rows and not logged:
        words = "nothing is stored in the program and nothing was logged"
        if session.record is not None and session.program is None:
            words = "no tensor of the record can be read, and nothing was logged"
        elif session.program is None:
            words = needs("tensors", "a program or a record, or an ETDump with its debug buffer")
        issues.append(Issue(Severity.INFO, session.name, words))
    tables = (
        ("stored tensors", stored_table(stored_rows)),
        ("logged tensors", logged_table(logged_rows)),
    )
    listed = [shown(table, title) for title, table in tables if table.length]
    return Answer(data, tables=listed, issues=issues)
