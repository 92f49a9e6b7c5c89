"""verify: the cases of a bundled program on our own runtime, compared with expected outputs."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from typing import Any

from inspector.cli.answer import FINE, JUDGED, Answer, shown
from inspector.cli.job_runs import (
    add_backend_options,
    add_program_data,
    add_timeout,
    check_record,
    check_there,
    engine_lines,
    finished,
    not_negative,
)
from inspector.cli.options import add_output
from inspector.cli.progress import Progress
from inspector.jobs.executing import ATOL, RTOL, VerifyJob
from inspector.jobs.run import JobRun
from inspector.tables.runs import cases_table
from schema.errors import Issue, Severity


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("program", metavar="MODEL.bpte", help="a bundled program")
    parser.add_argument("--method", metavar="NAME", default="", help="only cases of this method")
    for name, default in (("rtol", RTOL), ("atol", ATOL)):
        what = "relative" if name == "rtol" else "absolute"
        parser.add_argument(
            f"--{name}",
            type=not_negative,
            default=default,
            metavar="X",
            help=f"{what} tolerance; default: {default:g}",
        )
    parser.add_argument(
        "--record",
        metavar="MODEL.etrecord",
        default="",
        help="the record of the program; its graphs run delegates of backends that are not here",
    )
    add_program_data(parser)
    add_backend_options(parser)
    add_timeout(parser)
    add_output(parser)


def run(options: Namespace) -> Answer:
    """Run all cases in a worker process; exit code 1 when one of them fails."""
    options.inputs = [path for path in (options.program, options.record) if path]
    for path in (*options.inputs, *options.ptd, *options.libraries):
        check_there(path)
    check_record(options.program, options.record)
    job = VerifyJob(
        options.program,
        options.method,
        options.rtol,
        options.atol,
        options.record,
        tuple(options.ptd),
        tuple(options.libraries),
        options.threads,
        options.engine,
        tuple(options.backend_options),
    )
    running = JobRun(job, timeout=options.timeout)
    progress = Progress(sys.stderr, ", ".join(job.libraries), verbose=options.verbose)
    return _answer(finished(running, progress, verbose=options.verbose).result)


def _answer(report: Mapping[str, Any]) -> Answer:
    issues = [
        Issue(Severity.ERROR, f"{case['method']} case {case['case']}", case["error"])
        for case in report["cases"]
        if case["error"]
    ]
    return Answer(
        report,
        lines=[_sentence(report), *engine_lines(report["cases"][0]["partitions"])],
        tables=(shown(cases_table(report)),),
        issues=issues,
        code=JUDGED if report["failed"] else FINE,
    )


def _sentence(report: Mapping[str, Any]) -> str:
    total = len(report["cases"])
    words = f"{report['passed']:,} of {total:,} cases passed"
    if report["failed"]:
        words += f", {report['failed']:,} failed"
    if report["not_compared"]:
        words += f", {report['not_compared']:,} without expected outputs"
    return f"{words} (rtol {report['rtol']:g}, atol {report['atol']:g})."
