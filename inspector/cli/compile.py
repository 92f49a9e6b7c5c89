"""compile: a program file and an ETRecord from a function, a .pt2 file or another ETRecord."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from inspector.cli.answer import FINE, JUDGED, USAGE, Answer, CommandError, shown
from inspector.cli.job_runs import add_libraries, add_timeout, check_there, finished, refused
from inspector.cli.options import add_folder_output
from inspector.cli.progress import Progress
from inspector.cli.recipe_options import (
    PARTS,
    add_changes,
    add_fields,
    automatic_rules,
    check_recipe_options,
    option_values,
    recipe_part,
    reordered,
    without,
)
from inspector.cli.recipes import check_recipe, known_recipe, merged
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
    guard_lines,
    refusal_line,
)
from inspector.jobs.output_folder import FolderError
from inspector.jobs.run import JobRun
from inspector.recipes.compile_job import (
    REPORT,
    CompileJob,
    Precision,
    Quantization,
    Rules,
    registering_code,
)
from inspector.recipes.emission import WordError, check_passes, config_of, edge_config_of
from inspector.recipes.paths import placed
from inspector.recipes.source import Source, SourceError, SourceKind, parse_source
from inspector.tables.compile_stages import compile_table
from inspector.toolchain.recipe_script import python_script
from inspector.toolchain.table import toolchain_named
from schema.backends import engine_backends
from schema.errors import Issue, Severity
from schema.objects.codec import from_json


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
        help="compile by this recipe.json or ETRecord; other options replace its own",
    )
    parser.add_argument(
        "--as-python", action="store_true", help="print a script that compiles the same instead"
    )
    add_folder_output(
        parser, "folder for model.pte, model.etrecord, recipe.json and compile.json; required"
    )
    add_libraries(parser)
    add_toolchain(parser, "compiles")
    add_listing(parser)
    for part in (CompileJob, *PARTS):
        add_fields(parser, part)
    add_changes(parser)
    parser.add_argument(
        "--stages",
        action="store_true",
        help=f"write {STAGES} too: the graph before and after each stage and pass",
    )
    parser.add_argument(
        "--guard",
        choices=WAYS,
        default=AUTO,
        help=f"test-load each {engine_backends()} partition: auto where the real"
        " kernels are installed, on also with torch's, fix excludes refused nodes and compiles"
        " again; default: auto",
    )
    add_timeout(parser)


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
        raise CommandError("-o DIR is missing: it names the folder", USAGE)
    check_recipe(job)
    try:
        running = JobRun(
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
    return compile_answer(outcome.result, str(options.folder), issues)


def _job(options: Namespace) -> tuple[CompileJob, list[Issue]]:
    """Return the job of recipe and options, and issues of the recipe."""
    job = _options_of(options)
    issues = automatic_rules(options)
    if options.recipe is not None:
        known, found = known_recipe(options.recipe, own_source=not options.source)
        job, issues = merged(without(known, options), job), [*issues, *found]
    elif options.reset:
        raise CommandError("--reset needs --recipe FILE", USAGE)
    job = reordered(job, options)
    for path in (job.source.path, *job.libraries):
        check_there(path)
    elsewhere = toolchain_named(job.toolchain).has_interpreter
    if options.toolchain_python and not elsewhere:
        raise CommandError("--toolchain-python needs --toolchain executorch", USAGE)
    if job.python and not elsewhere and job.source.kind is not SourceKind.PYTHON:
        raise CommandError("--python only applies to a source with a function", USAGE)
    check_recipe_options(job)
    return job, issues


def _options_of(options: Namespace) -> CompileJob:
    if not options.source and options.recipe is None:
        raise CommandError("nothing to compile: pass SOURCE or --recipe FILE", USAGE)
    try:
        source = parse_source(options.source) if options.source else Source("")
    except SourceError as error:
        raise CommandError(str(error), USAGE) from error
    given = option_values(CompileJob, options)
    for name, check in _CHECKS.items():
        try:
            check(given[name])
        except WordError as error:
            raise CommandError(str(error), USAGE) from error
    given["python"] = toolchain_python(options, options.python)
    return CompileJob(
        source,
        **given,
        rules=recipe_part(Rules, options),
        quantising=recipe_part(Quantization, options),
        precision=recipe_part(Precision, options),
        toolchain=options.toolchain,
        libraries=tuple(options.libraries),
    )


_CHECKS: Mapping[str, Callable[[Sequence[str]], object]] = {
    "passes": check_passes,
    "backend_config": config_of,
    "edge_config": edge_config_of,
}


def compile_answer(report: Mapping[str, Any], folder: str, issues: Sequence[Issue]) -> Answer:
    """Return the report of a compile for people and as JSON."""
    warned = [
        Issue(Severity.WARNING, _place(warning, report["source"]), warning["text"])
        for warning in report["warnings"]
    ]
    guarded = from_json(report["guard"], GuardReport, "guard") if report["guard"] else GuardReport()
    refused = [
        Issue(Severity.ERROR, one.source or report["source"], refusal_line(one))
        for one in guarded.refusals
    ]
    return Answer(
        report,
        lines=[*_lines(report, folder), *guard_lines(guarded)],
        tables=(shown(compile_table(report["stages"]), total=True),),
        issues=[*issues, *warned, *refused],
        code=JUDGED if refused else FINE,
    )


def _lines(report: Mapping[str, Any], folder: str) -> list[str]:
    files = ", ".join(f"{one['path']} ({one['bytes']:,} bytes)" for one in report["files"])
    lines = [f"{folder}: {files}, {REPORT}"]
    tool = report["toolchain"]
    credit = toolchain_named(tool["name"]).credit(tool.get("version", ""))
    if credit:
        lines.append(f"compiled by {credit} of {report['python']}")
    for method, plan in report["memory"].items():
        planned, bound = plan["planned_bytes"], plan["lower_bound_bytes"]
        words = f"{planned:,} bytes planned by {plan['planner']}, at least {bound:,} needed"
        lines.append(f"{method}: {words}")
    for method, counts in report["verdicts"].items():
        if counts:
            reported = ", ".join(
                f"{count:,} {name.replace('_', ' ')}" for name, count in counts.items()
            )
            lines.append(f"{method}: {reported}")
    return lines


def _place(warning: Mapping[str, Any], source: str) -> str:
    if not warning.get("file"):
        return source
    line = warning.get("line", 0)
    return f"{warning['file']}:{line}" if line else str(warning["file"])
