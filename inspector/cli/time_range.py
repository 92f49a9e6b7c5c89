"""Options that limit a verb to a range of time."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from inspector.cli.answer import USAGE, CommandError
from inspector.profile.time_range import RangeError, TimeRange, range_from


def add_range(parser: ArgumentParser) -> None:
    """Add the options of a range of time."""
    parser.add_argument(
        "--from",
        dest="range_start",
        default="",
        metavar="TIME",
        help="start of a range of time since the start of its run, as in 12.5us (default unit: ns)",
    )
    parser.add_argument("--to", dest="range_end", default="", metavar="TIME", help="its end")
    parser.add_argument(
        "--run",
        dest="range_run",
        default="",
        metavar="RUN",
        help="number of the run; all: the range of each run; clock: times since the first event of"
        " the trace; default: the run nearest to the median",
    )


def time_span(options: Namespace) -> TimeRange | None:
    """Return the range of the options, None without one.

    Raises: CommandError
    """
    try:
        return range_from(options.range_start, options.range_end, options.range_run)
    except RangeError as error:
        raise CommandError(str(error), USAGE) from error
