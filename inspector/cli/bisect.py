"""bisect: the smallest set of nodes to remove from a delegate so that a metric is in its bound."""

from __future__ import annotations

import math
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from inspector.cli.answer import (
    FAILED,
    FINE,
    JUDGED,
    UNREADABLE,
    USAGE,
    Answer,
    CommandError,
    shown,
)
from inspector.cli.device import check_known
from inspector.cli.job_runs import (
    add_backend_options,
    add_engine,
    add_timeout,
    check_there,
    count,
    finished,
    refused,
)
from inspector.cli.options import add_folder_output
from inspector.cli.progress import Progress
from inspector.cli.recipes import check_recipe, known_recipe
from inspector.experiments.bisect.bound import Bound, parse_bound
from inspector.experiments.bisect.search import Result
from inspector.experiments.bisect.summary import BisectFinding, kept_out, sentence_of, value_of
from inspector.experiments.gates.requirement import Kind, RequirementError
from inspector.jobs.bisect import BisectJob
from inspector.jobs.bisect_trials import STATE, BisectState, CandidateNode, StateError, Trial
from inspector.jobs.messages import Message, Tried
from inspector.jobs.output_folder import FolderError
from inspector.jobs.run import JobRun
from inspector.recipes.compile_job import CompileJob
from inspector.recipes.recipe import RECIPE, recipe_of
from inspector.recipes.source import SourceKind
from inspector.tables.bisect import node_table
from inspector.toolchain.table import toolchain_named
from inspector.units import format_elapsed
from schema.errors import Issue
from schema.etrecord import sniff as is_record
from schema.objects.codec import from_json
from schema.objects.plural import plural

_HEAD = 4096  # bytes that distinguish the kinds of input files


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="recipe.json, an ETRecord, or the files or the folder of a compile",
    )
    parser.add_argument(
        "--bound",
        required=True,
        metavar="BOUND",
        help="loads, or a metric and its bound as 'output.max_abs<=1e-3', 'gap.snr_db>=40' or"
        " 'latency<=5ms'",
    )
    add_folder_output(
        parser, f"folder for {RECIPE} without these nodes and for {STATE}, the state; required"
    )
    parser.add_argument("--method", default="", metavar="NAME", help="only nodes of this method")
    parser.add_argument(
        "--inputs", default="", metavar="FILE.pt", help="default: those it was exported with"
    )
    add_engine(parser)
    add_backend_options(parser)
    parser.add_argument(
        "--runs", type=count, default=20, metavar="N", help="runs of a latency; default: 20"
    )
    parser.add_argument("--device", metavar="NAME", default="", help="run the programs on a device")
    parser.add_argument("--threads", type=count, default=0, metavar="N", help="of torch")
    add_timeout(parser)


def run(options: Namespace) -> Answer:
    """Try programs in a worker; every trial is written to the state file immediately."""
    bound = _bound(options.bound)
    if options.folder is None:
        raise CommandError("-o DIR is missing: it names the folder", USAGE)
    path = _recipe_among(options.files)
    known, issues = known_recipe(path, own_source=True)
    options.inputs, inputs = [path], options.inputs
    check_there(known.source.path)
    if not known.partitioners:
        raise CommandError(f"{path} names no partitioner to take nodes from", USAGE)
    check_recipe(known)
    if inputs:
        check_there(inputs)
        inputs = str(Path(inputs).absolute())
    absolute = replace(known.source, path=str(Path(known.source.path).absolute()))
    job = BisectJob(
        replace(known, source=absolute),
        bound.text,
        options.method,
        inputs,
        options.engine,
        options.runs,
        options.threads,
        options.device,
        tuple(options.backend_options),
    )
    if options.device:
        _check_device(options.device, bound, known)
    if options.backend_options and (
        options.device or toolchain_named(known.toolchain).has_interpreter
    ):
        words = "--backend-option: only programs that run on ETScope's own runtime take it"
        raise CommandError(words, USAGE)
    folder = Path(options.folder)
    found, state = _bisected(job, folder, bound, options)
    return _answer(job, bound, found, state, folder, issues)


def _check_device(name: str, bound: Bound, job: CompileJob) -> None:
    """Raise CommandError where a device cannot tell whether the bound is met."""
    check_known(name)
    if bound.requirement is None or bound.requirement.kind is Kind.PROGRAM:
        raise CommandError(f"--device: {bound.text} is not about a run", USAGE)
    if toolchain_named(job.toolchain).has_interpreter:
        words = "--device: programs of --toolchain executorch are bisected on this machine"
        raise CommandError(words, USAGE)


def _bound(text: str) -> Bound:
    try:
        return parse_bound(text)
    except RequirementError as error:
        raise CommandError(str(error), USAGE) from error


def _recipe_among(files: list[str]) -> str:
    """Return the file of the recipe."""
    for name in files:
        path = Path(name)
        if path.is_dir():
            inside = [path / RECIPE, *sorted(path.glob("*.etrecord"))]
            found = next((one for one in inside if one.is_file()), None)
            if found is None:
                raise CommandError(f"{path} has no {RECIPE} and no ETRecord", UNREADABLE)
            return str(found)
        check_there(name)
        if _is_recipe_or_record(path):
            return name
    raise CommandError(f"no recipe: none of {', '.join(files)} is a recipe or an ETRecord", USAGE)


def _is_recipe_or_record(path: Path) -> bool:
    with path.open("rb") as stream:
        head = stream.read(_HEAD)
    return is_record(head) or head.lstrip().startswith(b"{")


def _bisected(
    job: BisectJob, folder: Path, bound: Bound, options: Namespace
) -> tuple[Mapping[str, Any], BisectState]:
    runs_code = job.compile.source.path if job.compile.source.kind is SourceKind.PYTHON else ""
    progress = _Log(bound, runs_code, verbose=options.verbose)
    try:
        _check_free(folder, force=options.force)
        running = JobRun(job, folder, force=options.force, timeout=options.timeout)
        progress.begin(running.state)
        outcome = finished(running, progress, verbose=options.verbose)
    except FolderError as error:
        raise refused(error) from error
    except StateError as error:
        raise CommandError(f"{error}; --force starts over", UNREADABLE) from error
    return outcome.result, running.state


def _check_free(folder: Path, *, force: bool) -> None:
    """Refuse to replace a recipe that no bisection has written.

    Raises: FolderError
    """
    if (folder / RECIPE).exists() and not (folder / STATE).exists() and not force:
        text = f"{folder / RECIPE} exists already; --force replaces it"
        raise FolderError(text, usage=True)


class _Log(Progress):
    """Writes a line for each trial in addition to stages."""

    def __init__(self, bound: Bound, runs_code: str, *, verbose: bool) -> None:
        super().__init__(sys.stderr, runs_code, verbose=verbose)
        self._bound = bound
        self._count = 0

    def begin(self, state: BisectState) -> None:
        """Report where it continues."""
        self._count = len(state.trials)
        if self._count:
            self.note(f"resumes after trial {self._count:,}")

    def show(self, messages: Any) -> None:  # noqa: ANN401 - as the base
        """Show the messages."""
        for message in messages:
            self._tried(message)
        super().show(messages)

    def _tried(self, message: Message) -> None:
        if isinstance(message, Tried):
            self._count += 1
            self.note(_trial_line(self._count, message.trial, self._bound))


def _trial_line(number: int, trial: Trial, bound: Bound) -> str:
    out = f"{plural(trial.count, 'node')} out"
    word = "holds" if trial.holds else "does not hold"
    took = format_elapsed(trial.seconds, 1)
    return f"trial {number:>3}: {out:<16} {value_of(trial, bound)}: {word} ({took})"


def _answer(
    job: BisectJob,
    bound: Bound,
    found: Mapping[str, Any],
    state: BisectState,
    folder: Path,
    issues: list[Issue],
) -> Answer:
    done = from_json(found, BisectFinding, "the result of the worker")
    written = done.result is Result.FOUND
    recipe = _written(job.compile, done.nodes, folder) if written else ""
    sentence = sentence_of(done, bound)
    data = {
        "bound": bound.text,
        "metric": bound.metric,
        "result": done.result.value,
        "sentence": sentence,
        "nodes": [_node_json(node) for node in done.nodes],
        "before": _trial_json(done.before),
        "after": _trial_json(done.after),
        "candidates": done.candidates,
        "trials": [_trial_json(trial) for trial in state.trials],
        "recipe": recipe or None,
        "folder": str(folder),
    }
    lines = [
        sentence,
        f"{plural(len(state.trials), 'program')} tried, of {plural(done.candidates, 'node')}",
    ]
    if recipe:
        lines.append(f"{recipe} excludes them")
    code = JUDGED if done.result is Result.ELSEWHERE else FINE
    return Answer(
        data, lines=lines, tables=(shown(node_table(done.nodes, None)),), issues=issues, code=code
    )


def _written(job: CompileJob, nodes: Sequence[CandidateNode], folder: Path) -> str:
    """Write the recipe that excludes the nodes; return its path."""
    path = folder / RECIPE
    try:
        path.write_text(recipe_of(kept_out(job, nodes), {}).text, "utf-8")
    except OSError as error:
        raise CommandError(
            f"{path} cannot be written: {error.strerror or error}", FAILED
        ) from error
    return str(path)


def _node_json(node: CandidateNode) -> dict[str, Any]:
    return {
        "method": node.method,
        "node": node.name,
        "operator": node.operator,
        "rule": node.rule,
        "partitioner": node.partitioner,
        "source": node.source or None,
    }


def _trial_json(trial: Trial) -> dict[str, Any]:
    known = trial.value is not None and math.isfinite(trial.value)
    return {
        "removed": trial.count,
        "value": trial.value if known else None,
        "holds": trial.holds,
        "words": trial.words,
        "time_ms": trial.seconds * 1e3,
    }
