"""trace: runs as a Chrome or Perfetto trace."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from inspector.cli.answer import USAGE, Answer, CommandError, shown
from inspector.cli.options import add_files, methods, needs, open_files
from inspector.cli.time_range import add_range, time_span
from inspector.export.chrome_trace import chrome_trace, trace_lines
from inspector.files.session import Session
from inspector.profile.time_range import RangeError, TimeRange, run_ranges
from inspector.profile.timeline_runs import RunRange, timeline_runs
from inspector.tables.chrome_trace import trace_events
from schema.errors import Issue, Severity


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the verb."""
    add_files(parser)
    add_range(parser)


def run(options: Namespace) -> Answer:
    """Return the trace; as text it is the trace file itself."""
    session = open_files(options)
    span = time_span(options)
    trace = chrome_trace(session, None if span is None else _ranges(session, options, span))
    issues: list[Issue] = []
    if not session.timed_dumps:
        words = needs("a trace", "an ETDump (run.etdp)")
        issues.append(Issue(Severity.INFO, session.name, words))
    return Answer(
        trace, tables=(shown(trace_events(trace)),), issues=issues, document=trace_lines(trace)
    )


def _ranges(session: Session, options: Namespace, span: TimeRange) -> tuple[RunRange, ...]:
    """Return the runs of a range.

    Raises: CommandError where it is of none
    """
    try:
        known = methods(session, options)
        ran = [name for name in known if any(one.executes for one in timeline_runs(session, name))]
        if len(ran) > 1:
            names = ", ".join(ran)
            raise CommandError(f"a range is of one method: --method names one of {names}", USAGE)
        return run_ranges(session, next(iter(ran or known), ""), span)
    except RangeError as error:
        raise CommandError(str(error), USAGE) from error
