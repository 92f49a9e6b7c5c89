"""sweep: a recipe with every combination of some of its fields."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from inspector.cli.answer import FAILED, FINE, USAGE, Answer, CommandError, shown
from inspector.cli.device import check_known
from inspector.cli.eval import add_data, check_data
from inspector.cli.job_runs import (
    add_timeout,
    check_inputs,
    check_there,
    count,
    count_or_none,
    refused,
)
from inspector.cli.options import add_folder_output
from inspector.cli.recipes import known_recipe
from inspector.cli.sweep_progress import SweepProgress
from inspector.experiments.sweeps.cluster import ClusterError, ClusterRunner
from inspector.experiments.sweeps.engine import LocalRunner, Plan, Runner, Sweep, run_to_end
from inspector.experiments.sweeps.grid import (
    Grid,
    GridError,
    grid_of_file,
    parse_grid,
    value_text,
)
from inspector.experiments.sweeps.plan import plan_of, usual_objectives
from inspector.experiments.sweeps.results import (
    METRICS,
    RESULTS,
    PointResult,
    Results,
    Status,
    metric_of,
)
from inspector.experiments.sweeps.sensitivity import (
    recorded_modules,
    sensitivity_data,
    sensitivity_grid,
)
from inspector.experiments.sweeps.task import SweepSettings
from inspector.experiments.sweeps.values import check_values
from inspector.jobs.executing import MADE_INPUTS
from inspector.jobs.output_folder import FolderError, check_folder
from inspector.recipes.compile_job import RECORD, CompileJob, Quantization
from inspector.recipes.data_source import absolute
from inspector.recipes.paths import placed
from inspector.tables.sensitivity import sensitivity_table
from inspector.tables.sweep import sweep_table
from schema.errors import Issue, Severity
from schema.etrecord import sniff


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("recipe", metavar="RECIPE", help="a recipe.json, or an ETRecord")
    parser.add_argument(
        "--grid",
        action="append",
        default=[],
        metavar="FIELD=VALUE,…|FILE.json",
        help="values of a field of the recipe, such as rules.min_nodes=1,5; may be repeated",
    )
    parser.add_argument(
        "--sensitivity",
        action="store_true",
        help="instead of a grid: quantize nothing, each module alone, and what the recipe names",
    )
    parser.add_argument(
        "--record",
        default="",
        metavar="MODEL.etrecord",
        help="names the modules of --sensitivity; default: the one beside the recipe",
    )
    add_folder_output(
        parser, f"folder for {RESULTS} and the points; a sweep in it is resumed; required"
    )
    parser.add_argument(
        "--workers", type=count, metavar="N", help="parallel points; default: one per processor"
    )
    parser.add_argument(
        "--cluster", metavar="ADDRESS", help="work on this Dask cluster, as tcp://host:8786"
    )
    _add_measurements(parser)
    parser.add_argument(
        "--pareto",
        metavar="METRIC,METRIC",
        default="",
        help=f"whose best points are marked, of {', '.join(METRICS)}",
    )
    add_timeout(parser)


def _add_measurements(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--runs",
        type=count_or_none,
        default=0,
        metavar="N",
        help="run each point N times for its latency; default: 0",
    )
    parser.add_argument(
        "--device", metavar="NAME", default="", help="run the points on a device, one at a time"
    )
    parser.add_argument(
        "--gap", action="store_true", help="compare each point with its recorded program"
    )
    add_data(parser)
    parser.add_argument(
        "--method",
        metavar="NAME",
        default="",
        help="evaluated on the data set; default: forward, else the first that takes inputs",
    )
    parser.add_argument(
        "--inputs",
        dest="run_inputs",
        metavar="FILE.pt|random|ones|zeros",
        default=MADE_INPUTS[0],
        help="of the runs; default: random",
    )


def run(options: Namespace) -> Answer:
    """Work until every point has ended; an interrupted sweep continues when run again."""
    plan, issues = _plan(options)
    options.inputs = [options.recipe]
    if options.folder is None:
        raise CommandError("-o DIR is missing: it names the folder", USAGE)
    folder = Path(options.folder)
    _check_target(folder, force=options.force)
    runner = _runner(options, folder, plan)
    progress = SweepProgress(sys.stderr, len(plan.points), verbose=options.verbose)
    try:
        sweep = Sweep(plan, folder, runner, redo=options.force)
        results = run_to_end(sweep, progress.show)
    except FolderError as error:
        raise refused(error) from error
    except KeyboardInterrupt:
        progress.end(f"finished points are in {folder}; the same command resumes")
        raise
    finally:
        runner.close()
        progress.end()
    return _answer(results, folder, issues, sensitivity=options.sensitivity)


def _plan(options: Namespace) -> tuple[Plan, list[Issue]]:
    """Return the planned sweep, before it starts.

    Raises: CommandError, OSError
    """
    if options.sensitivity:
        if options.grid:
            raise CommandError("--sensitivity and --grid both name the points: use one", USAGE)
    elif options.record:
        raise CommandError("--record names the modules of --sensitivity: use both", USAGE)
    elif not options.grid:
        raise CommandError("nothing to vary: use --grid FIELD=VALUE,VALUE…", USAGE)
    job, issues = known_recipe(options.recipe, own_source=True)
    check_there(job.source.path)
    check_inputs(options.run_inputs)
    _take_usual_data(options, job)
    if options.data:
        check_data(options)
    elif options.metric:
        raise CommandError("--metric needs a data set: --data DATA", USAGE)
    if options.device:
        check_known(options.device)
    if options.device and options.cluster:
        raise CommandError("--device is one of this machine, not of a --cluster", USAGE)
    settings = SweepSettings(
        options.runs,
        options.gap,
        absolute(options.run_inputs),
        options.timeout,
        options.device,
        absolute(options.data) if options.data else "",
        absolute(options.metric) if options.metric else "",
        options.samples,
        options.method,
    )
    try:
        grid = (
            sensitivity_grid(job, _modules(options, job.quantising))
            if options.sensitivity
            else _grid(options.grid)
        )
        plan = plan_of(options.recipe, job, grid, settings)
        check_values(placed(job), grid)
    except GridError as error:
        words = "--sensitivity" if options.sensitivity else "--grid"
        raise CommandError(f"{words} {error}", USAGE) from error
    return replace(plan, objectives=_objectives(options.pareto, settings)), issues


def _take_usual_data(options: Namespace, job: CompileJob) -> None:
    """Choose the data of a sensitivity that names none."""
    if options.sensitivity and not options.data:
        options.data, samples = sensitivity_data(job)
        options.samples = options.samples or samples


def _modules(options: Namespace, how: Quantization) -> dict[str, str]:
    """Return the modules with weights in a named record, else in that of a recipe.

    Raises: CommandError without a record, GridError, FormatError, OSError
    """
    if options.record:
        check_there(options.record)
        return recorded_modules(Path(options.record), how, options.method)
    path = Path(options.recipe)
    record = path if path.is_file() and sniff(path.read_bytes()) else path.with_name(RECORD)
    if not record.is_file():
        words = f"--sensitivity reads the modules from {RECORD} beside the recipe"
        raise CommandError(f"{words}, which is missing: compile it first", USAGE)
    return recorded_modules(record, how, options.method)


def _grid(texts: Sequence[str]) -> Grid:
    """Return the grid of the command line: axes, or a file that has them all."""
    files = [text for text in texts if "=" not in text and text.endswith(".json")]
    if not files:
        return parse_grid(texts)
    if len(texts) > 1:
        raise GridError(f"{files[0]}: a file defines the entire grid; remove the other --grid")
    check_there(files[0])
    return grid_of_file(Path(files[0]).read_bytes(), files[0])


def _objectives(text: str, settings: SweepSettings) -> tuple[str, ...]:
    if text:
        names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
        for name in names:
            if metric_of(name) is None:
                raise CommandError(
                    f"--pareto: unknown metric {name!r}; available: {', '.join(METRICS)}", USAGE
                )
        return names
    return usual_objectives(settings)


def _check_target(folder: Path, *, force: bool) -> None:
    """Refuse a folder with something else in it; one with a sweep is gone on with."""
    try:
        check_folder(folder, force=force or (folder / RESULTS).is_file())
    except FolderError as error:
        raise refused(error) from error


def _runner(options: Namespace, folder: Path, plan: Plan) -> Runner:
    if options.cluster is None:
        workers = options.workers or os.cpu_count() or 1
        return LocalRunner(folder, plan.settings, min(workers, len(plan.points)))
    if options.workers is not None:
        raise CommandError(
            "--workers applies to this machine; a cluster has its own workers", USAGE
        )
    try:
        return ClusterRunner(options.cluster, folder, plan.settings)
    except ClusterError as error:
        raise CommandError(str(error), USAGE) from error


def _answer(
    results: Results, folder: Path, issues: Sequence[Issue], *, sensitivity: bool
) -> Answer:
    failed = [one for one in results.points if one.status is Status.FAILED]
    reported = [Issue(Severity.ERROR, _changes(one), one.sentence) for one in failed]
    return Answer(
        {**results.content(), "folder": str(folder)},
        lines=_lines(results, folder),
        tables=(shown(sensitivity_table(results) if sensitivity else sweep_table(results)),),
        issues=[*issues, *reported],
        code=FAILED if failed else FINE,
    )


def _lines(results: Results, folder: Path) -> list[str]:
    done, failed = results.count(Status.DONE), results.count(Status.FAILED)
    total = len(results.points)
    words = f"{done:,} of {total:,} points done" + (f", {failed:,} failed" if failed else "")
    best = sum(results.best())
    names = ", ".join(results.objectives)
    return [
        f"{folder / RESULTS}: {words}",
        f"{best:,} on the Pareto front of {names}, marked best",
        f"open it: etscope {folder / RESULTS}",
    ]


def _changes(one: PointResult) -> str:
    return ", ".join(f"{field}={value_text(value)}" for field, value in one.changes.items())
