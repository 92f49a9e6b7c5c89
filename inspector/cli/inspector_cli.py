"""inspector-cli: the stock tool's table, with the stock tool's own options."""

from __future__ import annotations

import io
import warnings
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from inspector.cli.answer import USAGE, Answer, CommandError
from inspector.cli.options import add_output
from inspector.cli.output import write_text
from inspector.cli.text import printable
from inspector.units import TICK_UNITS
from schema.errors import Issue, Severity


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the stock command."""
    parser.add_argument("--etdump_path", required=True, metavar="FILE", help="the trace")
    parser.add_argument("--etrecord_path", metavar="FILE", help="names the operators")
    parser.add_argument("--debug_buffer_path", metavar="FILE", help="logged tensors")
    parser.add_argument(
        "--source_time_scale",
        choices=TICK_UNITS,
        default="ns",
        help="unit of its ticks; default: ns",
    )
    parser.add_argument(
        "--target_time_scale", choices=TICK_UNITS, default="ms", help="unit shown; default: ms"
    )
    parser.add_argument("--tsv_path", metavar="FILE", help="also write the table here as TSV")
    parser.add_argument(
        "--compare_results", action="store_true", help="compare outputs with the recorded ones"
    )
    add_output(parser)


def run(options: Namespace) -> Answer:
    """Print the table of events as the documented command does."""
    import inspector as api

    if (options.source_time_scale == "cycles") != (options.target_time_scale == "cycles"):
        raise CommandError("cycles must be both the source and the target time scale", USAGE)
    paths = (options.etdump_path, options.etrecord_path, options.debug_buffer_path)
    options.inputs = [path for path in paths if path]
    for path in options.inputs:
        with Path(path).open("rb"):  # a missing file is named before anything is decoded
            pass
    scale: Any = api.TimeScale
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found: Any = api.Inspector(
            etdump_path=options.etdump_path,
            etrecord=options.etrecord_path,
            debug_buffer_path=options.debug_buffer_path,
            source_time_scale=scale(options.source_time_scale),
            target_time_scale=scale(options.target_time_scale),
        )
    where = options.etdump_path
    issues = [Issue(Severity.WARNING, where, str(one.message)) for one in caught]
    text = io.StringIO()
    found.print_data_tabular(text)
    if options.tsv_path:
        tsv = io.StringIO()
        found.save_data_to_tsv(tsv)
        write_text(Path(options.tsv_path), [tsv.getvalue()], force=options.force)
    shown = "".join(f"{printable(line)}\n" for line in text.getvalue().split("\n")[:-1])
    data: dict[str, Any] = {"blocks": len(found.event_blocks)}
    if options.compare_results:
        data["comparison"] = [_compare(api, block) for block in found.event_blocks]
    return Answer(data, issues=issues, document=[shown])


def _compare(api: Any, block: Any) -> dict[str, Any] | None:  # noqa: ANN401 - the lazy API
    if not block.reference_output or not block.run_output:
        return None
    return dict(
        api.compare_results(
            reference_output=block.reference_output, run_output=block.run_output, plot=False
        )
    )
