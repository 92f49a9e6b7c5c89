"""table: any table of the window by name, filtered, sorted and grouped as in the window."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

from inspector.cli.answer import USAGE, Answer, CommandError, Shown
from inspector.cli.options import add_output, add_reading, open_files
from inspector.cli.time_range import add_range, time_span
from inspector.files.session import Session
from inspector.files.session_groups import split_sessions
from inspector.render.values import json_value
from inspector.tables.filter import FilterError
from inspector.tables.query import Query, QueryError, Selected, column_names, select
from inspector.tables.registry import TABLES, TableEntry, TableSubject, build, entry_named
from inspector.tables.time_tags import tag_line, time_tags


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("name", metavar="NAME", help=f"available: {', '.join(TABLES)}")
    parser.add_argument("files", nargs="+", metavar="FILE", help="files or folders, any mix")
    add_reading(parser)
    parser.add_argument(
        "--filter",
        default="",
        metavar="TEXT",
        help="words, /a regular expression/ or comparisons as mean>0.1ms; as in the window",
    )
    parser.add_argument(
        "--sort",
        default="",
        metavar="COLUMN[:desc],…",
        help="columns to sort by; the order of the analysis without it",
    )
    parser.add_argument("--group-by", default="", metavar="COLUMN", help="a text column")
    parser.add_argument("--columns", default="", metavar="COLUMN,…", help="only these")
    parser.add_argument("--top", type=int, metavar="N", help="largest number of rows")
    parser.add_argument(
        "--of",
        default="",
        metavar="WHAT",
        help="; ".join(f"{one.name}: {one.of}" for one in TABLES.values() if one.of),
    )
    add_range(parser)
    add_output(parser)


def run(options: Namespace) -> Answer:
    """Return the table, one for each method where it is of a method.

    Raises: CommandError for an unknown table, column or range, or files without the table's data
    """
    if options.top is not None and options.top < 0:
        raise CommandError(f"invalid --top {options.top}: expected 0 or more", USAGE)
    query = Query(
        options.filter,
        column_names(options.sort),
        options.group_by,
        column_names(options.columns),
        options.top,
    )
    span = time_span(options)
    try:
        entry = entry_named(options.name)
        subject = _subject(entry, options)
        shown: list[tuple[str, Selected]] = []
        refused: list[QueryError] = []
        for method in _methods(entry, subject, options):
            try:
                found = build(entry.name, subject, method, span=span, of=options.of)
                shown.append((method, select(found, query)))
            except QueryError as error:  # a method that returns a constant has no instructions
                refused.append(error)
        if not shown:
            raise refused[0]
    except (QueryError, FilterError) as error:
        raise CommandError(str(error), USAGE) from error
    several = len(shown) > 1
    if several and options.format in ("tsv", "csv"):
        known = ", ".join(method for method, _ in shown)
        raise CommandError(f"a table for each method: --method names one of {known}", USAGE)
    sessions = () if isinstance(subject, Path) else subject
    tags = time_tags(sessions, [found.table for _, found in shown])
    data = {
        "name": entry.name,
        "tables": [{"method": method or None, **json_value(found)} for method, found in shown],
        "tags": list(tags),
    }
    titles = [f"{entry.name}, method {method}" if several else "" for method, _ in shown]
    tables = [Shown(title, found) for title, (_, found) in zip(titles, shown, strict=True)]
    return Answer(data, [tag_line(tags)] if tags else (), tables)


def _subject(entry: TableEntry, options: Namespace) -> Sequence[Session] | Path:
    if entry.subject is TableSubject.FOLDER:
        if len(options.files) != 1:
            raise CommandError(f"table {entry.name!r} expects one folder", USAGE)
        options.inputs = [*getattr(options, "inputs", ()), *options.files]
        return Path(options.files[0])
    if entry.subject is not TableSubject.SESSIONS:
        return (open_files(options),)
    return [open_files(options, paths, strict=True) for paths in split_sessions(options.files)]


def _methods(
    entry: TableEntry, subject: Sequence[Session] | Path, options: Namespace
) -> tuple[str, ...]:
    if isinstance(subject, Path) or entry.subject is not TableSubject.METHOD or options.method:
        return (options.method or "",)
    return subject[0].methods or ("",)
