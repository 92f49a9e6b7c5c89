"""report: the whole session as one self-contained HTML file."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from inspector.cli.answer import Answer, Column, Table
from inspector.cli.options import add_files, methods, open_files
from inspector.render.report import make_report


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the verb."""
    add_files(parser)


def run(options: Namespace) -> Answer:
    """Return the document; as JSON, TSV or CSV what is in it."""
    session = open_files(options)
    report = make_report(session, methods(session, options))
    data = {
        "bytes": len(report.html.encode()),
        "sections": list(report.sections),
        "left_out": list(report.left_out),
    }
    rows = [(title, "yes") for title in report.sections]
    rows += [(title, "no") for title in report.left_out]
    table = Table("", (Column("section"), Column("in the report")), rows)
    return Answer(data, tables=(table,), document=(report.html,))
