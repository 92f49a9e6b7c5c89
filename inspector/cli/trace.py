"""trace: runs as a Chrome or Perfetto trace."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from typing import Any

from inspector.cli.answer import Answer, shown
from inspector.cli.options import add_files, needs, open_files
from inspector.cli.output import plain
from inspector.export.chrome_trace import chrome_trace
from inspector.tables.chrome_trace import trace_events
from schema.errors import Issue, Severity


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the verb."""
    add_files(parser)


def run(options: Namespace) -> Answer:
    """Return the trace; as text it is the trace file itself."""
    session = open_files(options)
    trace = chrome_trace(session)
    issues: list[Issue] = []
    if not session.timed_dumps:
        words = needs("a trace", "an ETDump (run.etdp)")
        issues.append(Issue(Severity.INFO, session.name, words))
    return Answer(
        trace, tables=(shown(trace_events(trace)),), issues=issues, document=_document(trace)
    )


def _document(trace: dict[str, Any]) -> Iterator[str]:
    """Yield the file, one event per line."""
    yield '{"traceEvents": ['
    for number, event in enumerate(trace["traceEvents"]):
        yield f"{',' if number else ''}\n{_line(event)}"
    rest = _line({key: value for key, value in trace.items() if key != "traceEvents"})
    yield f"\n], {rest[1:]}\n"


def _line(value: object) -> str:
    return json.dumps(plain(value), ensure_ascii=False, allow_nan=False)
