"""compare: two sessions or more side by side; compared with the first."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from inspector.cli.answer import FAILED, FINE, UNREADABLE, USAGE, Answer, CommandError, Shown, shown
from inspector.cli.device import check_known
from inspector.cli.job_runs import (
    add_backend_options,
    add_engine,
    add_libraries,
    add_timeout,
    check_inputs,
    count,
    count_or_none,
    finished,
)
from inspector.cli.options import add_output, add_reading, open_sides, split_names
from inspector.cli.output import refuse_existing, refuse_inputs, write_text
from inspector.cli.progress import Progress
from inspector.compare.content import comparison_content
from inspector.compare.model import Comparison
from inspector.compare.output_errors import OutputErrors
from inspector.compare.sessions import compare_sessions
from inspector.experiments.evaluate.comparing import errors_job, output_errors
from inspector.experiments.evaluate.report import evaluation_report
from inspector.files.origin import device_name
from inspector.files.session import Session
from inspector.files.session_groups import split_sessions
from inspector.graph.methods import method_to_run
from inspector.jobs.executing import MADE_INPUTS, MeasureJob, RunJob
from inspector.jobs.gap import GapJob
from inspector.jobs.measure import Measurement
from inspector.jobs.messages import Ended
from inspector.jobs.run import JobRun
from inspector.numerics.report import GapReport
from inspector.recipes.data_source import EXAMPLE
from inspector.render.comparison import comparison_html
from inspector.tables.compare import headline, letters_of, summary_table
from inspector.tables.compare_lists import CHANGES, LISTS, detail_table
from inspector.tables.device_ratios import ratios_table
from schema.errors import Issue, Severity

_SHOWN = 15
_FEW = 6  # blocks below which little can be told


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the verb."""
    what = "file or folder of one program; several files with commas"
    parser.add_argument("sessions", nargs="+", metavar="A", help=f"two or more: {what}")
    add_reading(parser)
    parser.add_argument(
        "--measure",
        type=count,
        metavar="N",
        help="run the programs here, in N blocks of warm runs one after the other; 16 are enough",
    )
    parser.add_argument(
        "--device", metavar="NAME", default="", help="with --measure: run them on a device"
    )
    parser.add_argument(
        "--inputs",
        dest="inputs_file",
        metavar="FILE.pt|random|ones|zeros",
        default=MADE_INPUTS[0],
        help="of the runs measured here; default: random",
    )
    parser.add_argument(
        "--seed", type=count_or_none, default=0, metavar="N", help="of random inputs; default: 0"
    )
    parser.add_argument(
        "--threads", type=count, default=1, metavar="N", help="default: 1, which is steadiest"
    )
    add_engine(parser)
    parser.add_argument(
        "--no-gap",
        action="store_true",
        help="compute no errors, of outputs or recorded values",
    )
    parser.add_argument(
        "--reference",
        default="",
        metavar="GRAPH",
        help="what recorded values are compared with, as in gap; float: the programs before they"
        " were quantized",
    )
    parser.add_argument("--html", metavar="FILE", help="write a report, one self-contained file")
    parser.add_argument(
        "--top", type=count_or_none, default=_SHOWN, metavar="N", help="rows of output; default: 15"
    )
    add_libraries(parser)
    add_backend_options(parser, "with --measure: ")
    add_timeout(parser)
    add_output(parser)


def run(options: Namespace) -> Answer:
    """Compare; a difference is not an error, a program that cannot be measured is one."""
    sides = [split_names(names) for names in options.sessions]
    if len(sides) == 1:  # a folder of several programs
        sides = [list(group) for group in split_sessions(sides[0])]
    if len(sides) < 2:
        raise CommandError(
            "compare takes two or more: A B, files or folders, or a folder of several programs",
            USAGE,
        )
    if options.device:
        check_known(options.device)
    check_inputs(options.inputs_file)
    sessions = open_sides(options, sides)
    if options.html is not None:
        refuse_existing(Path(options.html), force=options.force)
        refuse_inputs(Path(options.html), options.inputs)
    progress = Progress(sys.stderr, verbose=options.verbose)
    measured = None
    if options.measure is not None:
        measured = _measured(sessions, options, progress)
    gaps, issues = ([], []) if options.no_gap else _gaps(sessions, options, progress)
    blocks: int = options.measure or _FEW
    if blocks < _FEW:
        words = f"{blocks} blocks are few; use {_FEW} or more to detect small differences"
        issues.append(Issue(Severity.INFO, "compare", words))
    lost = [each for each in (measured.programs if measured is not None else ()) if each.failure]
    issues += [Issue(Severity.ERROR, each.job.program, each.failure) for each in lost]
    errors = None if options.no_gap else _errors(sessions, options, progress)
    found = compare_sessions(sessions, measured, gaps, options.method or "", errors=errors)
    if options.html is not None:
        write_text(Path(options.html), [comparison_html(found, sessions)], force=options.force)
    letters = letters_of(len(found.names))
    tables = [shown(summary_table(found, letters))]
    if options.format == "text":
        tables += _lists(found, letters, options.top)
        if len(set(map(device_name, sessions))) > 1:
            tables.append(shown(ratios_table(found, sessions), "ratios by operator"))
    names = ", ".join(f"{letter} {name}" for letter, name in zip(letters, found.names, strict=True))
    data = comparison_content(found, measured)
    code = FAILED if lost else FINE
    lines = [names, headline(found, letters), *found.notes]
    return Answer(data, lines=lines, tables=tables, issues=issues, code=code)


def _lists(found: Comparison, letters: Sequence[str], top: int) -> list[Shown]:
    """Return the lists that have rows; all differences are shown by ``diff``."""
    named = [
        (words, detail_table(found, kind, letters)) for kind, words in LISTS if kind != CHANGES
    ]
    return [shown(table, words, top=top) for words, table in named if table.length]


# ---- time
def _measured(sessions: Sequence[Session], options: Namespace, progress: Progress) -> Measurement:
    """Run all programs side by side.

    Raises: CommandError if a program or a common method is missing, or nothing could be measured
    """
    programs = tuple(_program(session, options) for session in sessions)
    method = options.method or method_to_run(sessions)
    if not method:
        had = "; ".join(f"{one.name}: {', '.join(one.methods) or 'none'}" for one in sessions)
        raise CommandError(f"--measure needs a method that all programs have ({had})", USAGE)
    programs = tuple(replace(program, method=method) for program in programs)
    running = JobRun(MeasureJob(programs, options.measure), timeout=options.timeout)
    try:
        while running.outcome is None:
            progress.show(running.take(0.1))
        progress.show(running.take())
        progress.end()
    finally:
        running.close()
    outcome = running.outcome
    assert outcome is not None
    if outcome.ended is not Ended.FINISHED:
        codes = {"usage": USAGE, "unreadable": UNREADABLE}
        raise CommandError(outcome.sentence, codes.get(outcome.blame, FAILED))
    return running.state


def _program(session: Session, options: Namespace) -> RunJob:
    paths = {kind: [f.path for f in session.files if f.kind == kind] for kind in _RUN_KINDS}
    programs = paths["pte"] or paths["bpte"]
    if not programs:
        raise CommandError(
            f"--measure needs a program on every side; {session.name} has none", USAGE
        )
    return RunJob(
        programs[0],
        method=options.method or "",
        inputs=options.inputs_file,
        seed=options.seed,
        record=next(iter(paths["etrecord"]), ""),
        data_files=tuple(paths["ptd"]),
        libraries=tuple(options.libraries),
        threads=options.threads,
        engine=options.engine,
        backend_options=tuple(options.backend_options),
        device=options.device,
    )


_RUN_KINDS = ("pte", "bpte", "ptd", "etrecord")


# ---- errors
def _errors(sessions: Sequence[Session], options: Namespace, progress: Progress) -> OutputErrors:
    """Return the errors of the outputs of all programs on the same inputs."""
    how = RunJob(
        "",
        method=options.method or "",
        libraries=tuple(options.libraries),
        threads=options.threads,
        engine=options.engine,
    )
    generated = options.inputs_file == MADE_INPUTS[0]  # whose values no program was made for
    job = errors_job(sessions, how, EXAMPLE if generated else options.inputs_file)
    if isinstance(job, OutputErrors):
        return job
    running = JobRun(job, timeout=options.timeout)
    try:
        finished(running, progress, verbose=options.verbose)
    except CommandError as error:
        return OutputErrors(how.method, notes=(f"errors of outputs are not computed: {error}",))
    return output_errors(evaluation_report(running.state), how.method)


def _gaps(
    sessions: Sequence[Session], options: Namespace, progress: Progress
) -> tuple[list[GapReport | None], list[Issue]]:
    """Return the errors of sessions with values; empty if only one has them."""
    able = [
        session.program is not None
        and session.record is not None
        and bool(session.dumps)
        and session.debug_buffer is not None
        for session in sessions
    ]
    if sum(able) < 2:
        return [], []
    found: list[GapReport | None] = []
    issues: list[Issue] = []
    for session, can in zip(sessions, able, strict=True):
        found.append(None)
        if not can:
            continue
        files = tuple(file.path for file in session.files if not file.error)
        running = JobRun(
            GapJob(
                files,
                method=options.method or "",
                reference=options.reference,
                libraries=tuple(options.libraries),
            ),
            timeout=options.timeout,
        )
        try:
            finished(running, progress, verbose=options.verbose)
            found[-1] = running.state
        except CommandError as error:
            issues.append(Issue(Severity.WARNING, session.name, f"no errors: {error}"))
    return found, issues
