"""bundle: a bundled program of a program, inputs and expected outputs."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from inspector.cli.answer import USAGE, Answer, CommandError, shown
from inspector.cli.job_runs import add_libraries, add_timeout, check_there, finished, refused
from inspector.cli.options import FORMATS
from inspector.cli.output import refuse_inputs
from inspector.cli.progress import Progress
from inspector.jobs.executing import MADE_INPUTS, BundleJob
from inspector.jobs.output_folder import FolderError
from inspector.jobs.run import JobRun
from inspector.recipes.source import SourceError, SourceKind, parse_source
from inspector.tables.runs import bundled_table
from schema.errors import Issue, Severity
from schema.objects.plural import plural

_MODULES = (".py", ".pt2")


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="a .pte file; or file.py:function or a .pt2 file, compiled for portable kernels",
    )
    parser.add_argument(
        "-o", "--output", dest="target", metavar="MODEL.bpte", help="the file to write; required"
    )
    parser.add_argument("--method", metavar="NAME", default="", help="default: forward")
    parser.add_argument(
        "--inputs",
        action="append",
        default=[],
        metavar="FILE.pt|random|ones|zeros",
        help="inputs of one case, or a file with a list of cases; may be repeated; default: the"
        " example inputs of the module",
    )
    parser.add_argument(
        "--expected",
        action="append",
        default=[],
        metavar="FILE.pt",
        help="outputs of the cases of one --inputs, in order; default: computed by the module",
    )
    parser.add_argument(
        "--module",
        metavar="SOURCE",
        default="",
        help="file.py:function or a .pt2 file: the PyTorch module of the program",
    )
    add_libraries(parser)
    add_timeout(parser)
    parser.add_argument("--format", choices=FORMATS, default="text", help="default: text")
    parser.add_argument("--force", action="store_true", help="replace a file that exists")
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="show the traceback of an error"
    )
    parser.set_defaults(output=None)


def run(options: Namespace) -> Answer:
    """Create the file in a worker process; the file is replaced atomically."""
    job = BundleJob(
        options.source,
        options.module,
        options.method,
        tuple(options.inputs),
        tuple(options.expected),
        tuple(options.libraries),
    )
    code = _check(job)
    options.inputs = [job.source]
    if options.target is None:
        raise CommandError("-o MODEL.bpte is missing: it names the file", USAGE)
    refuse_inputs(Path(options.target), options.inputs)
    try:
        running = JobRun(job, Path(options.target), force=options.force, timeout=options.timeout)
    except FolderError as error:
        raise refused(error) from error
    progress = Progress(sys.stderr, code, verbose=options.verbose)
    outcome = finished(running, progress, verbose=options.verbose)
    issues = [
        Issue(Severity.WARNING, one.file or job.source, one.text) for one in progress.warnings
    ]
    return _answer(outcome.result, issues)


def _check(job: BundleJob) -> str:
    """Check that files exist before starting; return the Python files to be executed.

    Raises: OSError, CommandError
    """
    runs = ""
    for text in (job.source, job.module):
        if not text:
            continue
        path = text
        if text == job.module or ".py:" in text or text.endswith(_MODULES):
            try:
                source = parse_source(text)
            except SourceError as error:
                raise CommandError(str(error), USAGE) from error
            path = source.path
            runs = runs or (path if source.kind is SourceKind.PYTHON else "")
        check_there(path)
    for path in (*job.inputs, *job.expected, *job.libraries):
        if path not in MADE_INPUTS:
            check_there(path)
    return runs


def _answer(report: Mapping[str, Any], issues: list[Issue]) -> Answer:
    cases = report["cases"]
    line = f"{report['file']}: {plural(len(cases), 'case')}, {report['bytes']:,} bytes"
    return Answer(report, lines=[line], tables=(shown(bundled_table(cases)),), issues=issues)
