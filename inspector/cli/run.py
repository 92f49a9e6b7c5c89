"""run: a program on our own runtime or the stock one; outputs, trace and times into a folder."""

from __future__ import annotations

import re
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from inspector.cli.answer import FAILED, FINE, USAGE, Answer, CommandError, shown
from inspector.cli.device import check_known
from inspector.cli.job_runs import (
    add_backend_options,
    add_program_data,
    add_timeout,
    check_inputs,
    check_record,
    check_there,
    count,
    count_or_none,
    engine_lines,
    finished,
    program_in_folder,
    refused,
)
from inspector.cli.options import add_folder_output
from inspector.cli.progress import Progress
from inspector.cli.toolchains import add_toolchain, toolchain_python
from inspector.files.run_calls import CALLS
from inspector.jobs.executing import (
    DEBUG_LEVELS,
    MADE_INPUTS,
    PRINTED,
    REPORT,
    STOPPABLE,
    RunJob,
    trace_files,
)
from inspector.jobs.messages import STOP
from inspector.jobs.output_folder import FolderError
from inspector.jobs.run import JobRun
from inspector.recipes.compile_job import EXECUTORCH, PROGRAM, RECORD
from inspector.recipes.data_source import EXPECTED, data_source
from inspector.tables.calls import methods_of, sequence_speed, sequence_table
from inspector.tables.runs import (
    described,
    threads_table,
    threads_text,
    times_table,
    warnings_of,
)
from inspector.toolchain.table import toolchain_named
from schema.errors import Issue, Severity
from schema.objects.plural import plural

_AUTO = "auto"
_WHAT = {"init": "load the method", "load": "load the program"}


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument(
        "program",
        nargs="?",
        default="",
        metavar="MODEL",
        help="a .pte or .bpte file, or a folder with one",
    )
    add_folder_output(parser, "folder for outputs.pt, run.json and the traces; required")
    parser.add_argument("--method", metavar="NAME", default="", help="default: forward")
    _add_inputs(parser)
    parser.add_argument(
        "--runs",
        type=_count_or_auto,
        default=None,
        metavar="N|auto",
        help="how many are measured, with and without a trace; default: auto, until the mean is"
        " known to 2 %%, or for 3 s",
    )
    parser.add_argument(
        "--warmup",
        type=_none_or_auto,
        default=None,
        metavar="N|auto",
        help="how many come before them; default: auto, until their times are alike, or for 2 s",
    )
    parser.add_argument(
        "--print-output",
        choices=PRINTED,
        default=PRINTED[0],
        help="print the outputs: the first and last ten elements of each, or all; default: off",
    )
    _add_recording(parser)
    add_program_data(parser, sweeps=True)
    add_backend_options(parser)
    add_toolchain(parser, "runs it")
    parser.add_argument(
        "--device", metavar="NAME", default="", help="run on a device; etscope device list"
    )
    parser.add_argument(
        "--tidy", action="store_true", help="with --device: remove what was pushed afterwards"
    )
    add_timeout(parser)


def _count_or_auto(text: str) -> int | None:
    return None if text == _AUTO else count(text)


def _none_or_auto(text: str) -> int | None:
    return None if text == _AUTO else count_or_none(text)


def _add_inputs(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--inputs",
        metavar="FILE.pt|random|ones|zeros",
        help="a torch.save file of flattened inputs, or the kind to generate; default: random",
    )
    parser.add_argument(
        "--bundled",
        nargs="?",
        const="0",
        metavar="CASE|FILE.bpte",
        help="use the inputs of a bundled case; default: case 0 of the program itself",
    )
    parser.add_argument(
        "--sequence",
        default="",
        metavar="FOLDER|FILE.py:NAME",
        help="other inputs each call, in one timed pass that keeps the state of the program",
    )
    parser.add_argument(
        "--case", type=count_or_none, metavar="N", help="which bundled case; default: 0"
    )
    parser.add_argument(
        "--seed", type=count_or_none, default=0, metavar="N", help="of random inputs; default: 0"
    )


def _add_recording(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--debug-level",
        choices=DEBUG_LEVELS,
        help="which values are recorded; default: none, intermediate with one of the options below",
    )
    parser.add_argument(
        "--debug-op",
        type=_pattern,
        default="",
        metavar="REGEX",
        help="record intermediate values of these operators only",
    )
    parser.add_argument(
        "--debug-module",
        type=_pattern,
        default="",
        metavar="REGEX",
        help="record intermediate values of these modules only, nested ones included;"
        " needs the record",
    )
    parser.add_argument(
        "--debug-handle",
        type=count,
        action="append",
        default=[],
        dest="debug_handles",
        metavar="N",
        help="record intermediate values of this debug handle; may be repeated; needs the record",
    )
    parser.add_argument(
        "--no-trace", action="store_true", help="record nothing: only runs without a trace"
    )
    parser.add_argument(
        "--record", metavar="MODEL.etrecord", default="", help="the record of the program"
    )


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ArgumentTypeError(f"no regular expression: {error}") from None
    return text


def run(options: Namespace) -> Answer:
    """Run in a worker process; the folder is complete or as it was before."""
    _look_into_folder(options)
    job = _job(options)
    options.inputs = [path for path in (job.program, job.bundle, job.record) if path]
    if options.folder is None:
        raise CommandError("-o DIR is missing: it names the folder", USAGE)
    _check_files(job)
    try:
        running = JobRun(job, Path(options.folder), force=options.force, timeout=options.timeout)
    except FolderError as error:
        raise refused(error) from error
    progress = Progress(sys.stderr, ", ".join(job.libraries), verbose=options.verbose)
    progress.stoppable = STOPPABLE
    outcome = finished(
        running, progress, verbose=options.verbose, stop=lambda: running.send(dict(STOP))
    )
    return _answer(outcome.result, job, str(options.folder))


def _look_into_folder(options: Namespace) -> None:
    """Take the files of a compile where its folder was named; files that were named stay.

    Raises: CommandError for another folder that has no program, or several
    """
    folder = Path(options.program)
    if options.program and (folder / PROGRAM).is_file():
        program, record = str(folder / PROGRAM), folder / RECORD
    else:
        program, name = program_in_folder(options.program)
        record = Path(name)
    if not program:
        return
    options.program = program
    if options.toolchain != EXECUTORCH:  # its runtime runs no recorded graphs
        options.record = options.record or (str(record) if record.is_file() else "")
    options.ptd = options.ptd or [str(path) for path in sorted(folder.glob("*.ptd"))]


def _debug_level(options: Namespace) -> str:
    """Return which values are recorded: intermediate ones where some of them are named.

    Raises: CommandError where they are named and none may be recorded
    """
    none, *_, intermediate = DEBUG_LEVELS
    named = options.debug_op or options.debug_module or options.debug_handles
    if named and (options.no_trace or none == options.debug_level):
        why = "--no-trace" if options.no_trace else f"--debug-level {none}"
        words = "--debug-op, --debug-module and --debug-handle choose among recorded values"
        raise CommandError(f"{words}, {why} records none", USAGE)
    return str(options.debug_level or (intermediate if named else none))


def _job(options: Namespace) -> RunJob:
    program, bundle, case = _bundled(options)
    if not program:
        raise CommandError("which program? MODEL is a .pte or .bpte file", USAGE)
    if options.toolchain_python and not toolchain_named(options.toolchain).has_interpreter:
        raise CommandError("--toolchain-python needs --toolchain executorch", USAGE)
    if (options.debug_module or options.debug_handles) and not options.record:
        words = "--debug-module and --debug-handle need --record MODEL.etrecord"
        raise CommandError(f"{words}: the program names neither", USAGE)
    if options.device:
        check_known(options.device)
    if case is not None and options.inputs is not None:
        raise CommandError("--inputs and --bundled both name inputs", USAGE)
    _check_sequence(options)
    return RunJob(
        program=program,
        method=options.method,
        inputs=options.inputs or MADE_INPUTS[0],
        case=case,
        bundle=bundle,
        seed=options.seed,
        runs=options.runs,
        warmup=options.warmup,
        debug_level=_debug_level(options),
        only=options.debug_op,
        only_module=options.debug_module,
        only_handles=tuple(options.debug_handles),
        traced=not options.no_trace,
        record=options.record,
        data_files=tuple(options.ptd),
        libraries=tuple(options.libraries),
        threads=options.threads or 1,
        sweep_threads=options.threads == 0,
        engine=options.engine,
        backend_options=tuple(options.backend_options),
        toolchain=options.toolchain,
        python=toolchain_python(options),
        print_output=options.print_output,
        device=options.device,
        tidy=options.tidy,
        sequence=options.sequence,
    )


def _check_sequence(options: Namespace) -> None:
    """Refuse what a sequence, which runs once, has no place for."""
    if not options.sequence:
        return
    others = {
        "--inputs": options.inputs,
        "--bundled": options.bundled,
        "--case": options.case is not None,
        "--runs": options.runs,
        "--warmup": options.warmup,
        "--threads sweep": options.threads == 0,
        "--toolchain": bool(options.toolchain),
        "--device": bool(options.device),
    }
    named = [name for name, value in others.items() if value is not None and value is not False]
    if named:
        raise CommandError(f"--sequence cannot be combined with {', '.join(named)}", USAGE)


def _bundled(options: Namespace) -> tuple[str, str, int | None]:
    """Return the program, the bundled program of the case, and its number."""
    given: str | None = options.bundled
    if given is None:
        return options.program, "", options.case
    if given.isascii() and given.isdigit():
        number = int(given[:9])
        return options.program, "", number if options.case is None else options.case
    case = options.case or 0
    return (options.program, given, case) if options.program else (given, "", case)


def _check_files(job: RunJob) -> None:
    """Refuse missing or inconsistent files before the run starts.

    Raises: OSError, FormatError, CommandError
    """
    files = [job.program, job.bundle, job.record, *job.data_files, *job.libraries]
    check_inputs(job.inputs)
    if job.sequence:
        check_inputs(job.sequence)
        if data_source(job.sequence).generated:
            raise CommandError(f"--sequence: {EXPECTED}", USAGE)
    for path in files:
        if path:
            check_there(path)
    check_record(job.program, job.record)


def _answer(report: Mapping[str, Any], job: RunJob, folder: str) -> Answer:
    failure = report["trace"]["failure"]
    issues = [Issue(Severity.ERROR, folder, failure)] if failure else []
    issues += [Issue(Severity.WARNING, folder, text) for text in warnings_of(report)]
    tables = (shown(times_table(report)),)
    if report.get("calls"):
        tables = (shown(sequence_speed(report)), shown(sequence_table(report), "calls"))
    if report.get("thread_sweep"):
        tables = (shown(threads_table(report), "threads"), *tables)
    return Answer(
        report,
        lines=_lines(report, job, folder),
        tables=tables,
        issues=issues,
        code=FAILED if failure else FINE,
    )


def _threads(count: int | None) -> str:
    """Return words for the number of threads, which not every runner of a device takes."""
    return "" if count is None else f" on {plural(count, 'thread')}"


def _named_files(files: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the files with their bytes, those of the calls of a sequence as one."""
    calls = [one for one in files if one["path"].startswith(f"{CALLS}/")]
    named = [f"{one['path']} ({one['bytes']:,} bytes)" for one in files if one not in calls[1:]]
    if len(calls) > 1:
        ends, size = (calls[0]["path"], calls[-1]["path"]), sum(one["bytes"] for one in calls)
        named[files.index(calls[0])] = (
            f"{' to '.join(ends)} ({plural(len(calls), 'file')}, {size:,} bytes)"
        )
    return named


def _lines(report: Mapping[str, Any], job: RunJob, folder: str) -> list[str]:
    files = ", ".join(_named_files(report["files"]))
    times = report["run_ms"] or [report["first_run_ms"] or 0.0]
    if calls := report.get("calls"):
        times = [one["ms"] for one in calls]
    total = f"{sum(times):.6g} ms"
    tool = report["toolchain"]["name"]
    by = f" by {report['where']}" if toolchain_named(tool).has_interpreter else ""
    lines = [
        f"{folder}: {files}, {REPORT}",
        f"Model executed successfully {len(times)} time(s) in {total}:"
        f" {', '.join(methods_of(report))}{_threads(report['threads'])}{by}",
    ]
    if report.get("thread_sweep"):
        lines.append(threads_text(report))
    for place, one in enumerate(report["outputs"]):
        lines.append(f"output {place}: {described(one)}")
        lines += one.get("text", "").splitlines()
    lines += engine_lines(report["partitions"])
    memory = report["memory"]
    planned = sum(memory["planned_bytes"])
    peak = memory["peak_bytes"]
    held = "" if peak is None else f", {peak:,} bytes peak of the process"
    lines.append(f"{planned:,} bytes planned{held}")
    if report["trace"]["recorded"]:
        words = [job.program, job.record, *trace_files(folder, report)]
        lines.append(f"open it: etscope {' '.join(word for word in words if word)}")
    return lines
