"""step: inside of one delegate call: run to a node, read values, replace them, go on."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from inspector.cli.answer import USAGE, Answer, CommandError, shown
from inspector.cli.job_runs import (
    add_backend_options,
    add_program_data,
    add_timeout,
    check_inputs,
    count_or_none,
    finished,
    program_in_folder,
    refused,
)
from inspector.cli.options import add_output
from inspector.cli.output import refuse_inputs
from inspector.cli.progress import Progress
from inspector.files.load import load_session
from inspector.jobs.executing import MADE_INPUTS, StepJob
from inspector.jobs.output_folder import FolderError
from inspector.jobs.run import JobRun
from inspector.tables.steps import node_table, value_table, with_recorded
from schema.recipe.assignments import AssignmentError, assignment_error, parse_setting

_REPLACEMENT = "ID=zeros, ID=ones, ID=NUMBER or ID=FILE.pt"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument(
        "program", metavar="MODEL", help="a .pte or .bpte file, or a folder with one"
    )
    parser.add_argument("--method", metavar="NAME", default="", help="default: forward")
    parser.add_argument(
        "--call",
        type=count_or_none,
        default=0,
        metavar="N",
        help="which delegate call of the run; default: 0, the first",
    )
    parser.add_argument(
        "--to",
        dest="stop",
        type=count_or_none,
        metavar="NODE",
        help="show the values computed before this node; default: those of all nodes",
    )
    parser.add_argument(
        "--value",
        dest="values",
        action="append",
        type=count_or_none,
        default=[],
        metavar="ID",
        help="show this value; may be repeated; default: all",
    )
    parser.add_argument(
        "--replace",
        dest="replacements",
        action="append",
        type=_replacement,
        default=[],
        metavar="ID=zeros|ones|NUMBER|FILE.pt",
        help="replacement of a value once it is computed; may be repeated",
    )
    parser.add_argument(
        "--record", default="", metavar="MODEL.etrecord", help="names the nodes and source lines"
    )
    parser.add_argument(
        "--save", metavar="FILE.pt", help="write the values shown, a dictionary by id"
    )
    parser.add_argument(
        "--inputs",
        metavar="FILE.pt|random|ones|zeros",
        help="a torch.save file of flattened inputs, or the kind to generate; default: random",
    )
    parser.add_argument(
        "--case", type=count_or_none, metavar="N", help="inputs of this bundled case"
    )
    parser.add_argument(
        "--seed", type=count_or_none, default=0, metavar="N", help="of random inputs; default: 0"
    )
    add_program_data(parser)
    add_backend_options(parser)
    add_timeout(parser)
    add_output(parser)


def _replacement(text: str) -> tuple[int, str]:
    try:
        ident, what = parse_setting(text, _REPLACEMENT)
        if not what or not ident.isascii() or not ident.isdigit() or len(ident) > 9:
            raise assignment_error(
                text, _REPLACEMENT, repr(ident) if what else "nothing behind '='"
            )
    except AssignmentError as error:
        raise ArgumentTypeError(str(error)) from error
    return int(ident), what


def run(options: Namespace) -> Answer:
    """Step through the call in a worker process."""
    program, record = program_in_folder(options.program)
    options.program = program or options.program
    options.record = options.record or record
    job = _job(options)
    options.inputs = [job.program]
    files = [
        *job.data_files,
        *job.libraries,
        *_files(job),
        *([options.record] if options.record else ()),
    ]
    for path in (job.program, *files):
        check_inputs(path)
    target = Path(options.save) if options.save else None
    if target is not None:
        refuse_inputs(target, [job.program, *files])
    try:
        running = JobRun(job, target, force=options.force, timeout=options.timeout)
    except FolderError as error:
        raise refused(error) from error
    progress = Progress(sys.stderr, ", ".join(job.libraries), verbose=options.verbose)
    report = finished(running, progress, verbose=options.verbose).result
    record = load_session([options.record], strict=True).record if options.record else None
    nodes = with_recorded(record, report["method"], report["nodes"])
    return _answer({**report, "nodes": nodes})


def _job(options: Namespace) -> StepJob:
    if options.case is not None and options.inputs is not None:
        raise CommandError("--inputs and --case both name inputs", USAGE)
    return StepJob(
        program=options.program,
        method=options.method,
        call=options.call,
        stop=options.stop,
        values=tuple(options.values),
        replacements=tuple(options.replacements),
        inputs=options.inputs or MADE_INPUTS[0],
        case=options.case,
        seed=options.seed,
        record=options.record,
        save=bool(options.save),
        data_files=tuple(options.ptd),
        libraries=tuple(options.libraries),
        threads=options.threads,
        engine=options.engine,
        backend_options=tuple(options.backend_options),
    )


def _files(job: StepJob) -> list[str]:
    """Return the files of tensors a job reads."""
    files = [what for _, what in job.replacements if not _is_filling(what)]
    return files if job.inputs in MADE_INPUTS else [job.inputs, *files]


def _is_filling(what: str) -> bool:
    if what in ("zeros", "ones"):
        return True
    try:
        float(what)
    except ValueError:
        return False
    return True


def _answer(report: Mapping[str, Any]) -> Answer:
    values = {each["value"]: each for each in report["values"]}
    tables = (
        shown(node_table(report["nodes"], values)),
        shown(value_table(values), "values"),
    )
    return Answer(report, lines=_lines(report), tables=tables)


def _lines(report: Mapping[str, Any]) -> list[str]:
    lines = [
        f"delegate call {report['call']} of {report['calls']}: {report['backend']}, instruction"
        f" {report['instruction']}, {len(report['nodes'])} nodes, {report['source']}"
    ]
    if report["note"]:
        lines.append(report["note"])
    if report["stopped_at"] is not None:
        lines.append(
            f"stopped before node {report['stopped_at']}; then the run continued to its end"
        )
    for place, output in enumerate(report["outputs"]):
        if output["kind"] != "tensor":
            continue
        message = f"output {place}: {output['dtype']} {output['shape']}"
        if output["difference"] is not None:
            message += f", {output['difference']:.6g} from the run without replacements"
        lines.append(message)
    return lines
