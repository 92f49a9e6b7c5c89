"""Subjects of a gate: files, or a recipe that is compiled and run first."""

from __future__ import annotations

import sys
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from inspector.cli.answer import FAILED, USAGE, CommandError
from inspector.cli.eval import evaluated
from inspector.cli.gap_of_run import gap_of, gap_of_run
from inspector.cli.job_runs import check_there, finished, refused
from inspector.cli.options import one_session, open_files
from inspector.cli.progress import Progress
from inspector.cli.recipes import check_recipe, known_recipe
from inspector.experiments.evaluate.report import VariantFigures, evaluation_report
from inspector.experiments.evaluate.request import (
    EvalRequest,
    EvalRequestError,
    evaluation_job,
)
from inspector.files.session import Session
from inspector.graph.operator_libraries import needed_libraries
from inspector.jobs.eval_samples import read_evaluation
from inspector.jobs.evaluate import program_part
from inspector.jobs.executing import MeasureJob, RunJob
from inspector.jobs.gap import GapJob
from inspector.jobs.output_folder import HIDDEN, FolderError
from inspector.jobs.run import JobRun
from inspector.numerics.report import GapReport, RunGap
from inspector.recipes.compile_job import CompileJob, registering_code
from inspector.recipes.data_source import fingerprint
from schema.errors import Issue

BLOCKS = 12  # of runs, where the user does not say how many
_PROGRAMS = ("pte", "bpte")
_HEAD = 256  # bytes that show whether a file is a JSON object


@dataclass(frozen=True, slots=True)
class GateSubject:
    """A judged program or its baseline.

    Attributes:
        session: its files
        what: the files as named by the user
        folder: of a compiled recipe; None for given files
        issues: of the recipe
        libraries: that register operators of the program
    """

    session: Session
    what: str
    folder: Path | None = None
    issues: tuple[Issue, ...] = ()
    libraries: tuple[str, ...] = ()

    def file(self, *kinds: str) -> str:
        """Return the path of the first file of some kinds, or empty."""
        found = (file.path for file in self.session.files if file.kind in kinds)
        return next(found, "")

    def files(self, *kinds: str) -> tuple[str, ...]:
        """Return the paths of all files of some kinds."""
        return tuple(file.path for file in self.session.files if file.kind in kinds)


def is_recipe(path: str) -> bool:
    """Return whether a file looks like a recipe: text that begins an object."""
    try:
        check_there(path)
        with open(path, "rb") as stream:
            return stream.read(_HEAD).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")
    except (OSError, CommandError):
        return False  # said when it is opened


def opened(paths: Sequence[str], options: Namespace, scratch: Path, keep: str = "") -> GateSubject:
    """Open files, or compile a recipe and open its results.

    Args:
        paths: of files, or of one recipe
        options: of the verb
        scratch: temporary folder for results
        keep: permanent folder to use instead

    Raises: CommandError, FormatError, OSError
    """
    recipes = [path for path in paths if is_recipe(path)]
    if recipes and len(paths) > 1:
        raise CommandError(f"{recipes[0]} is a recipe, which is judged without other files", USAGE)
    if not recipes:
        named = ", ".join(one_session(paths))
        given = tuple(options.libraries)
        return GateSubject(open_files(options, paths, strict=True), named, libraries=given)
    before = list(getattr(options, "inputs", ()))
    folder = Path(keep) if keep else scratch
    issues, job = _compiled(paths[0], folder, options)
    session = open_files(options, [str(folder)], strict=True)
    options.inputs = [*before, paths[0]]  # not the files that were made
    return GateSubject(session, paths[0], folder, issues, needed_libraries(job, session))


def _compiled(path: str, folder: Path, options: Namespace) -> tuple[tuple[Issue, ...], CompileJob]:
    """Compile a recipe into a folder; return its issues and its results."""
    job, issues = known_recipe(path, own_source=True)
    job = replace(job, libraries=tuple(dict.fromkeys((*job.libraries, *options.libraries))))
    for needed in (job.source.path, *job.libraries):
        check_there(needed)
    check_recipe(job)
    try:
        running = JobRun(job, folder, force=options.force, timeout=options.timeout)
    except FolderError as error:
        raise refused(error) from error
    progress = Progress(sys.stderr, ", ".join(registering_code(job)), verbose=options.verbose)
    finished(running, progress, verbose=options.verbose)
    return tuple(issues), job


def measured(
    subjects: Sequence[GateSubject], options: Namespace
) -> list[dict[str, list[tuple[float, ...]]]]:
    """Run programs side by side, and return the blocks of each method of each of them.

    Raises: CommandError if one has no program, or cannot be run
    """
    jobs: list[RunJob] = []
    owners: list[tuple[int, str]] = []
    for number, subject in enumerate(subjects):
        program = subject.file(*_PROGRAMS)
        if not program:
            raise CommandError(
                f"latency is measured here, which needs the program (.pte) of {subject.what}", USAGE
            )
        methods = [name for name in subject.session.methods if options.method in (None, name)]
        for method in methods:
            jobs.append(_run_job(subject, program, method, options))
            owners.append((number, method))
    job = MeasureJob(tuple(jobs), blocks=options.measure or BLOCKS)
    running = JobRun(job, timeout=options.timeout)
    progress = Progress(sys.stderr, verbose=options.verbose)
    finished(running, progress, verbose=options.verbose)
    found: list[dict[str, list[tuple[float, ...]]]] = [{} for _ in subjects]
    for (number, method), times in zip(owners, running.state.programs, strict=True):
        if times.failure:
            raise CommandError(times.failure, FAILED)
        found[number][method] = list(times.blocks)
    return found


def _run_job(subject: GateSubject, program: str, method: str, options: Namespace) -> RunJob:
    built = {"inputs": options.run_inputs} if options.run_inputs else {}
    record = subject.file("etrecord")
    return RunJob(
        program,
        method,
        record=record,
        data_files=subject.files("ptd"),
        libraries=subject.libraries,
        threads=options.threads,
        engine=options.engine,
        device=options.device,
        **built,
    )


def subject_gap(subject: GateSubject, options: Namespace) -> GapReport:
    """Return the numeric gap of a program, which is run first if a recipe compiled it.

    Raises: CommandError naming the file that is missing
    """
    if subject.folder is None:
        _check_gap_files(subject)
        paths = tuple(file.path for file in subject.session.files if not file.error)
        return gap_of(GapJob(paths, options.method or "", libraries=subject.libraries), options)
    runs: list[RunGap] = []
    notes: list[str] = []
    for method in subject.session.methods:
        if options.method in (None, method):
            found = _gap_of_run(subject, method, options)
            runs += found.runs
            notes += found.notes
    return GapReport(tuple(runs), tuple(dict.fromkeys(notes)))


def _check_gap_files(subject: GateSubject) -> None:
    needed = (
        (_PROGRAMS, "the program (.pte)"),
        (("etrecord",), "the ETRecord"),
        (("etdump",), "the ETDump of a run that logged intermediate outputs"),
        (("debug_buffer",), "the debug buffer of that run"),
    )
    for kinds, words in needed:
        if not subject.file(*kinds):
            raise CommandError(f"gap needs {words}, missing in {subject.what}", USAGE)


def _gap_of_run(subject: GateSubject, method: str, options: Namespace) -> GapReport:
    assert subject.folder is not None
    job = _run_job(subject, subject.file(*_PROGRAMS), method, options)
    return gap_of_run(job, GapJob((), method), options, subject.folder)


def evaluation_of(subject: GateSubject, options: Namespace) -> VariantFigures:
    """Return the figures of a program on a data set: those in a folder, or measured now.

    Raises: CommandError if the folder belongs to other programs, or nothing can be evaluated
    """
    program = subject.file(*_PROGRAMS)
    if not program:
        raise CommandError(f"eval.… needs the program (.pte) of {subject.what}", USAGE)
    if options.evaluation:
        return _stored_evaluation(Path(options.evaluation), program, subject.what)
    request = EvalRequest(options.data, options.metric, options.samples)
    how = _run_job(subject, program, options.method or "", options)
    try:
        job = evaluation_job([subject.session], request, replace(how, record=""))
    except EvalRequestError as error:
        raise CommandError(str(error), USAGE) from error
    with tempfile.TemporaryDirectory(prefix=HIDDEN) as built:
        report, _ = evaluated(job, Path(built) / "eval", options)
    if report.unreferenced:
        raise CommandError(f"{report.settings.reference}: {report.sentence}", FAILED)
    return report.variants[0]


def _stored_evaluation(folder: Path, program: str, what: str) -> VariantFigures:
    report = evaluation_report(read_evaluation(folder))
    requested = fingerprint(program)
    for number, name in enumerate(report.settings.names):
        if requested in report.settings.key.get(program_part(name), ""):
            return report.variants[number]
    names = ", ".join(report.settings.names)
    raise CommandError(f"{folder} is an evaluation of {names}, not of the program of {what}", USAGE)
