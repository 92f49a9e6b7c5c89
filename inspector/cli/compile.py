"""compile: a program file and an ETRecord from a function, a .pt2 file or another ETRecord."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from inspector.cli.answer import FINE, JUDGED, USAGE, Answer, Column, CommandError, Table
from inspector.cli.delegating import (
    add_delegation,
    add_precision,
    precision_asked,
    reordered,
    rules_asked,
)
from inspector.cli.job_runs import add_libraries, add_timeout, check_there, finished, refused
from inspector.cli.options import add_folder_output
from inspector.cli.progress import Progress
from inspector.cli.quantize import add_quantising, check_quantising, quantising
from inspector.cli.recipes import known_recipe, merged
from inspector.cli.toolchains import (
    add_listing,
    add_toolchain,
    partitioner_list,
    toolchain_python,
)
from inspector.files.stage_log import STAGES
from inspector.jobs.guard import (
    AUTO,
    WAYS,
    GuardReport,
    guard_from,
    guard_lines,
    refusal_line,
)
from inspector.jobs.output_folder import FolderError
from inspector.jobs.run import CompileRun
from inspector.recipes.compile_job import (
    EXECUTORCH,
    REPORT,
    CompileJob,
    Rules,
    Source,
    SourceError,
    SourceKind,
    parse_source,
    registering_code,
)
from inspector.recipes.emission import PASSES, WordError, check_passes, config_of, edge_config_of
from inspector.recipes.paths import placed
from inspector.recipes.script import python_script
from schema.backends import engine_backends
from schema.errors import Issue, Severity


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
    add_toolchain(parser, "compiles")
    add_listing(parser)
    add_delegation(parser)
    add_quantising(parser)
    add_precision(parser)
    _add_building(parser)
    parser.add_argument(
        "--stages",
        action="store_true",
        help=f"write {STAGES} too: the graph before and after each stage and pass",
    )
    parser.add_argument(
        "--guard",
        choices=WAYS,
        default=AUTO,
        help=f"load each {engine_backends()} partition before anyone runs it: auto where the real"
        " kernels are installed, on also with torch's, fix keeps refused nodes out and compiles"
        " again; default: auto",
    )
    add_timeout(parser)


def _add_building(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--memory-planner",
        metavar="NAME",
        default="",
        help="a name, or an algorithm or pass as file.py:NAME; default: the smallest of all plans",
    )
    parser.add_argument(
        "--external-constants", action="store_true", help="constants into a .ptd beside the .pte"
    )
    parser.add_argument(
        "--pass",
        dest="passes",
        action="append",
        default=[],
        metavar="NAME",
        help=f"run before partitioners look: {', '.join(PASSES)}, or file.py:NAME; may be repeated",
    )
    parser.add_argument(
        "--edge-config",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="how the edge program is built, as preserve_ops=aten.linear.default; may be repeated",
    )
    parser.add_argument(
        "--backend-config",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="how the program is planned and written, as segment_alignment=64; may be repeated",
    )


def _add_source(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--python", metavar="PATH", default="", help="interpreter that runs the function"
    )
    add_libraries(parser)
    parser.add_argument(
        "--method", action="append", default=[], metavar="NAME", help="only this; may be repeated"
    )


def run(options: Namespace) -> Answer:
    """Compile in a worker process; the folder is complete or as it was before."""
    if options.list_partitioners:
        return partitioner_list(options)
    job, issues = _job(options)
    options.inputs = [job.source.path]
    if options.as_python:
        script = python_script(placed(job))
        return Answer({"script": script}, lines=script.splitlines(), issues=issues)
    if options.folder is None:
        raise CommandError("where to? -o DIR names the folder", USAGE)
    try:
        running = CompileRun(
            job,
            Path(options.folder),
            force=options.force,
            timeout=options.timeout,
            guard=options.guard,
            stages=options.stages,
        )
    except FolderError as error:
        raise refused(error) from error
    progress = Progress(sys.stderr, ", ".join(registering_code(job)), verbose=options.verbose)
    outcome = finished(running, progress, verbose=options.verbose)
    return _answer(outcome.result, str(options.folder), issues)


def _job(options: Namespace) -> tuple[CompileJob, list[Issue]]:
    """Return what the recipe and the options ask for, and what is to be said of the recipe."""
    asked = _asked(options)
    issues: list[Issue] = []
    if options.recipe is not None:
        known, issues = known_recipe(options.recipe, own_source=not options.source)
        asked = merged(known, asked)
    asked = reordered(asked, options)
    for path in (asked.source.path, *asked.libraries):
        check_there(path)
    elsewhere = asked.toolchain == EXECUTORCH
    if options.toolchain_python and not elsewhere:
        raise CommandError("--toolchain-python needs --toolchain executorch", USAGE)
    if asked.python and not elsewhere and asked.source.kind is not SourceKind.PYTHON:
        raise CommandError("--python runs a function; this source has none", USAGE)
    check_quantising(asked.quantising)
    if asked.rules != Rules() and not asked.partitioners:
        raise CommandError("rules for partitioners need a --partitioner", USAGE)
    return asked, issues


def _asked(options: Namespace) -> CompileJob:
    if not options.source and options.recipe is None:
        raise CommandError("what is to be compiled? SOURCE or --recipe FILE names it", USAGE)
    try:
        source = parse_source(options.source) if options.source else Source("")
    except SourceError as error:
        raise CommandError(str(error), USAGE) from error
    return CompileJob(
        source,
        toolchain_python(options, options.python),
        tuple(options.method),
        tuple(options.partitioner),
        rules_asked(options),
        options.memory_planner,
        options.external_constants,
        quantising(options),
        precision_asked(options),
        options.toolchain,
        _known(check_passes, options.passes),
        _known(config_of, options.backend_config),
        tuple(options.libraries),
        _known(edge_config_of, options.edge_config),
    )


def _known(check: Callable[[Sequence[str]], object], words: Sequence[str]) -> tuple[str, ...]:
    try:
        check(words)
    except WordError as error:
        raise CommandError(str(error), USAGE) from error
    return tuple(words)


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
    guarded = guard_from(report["guard"]) if report["guard"] else GuardReport()
    refused = [
        Issue(Severity.ERROR, one.source or report["source"], refusal_line(one))
        for one in guarded.refusals
    ]
    return Answer(
        report,
        lines=[*_lines(report, folder), *guard_lines(guarded)],
        tables=(Table("", columns, rows, total),),
        issues=[*issues, *warned, *refused],
        code=JUDGED if refused else FINE,
    )


def _lines(report: Mapping[str, Any], folder: str) -> list[str]:
    files = ", ".join(f"{one['path']} ({one['bytes']:,} bytes)" for one in report["files"])
    lines = [f"{folder}: {files}, {REPORT}"]
    tool = report["toolchain"]
    if tool["name"] == EXECUTORCH:
        lines.append(f"compiled by ExecuTorch {tool['version']} of {report['python']}")
    for method, plan in report["memory"].items():
        planned, bound = plan["planned_bytes"], plan["lower_bound_bytes"]
        words = f"{planned:,} bytes planned by {plan['planner']}, at least {bound:,} needed"
        lines.append(f"{method}: {words}")
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
