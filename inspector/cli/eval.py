"""eval: the errors of one or several variants over a data set, beside a reference."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inspector.cli.answer import FAILED, FINE, USAGE, Answer, CommandError, shown
from inspector.cli.job_runs import (
    add_backend_options,
    add_program_data,
    add_timeout,
    check_inputs,
    check_record,
    check_there,
    count,
    finished,
    refused,
)
from inspector.cli.options import add_folder_output, add_reading, open_sides, split_names
from inspector.cli.progress import Progress
from inspector.experiments.evaluate.report import EvalReport, evaluation_report, report_content
from inspector.experiments.evaluate.request import (
    REFERENCES,
    EvalRequest,
    EvalRequestError,
    evaluation_job,
    has_program,
    workspace_name,
)
from inspector.files.session import Session
from inspector.files.workspace_file import is_workspace, workspace_sessions
from inspector.jobs.eval_samples import SETTINGS, EvalState
from inspector.jobs.evaluate import EvalJob
from inspector.jobs.executing import RunJob
from inspector.jobs.output_folder import FolderError
from inspector.jobs.run import JobRun
from inspector.recipes.data_source import EXAMPLE, EXPECTED, DataSourceError, data_source
from inspector.recipes.emission import file_of, in_file
from inspector.tables.evaluate import figures_table, ranges_table, worst_table
from schema.errors import Issue, Severity
from schema.objects.plural import plural


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the verb."""
    what = "file or folder of one program, several files with commas, or a workspace (.etscope)"
    parser.add_argument("sessions", nargs="+", metavar="A", help=f"one or more variants: {what}")
    add_reading(parser)
    add_data(parser, required=True)
    parser.add_argument(
        "--reference",
        choices=REFERENCES,
        default=REFERENCES[0],
        help="what outputs are compared with: the float program, the recorded program of the first"
        " variant, or the first variant; default: the first of these that is known",
    )
    parser.add_argument(
        "--ranges",
        action="store_true",
        help="observe what quantized programs round: clipped values, unused parts of scales",
    )
    add_folder_output(parser, "folder for the samples, from which the next call resumes; required")
    add_program_data(parser)
    add_backend_options(parser)
    add_timeout(parser)


def add_data(parser: ArgumentParser, *, required: bool = False) -> None:
    """Add the options for a data set and a metric."""
    parser.add_argument(
        "--data",
        required=required,
        default="",
        metavar="DATA",
        help="data set; " + EXPECTED.removeprefix("expected "),
    )
    parser.add_argument(
        "--metric",
        default="",
        metavar="FILE.PY:NAME",
        help="function of the outputs, or of outputs and targets; its code is run",
    )
    parser.add_argument(
        "--samples", type=count, metavar="N", help="only the first N samples; default: all"
    )


def run(options: Namespace) -> Answer:
    """Evaluate in a worker; samples that are finished are kept when it is interrupted."""
    if options.folder is None:
        raise CommandError("-o DIR is missing: it names the folder", USAGE)
    check_data(options)
    job, left_out = _job(options)
    report, notes = evaluated(job, Path(options.folder), options)
    return _answer(report, [*left_out, *notes], str(options.folder))


def check_data(options: Namespace) -> None:
    """Refuse data that cannot be read before anything is started.

    Raises: CommandError, OSError
    """
    try:
        source = data_source(options.data)
    except DataSourceError as error:
        raise CommandError(f"--data {error}", USAGE) from error
    if source.index is not None:
        raise CommandError(f"--data {options.data}: expected all samples, found one", USAGE)
    if source.generated and source.text != EXAMPLE and options.samples is None:
        raise CommandError(f"--data {options.data} has no end: use --samples N", USAGE)
    check_inputs(options.data)
    if options.metric:
        if not in_file(options.metric):
            raise CommandError(f"--metric {options.metric}: expected FILE.py:NAME", USAGE)
        check_there(file_of(options.metric))


@dataclass(frozen=True, slots=True)
class _VariantFiles:
    """A variant on the command line: its files, and its id if a workspace names it."""

    files: Sequence[str]
    key: str = ""


def _sides(options: Namespace) -> list[_VariantFiles]:
    """Return the variants; a workspace stands for its sessions.

    Raises: FormatError, OSError
    """
    found: list[_VariantFiles] = []
    for names in options.sessions:
        if is_workspace(names):
            found += [_VariantFiles(files, key) for key, files in workspace_sessions(Path(names))]
        else:
            found.append(_VariantFiles(split_names(names)))
    return found


def _variants(options: Namespace) -> tuple[list[tuple[str, Session]], list[str]]:
    """Return name and session of each variant, and notes about sessions that are left out.

    Raises: CommandError, FormatError, OSError
    """
    sides = _sides(options)
    found: list[tuple[str, Session]] = []
    notes: list[str] = []
    opened = open_sides(options, [side.files for side in sides])
    for side, session in zip(sides, opened, strict=True):
        name = workspace_name(side.key, session) if side.key else session.name
        if side.key and not has_program(session):
            notes.append(f"{name} has no program and is left out")
        else:
            found.append((name, session))
    if not found:
        raise CommandError(notes[0].removesuffix(" and is left out"), USAGE)
    return found, notes


def _job(options: Namespace) -> tuple[EvalJob, list[str]]:
    """Return the evaluation, and notes about sessions that are left out.

    Raises: CommandError, FormatError, OSError
    """
    variants, notes = _variants(options)
    for path in options.libraries:
        check_there(path)
    request = EvalRequest(
        options.data, options.metric, options.samples, options.reference, options.ranges
    )
    how = RunJob(
        "",
        method=options.method or "",
        data_files=tuple(options.ptd),
        libraries=tuple(options.libraries),
        threads=options.threads,
        engine=options.engine,
        backend_options=tuple(options.backend_options),
    )
    names = [name for name, _ in variants]
    try:
        job = evaluation_job([session for _, session in variants], request, how, names)
    except EvalRequestError as error:
        raise CommandError(str(error), USAGE) from error
    for one in job.variants:
        check_record(one.program, one.record)
    return job, notes


def evaluated(job: EvalJob, folder: Path, options: Namespace) -> tuple[EvalReport, list[str]]:
    """Run an evaluation to its end; return its report and notes about what was reused.

    Raises: CommandError
    """
    code = [file_of(text) for text in (job.data, job.metric) if in_file(text)]
    progress = Progress(sys.stderr, ", ".join(dict.fromkeys(code)), verbose=options.verbose)
    try:
        running = JobRun(job, folder, force=options.force, timeout=options.timeout)
    except FolderError as error:
        raise refused(error) from error
    before: EvalState = running.state
    reused = len(before.samples) - before.repeated
    notes = [before.restart] if before.restart else []
    if reused:
        notes.append(f"{plural(reused, 'sample')} of an earlier call reused")
    try:
        outcome = finished(running, progress, verbose=options.verbose)
    except CommandError as error:
        raise CommandError(f"{error}{_kept(running.state, folder)}", error.code) from error
    except KeyboardInterrupt:
        sys.stderr.write(f"{_kept(running.state, folder).strip(' ()')}\n")
        raise
    again = before.repeated - running.state.repeated
    if again:
        notes.append(f"{plural(again, 'sample')} ran again, where a variant had crashed its worker")
    changed = outcome.result.get("changed") or 0
    if changed:
        notes.append(f"{plural(changed, 'sample')} differed from the earlier call and ran again")
    return evaluation_report(running.state, job.samples), notes


def _kept(state: EvalState, folder: Path) -> str:
    """Return where finished samples are, to add to a sentence; empty if there are none."""
    if not state.samples:
        return ""
    return f" ({plural(len(state.samples), 'sample')} kept in {folder}; the same command resumes)"


def _answer(report: EvalReport, notes: Sequence[str], folder: str) -> Answer:
    data: dict[str, Any] = {"folder": folder, **report_content(report)}
    lines = [
        f"{folder}/{SETTINGS}: {plural(report.samples, 'sample')} of {report.settings.data}",
        f"compared with {report.settings.reference}",
        *report.settings.notes,
        *notes,
    ]
    lost = [one for one in report.variants if one.refused]
    issues = [
        Issue(
            Severity.ERROR,
            one.name,
            f"{one.refused:,} of {plural(report.samples, 'sample')} not compared: {one.sentence}",
        )
        for one in lost
    ]
    if report.unreferenced:
        words = f"the reference did not run {plural(report.unreferenced, 'sample')}"
        issues.append(
            Issue(Severity.ERROR, report.settings.reference, f"{words}: {report.sentence}")
        )
    tables = [shown(figures_table(report)), shown(worst_table(report), "worst samples")]
    if any(one.ranges for one in report.variants):
        tables.append(shown(ranges_table(report), "ranges of quantized values"))
    return Answer(
        data,
        lines=lines,
        tables=tables,
        issues=issues,
        code=FAILED if issues else FINE,
    )
