"""trace: runs as a Chrome or Perfetto trace."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from inspector.cli.answer import Answer
from inspector.cli.options import add_files, needs, open_files
from inspector.cli.output import to_json
from inspector.trace_export import chrome_trace
from schema.errors import Issue, Severity


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the verb."""
    add_files(parser)


def run(options: Namespace) -> Answer:
    """Return the trace; as text it is the trace file itself."""
    session = open_files(options)
    trace = chrome_trace(session)
    issues: list[Issue] = []
    if not session.dumps:
        words = needs("a trace", "an ETDump (run.etdp)")
        issues.append(Issue(Severity.INFO, session.name, words))
    return Answer({"trace": trace}, issues=issues, document=to_json(trace) + "\n")
