"""report: the whole session as one self-contained HTML file."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from inspector.cli.answer import Answer, shown
from inspector.cli.options import add_files, methods, open_files
from inspector.render.report import make_report
from inspector.tables.written import section_table


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the verb."""
    add_files(parser)


def run(options: Namespace) -> Answer:
    """Return the document; for JSON, TSV or CSV its data."""
    session = open_files(options)
    report = make_report(session, methods(session, options))
    data = {
        "bytes": len(report.html.encode()),
        "sections": list(report.sections),
        "left_out": list(report.left_out),
    }
    table = shown(section_table(report.sections, report.left_out))
    return Answer(data, tables=(table,), document=(report.html,))
