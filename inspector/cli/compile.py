"""compile: a program file and an ETRecord from a function, a .pt2 file or another ETRecord."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from inspector.cli.answer import USAGE, Answer, Column, CommandError, Table
from inspector.cli.job_runs import add_timeout, check_there, count, finished, refused
from inspector.cli.options import add_folder_output
from inspector.cli.progress import Progress
from inspector.cli.quantising import add_quantising, check_quantising, quantising
from inspector.cli.recipes import known_recipe, merged
from inspector.jobs.description import (
    GRANULARITIES,
    REPORT,
    CompileJob,
    Rules,
    Source,
    SourceError,
    SourceKind,
    parse_source,
)
from inspector.jobs.output_folder import FolderError
from inspector.jobs.recipe_script import python_script
from inspector.jobs.run import CompileRun
from schema.errors import Issue, Severity

_NAMES = {
    "op": "operator; a pattern such as 'aten.conv*' is possible, may be repeated",
    "node": "node; likewise",
    "module": "module, by path or class; likewise",
}


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument(
        "source",
        nargs="?",
        metavar="SOURCE",
        help="file.py:function, a .pt2 file, or an ETRecord; that of the recipe by default",
    )
    parser.add_argument(
        "--recipe",
        metavar="FILE",
        help="compile as this recipe.json or ETRecord says; other options replace its own",
    )
    parser.add_argument(
        "--as-python", action="store_true", help="print a script that compiles the same instead"
    )
    add_folder_output(
        parser, "folder for model.pte, model.etrecord, recipe.json and compile.json; required"
    )
    _add_source(parser)
    _add_delegation(parser)
    add_quantising(parser)
    parser.add_argument(
        "--memory-planner", metavar="NAME", default="", help="default: the smallest of all plans"
    )
    parser.add_argument(
        "--external-constants", action="store_true", help="constants into a .ptd beside the .pte"
    )
    add_timeout(parser)


def _add_source(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--python", metavar="PATH", default="", help="interpreter that runs the function"
    )
    parser.add_argument(
        "--method", action="append", default=[], metavar="NAME", help="only this; may be repeated"
    )


def _add_delegation(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--partitioner",
        action="append",
        default=[],
        metavar="NAME[:OPTION=VALUE…]",
        help="alias, class name or file.py:Class; may be repeated, first choice first;"
        " without one nothing is delegated",
    )
    for name, what in _NAMES.items():
        deny, allow = (
            f"no partitioner may take this {what}",
            f"partitioners may take only this {what}",
        )
        for way, words in (("deny", deny), ("allow", allow)):
            parser.add_argument(
                f"--{way}-{name}", action="append", default=[], metavar="NAME", help=words
            )
    parser.add_argument(
        "--deny-dtype", action="append", default=[], metavar="NAME", help="as float16"
    )
    parser.add_argument(
        "--min-nodes", type=count, default=1, metavar="N", help="smallest partition; default: 1"
    )
    parser.add_argument(
        "--max-partitions", type=count, metavar="N", help="most partitions of a method"
    )
    parser.add_argument(
        "--granularity",
        choices=GRANULARITIES,
        default=GRANULARITIES[0],
        help="how large partitions are; default: maximal",
    )


def run(options: Namespace) -> Answer:
    """Compile in a worker process; the folder is complete or as it was before."""
    job, issues = _job(options)
    options.inputs = [job.source.path]
    if options.as_python:
        script = python_script(job)
        return Answer({"script": script}, lines=script.splitlines(), issues=issues)
    if options.folder is None:
        raise CommandError("where to? -o DIR names the folder", USAGE)
    try:
        running = CompileRun(
            job, Path(options.folder), force=options.force, timeout=options.timeout
        )
    except FolderError as error:
        raise refused(error) from error
    runs_code = job.source.path if job.source.kind is SourceKind.PYTHON else ""
    progress = Progress(sys.stderr, runs_code, verbose=options.verbose)
    outcome = finished(running, progress, verbose=options.verbose)
    return _answer(outcome.result, str(options.folder), issues)


def _job(options: Namespace) -> tuple[CompileJob, list[Issue]]:
    """Return what the recipe and the options ask for, and what is to be said of the recipe."""
    asked = _asked(options)
    issues: list[Issue] = []
    if options.recipe is not None:
        known, issues = known_recipe(options.recipe, own_source=options.source is None)
        asked = merged(known, asked)
    check_there(asked.source.path)
    if asked.python and asked.source.kind is not SourceKind.PYTHON:
        raise CommandError("--python runs a function; this source has none", USAGE)
    check_quantising(asked.quantising)
    if asked.rules != Rules() and not asked.partitioners:
        raise CommandError("rules for partitioners need a --partitioner", USAGE)
    return asked, issues


def _asked(options: Namespace) -> CompileJob:
    if options.source is None and options.recipe is None:
        raise CommandError("what is to be compiled? SOURCE or --recipe FILE names it", USAGE)
    try:
        source = parse_source(options.source) if options.source is not None else Source("")
    except SourceError as error:
        raise CommandError(str(error), USAGE) from error
    return CompileJob(
        source,
        options.python,
        tuple(options.method),
        tuple(options.partitioner),
        _rules(options),
        options.memory_planner,
        options.external_constants,
        quantising(options),
    )


def _rules(options: Namespace) -> Rules:
    return Rules(
        tuple(options.deny_op),
        tuple(options.allow_op),
        tuple(options.deny_node),
        tuple(options.allow_node),
        tuple(options.deny_module),
        tuple(options.allow_module),
        tuple(options.deny_dtype),
        options.min_nodes,
        options.max_partitions,
        options.granularity,
    )


def _answer(report: Mapping[str, Any], folder: str, issues: Sequence[Issue]) -> Answer:
    rows = [(one["stage"], one["method"], one["time_ms"], one["nodes"]) for one in report["stages"]]
    columns = (
        Column("stage"),
        Column("method"),
        Column("time", "time"),
        Column("nodes", "count", spare=1),
    )
    total = ("total", "", report["total_ms"], None)
    warned = [
        Issue(Severity.WARNING, _place(warning, report["source"]), warning["text"])
        for warning in report["warnings"]
    ]
    return Answer(
        report,
        lines=_lines(report, folder),
        tables=(Table("", columns, rows, total),),
        issues=[*issues, *warned],
    )


def _lines(report: Mapping[str, Any], folder: str) -> list[str]:
    files = ", ".join(f"{one['path']} ({one['bytes']:,} bytes)" for one in report["files"])
    lines = [f"{folder}: {files}, {REPORT}"]
    for method, plan in report["memory"].items():
        planned, bound = plan["planned_bytes"], plan["lower_bound_bytes"]
        lines.append(
            f"{method}: {planned:,} bytes planned by {plan['planner']}, at least {bound:,} needed"
        )
    for method, counts in report["verdicts"].items():
        if counts:
            told = ", ".join(
                f"{count:,} {name.replace('_', ' ')}" for name, count in counts.items()
            )
            lines.append(f"{method}: {told}")
    return lines


def _place(warning: Mapping[str, Any], source: str) -> str:
    if not warning.get("file"):
        return source
    line = warning.get("line", 0)
    return f"{warning['file']}:{line}" if line else str(warning["file"])
