"""gate: does a program meet its requirements? For continuous integration."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from inspector.cli.answer import FINE, JUDGED, USAGE, Answer, CommandError, shown
from inspector.cli.eval import add_data, check_data
from inspector.cli.gate_subject import GateSubject, evaluation_of, measured, opened, subject_gap
from inspector.cli.job_runs import add_engine, add_libraries, add_timeout, check_inputs, count
from inspector.cli.options import FORMATS, add_reading
from inspector.cli.output import refuse_existing, refuse_inputs, write_text
from inspector.experiments.gates.evidence import Evidence, MissingError
from inspector.experiments.gates.gates_file import read_gates
from inspector.experiments.gates.history import append_run, gate_run, read_history, trends
from inspector.experiments.gates.judging import Judgement, judge_requirement
from inspector.experiments.gates.junit import error_text, junit_text
from inspector.experiments.gates.requirement import (
    Kind,
    Requirement,
    RequirementError,
    parse_requirement,
)
from inspector.experiments.gates.several import JudgedGate
from inspector.jobs.output_folder import HIDDEN
from inspector.recipes.data_source import fingerprint
from inspector.roofline.call_costs import THIS, device_target
from inspector.tables.gates import gate_table
from inspector.tables.table import Table
from schema.errors import FormatError

JUNIT, XML = "junit", b"<?xml"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument(
        "files", nargs="+", metavar="RECIPE|FILE", help="a recipe.json, or files of one program"
    )
    parser.add_argument(
        "--require",
        action="append",
        default=[],
        metavar="REQUIREMENT",
        help="such as 'delegated>=98%%', 'arena<=4MiB', 'gap.max_abs<=1e-3' or"
        " 'latency<=1.1x baseline'; may be repeated",
    )
    parser.add_argument(
        "--gates",
        metavar="FILE",
        help="a file with a requirement on each line; # begins a comment",
    )
    parser.add_argument(
        "--baseline",
        nargs="+",
        default=[],
        metavar="RECIPE|FILE",
        help="baseline of relative requirements",
    )
    add_reading(parser)
    _add_running(parser)
    parser.add_argument(
        "--eval",
        dest="evaluation",
        default="",
        metavar="DIR",
        help="folder of an evaluation (etscope eval) of these programs, for eval.… requirements",
    )
    add_data(parser)
    parser.add_argument("--format", choices=(*FORMATS, JUNIT), default="text", help="default: text")
    parser.add_argument(
        "--history",
        metavar="FILE",
        help="append the figures of this run to a file of JSON lines, and show their trend",
    )
    parser.add_argument("--junit", metavar="FILE", help="write the answer as JUnit XML as well")
    parser.add_argument("-o", "--output", metavar="FILE", help="write here, not to the terminal")
    parser.add_argument("--force", action="store_true", help="replace outputs that exist")
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="show the traceback of an error"
    )


def _add_running(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--measure",
        type=count,
        metavar="N",
        help="run here for the latency, in N blocks of runs; a recipe is always run here",
    )
    parser.add_argument(
        "--inputs",
        dest="run_inputs",
        metavar="FILE.pt|random|ones|zeros",
        default="",
        help="inputs of runs; default: random",
    )
    parser.add_argument(
        "--device", metavar="NAME", default="", help="run and measure on a device, not here"
    )
    parser.add_argument(
        "--threads", type=count, default=1, metavar="N", help="threads of runs; default: 1"
    )
    add_engine(parser)
    parser.add_argument(
        "--keep",
        metavar="DIR",
        default="",
        help="keep the compiled files of a recipe in this folder",
    )
    add_libraries(parser)
    add_timeout(parser)


def run(options: Namespace) -> Answer:
    """Judge; exit code 1 if a requirement is not met.

    If judging fails, requested JUnit documents report it as errors.
    """
    if options.junit is not None:
        refuse_existing(Path(options.junit), force=options.force)
    try:
        return _run(options)
    except OSError as error:
        _write_error(f"{error.filename}: {error.strerror}", options)
        raise
    except (CommandError, FormatError) as error:
        _write_error(str(error), options)
        raise


def _write_error(sentence: str, options: Namespace) -> None:
    """Write JUnit documents about a failed gate, never overwriting inputs."""
    document = error_text(options.require, " ".join(options.files), sentence)
    if options.format == JUNIT and options.output is None:
        sys.stdout.write(document)
    targets = [options.junit, options.output if options.format == JUNIT else None]
    for path in (Path(one) for one in targets if one is not None):
        with contextlib.suppress(CommandError, OSError):  # the sentence counts, not a second one
            if path.exists() and not path.read_bytes().startswith(XML):
                continue
            write_text(path, [document], force=options.force)


def _run(options: Namespace) -> Answer:
    asked = _requirements(options)
    if any(one.kind is Kind.EVAL for one in asked) and not options.evaluation:
        if not options.data:
            raise CommandError("eval.… needs --data DATA, or --eval DIR of etscope eval", USAGE)
        check_data(options)
    if options.history is not None:
        read_history(Path(options.history))
    if options.run_inputs:
        check_inputs(options.run_inputs)
    with tempfile.TemporaryDirectory(prefix=HIDDEN, ignore_cleanup_errors=True) as scratch:
        subject = opened(options.files, options, Path(scratch) / "subject", options.keep)
        base = None
        if options.baseline:
            base = opened(options.baseline, options, Path(scratch) / "baseline")
        try:
            found = _judged(asked, subject, base, options)
        except MissingError as error:
            raise CommandError(str(error), USAGE) from error
    return _answer(found, subject, base, options)


def _requirements(options: Namespace) -> list[Requirement]:
    if options.gates:
        listed = read_gates(Path(options.gates))
        options.require = [*(one.text for one in listed), *options.require]
    if not options.require:
        raise CommandError("no requirements: use --require 'delegated>=98%'", USAGE)
    try:
        asked = [parse_requirement(text) for text in options.require]
    except RequirementError as error:
        raise CommandError(f"--require {error}", USAGE) from error
    for one in asked:
        if one.relative and not options.baseline:
            raise CommandError(
                f"{one.text!r} needs the files of the baseline: --baseline FILES", USAGE
            )
    return asked


def _judged(
    asked: Sequence[Requirement], subject: GateSubject, base: GateSubject | None, options: Namespace
) -> list[Judgement]:
    """Judge by the files, then run and compare if requirements need it.

    Raises: MissingError, CommandError
    """
    found: dict[int, Judgement] = {}
    for kind in Kind:
        requested = [(number, one) for number, one in enumerate(asked) if one.kind is kind]
        relative = any(one.relative for _, one in requested)
        sides = [subject, base] if relative and base is not None else [subject]
        known = _evidence(kind, sides, options) if requested else []
        for number, one in requested:
            found[number] = judge_requirement(one, *known)
    return [found[number] for number in range(len(asked))]


def _evidence(kind: Kind, sides: Sequence[GateSubject], options: Namespace) -> list[Evidence]:
    """Return the evidence of each side; compiled programs are run here, and then both are."""
    plain = [Evidence(one.session, one.what, options.method or "") for one in sides]
    if kind is Kind.EVAL:
        return [
            replace(known, evaluation=evaluation_of(one, options))
            for known, one in zip(plain, sides, strict=True)
        ]
    if kind is Kind.GAP:
        pairs = zip(plain, sides, strict=True)
        return [replace(known, gap=subject_gap(one, options)) for known, one in pairs]
    here = options.measure is not None or any(one.folder is not None for one in sides)
    if kind is Kind.PROGRAM or not here:
        return plain
    times = measured(sides, options)
    ran = device_target(options.device) if options.device else THIS
    return [replace(known, times=each, ran=ran) for known, each in zip(plain, times, strict=True)]


def _answer(
    found: Sequence[Judgement], subject: GateSubject, base: GateSubject | None, options: Namespace
) -> Answer:
    document = junit_text(found, subject.what)
    if options.junit is not None:
        refuse_inputs(Path(options.junit), options.inputs)
        write_text(Path(options.junit), [document], force=options.force)
    past, trend = _history(found, subject, options)
    data = {
        "met": all(one.met for one in found),
        "history": past,
        "requirements": [one.content() for one in found],
        "baseline": list(options.baseline),
        "kept": options.keep or None,
    }
    sides = [one for one in (subject, base) if one is not None]
    return Answer(
        data,
        lines=[*(one.line() for one in found), *trend],
        tables=() if options.format == "text" else (shown(_table(found, subject).complete()),),
        issues=[issue for one in sides for issue in one.issues],
        code=FINE if data["met"] else JUDGED,
        document=[document] if options.format == JUNIT else None,
    )


def _table(found: Sequence[Judgement], subject: GateSubject) -> Table:
    return gate_table([JudgedGate(subject.what, one.requirement, one) for one in found])


def _history(
    found: Sequence[Judgement], subject: GateSubject, options: Namespace
) -> tuple[dict[str, Any] | None, list[str]]:
    """Add this run to the history; return the trend for JSON and as lines.

    Raises: FormatError, OSError
    """
    if options.history is None:
        return None, []
    program, path = subject.file("pte", "bpte"), Path(options.history)
    run = gate_run(found, subject.what, fingerprint(program) if program else "")
    append_run(path, run)
    runs = read_history(path)
    trend = trends(runs, [one.requirement.metric for one in found])
    content = {"file": str(path), "runs": len(runs), "trend": [one.content() for one in trend]}
    return content, [one.line() for one in trend]
