"""roofline: FLOPs, bytes, rates, and the limits of the machine that ran them."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from typing import Any

from inspector.cli.answer import Answer, Shown, shown
from inspector.cli.device import check_known
from inspector.cli.job_runs import add_timeout, count, finished
from inspector.cli.options import add_files, methods, open_files
from inspector.cli.progress import Progress
from inspector.cli.toolchains import add_toolchain, toolchain_python
from inspector.jobs.calibrate import CallCostsJob, usual_job
from inspector.jobs.run import JobRun
from inspector.roofline.calibration import Calibration, Ceiling, load_calibration
from inspector.roofline.call_costs import CallCosts, known_costs
from inspector.roofline.rows import Roofline, RooflineRow, limits_of, rate_text, roofline
from inspector.roofline.work import work_json, work_text
from inspector.tables.roofline import note, roofline_table
from inspector.tables.selection import AUTOMATIC
from inspector.toolchain.table import toolchain_named
from inspector.units import Quantity, format_quantity, format_share, format_time
from schema.errors import FormatError, Issue, Severity
from schema.objects.plural import plural

_ADVICE = "not calibrated: etscope roofline FILES… --calibrate measures this machine once"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the verb."""
    add_files(parser)
    parser.add_argument(
        "--threads", type=count, metavar="N", help="limits of N threads; default: those of the run"
    )
    parser.add_argument(
        "--calibrate", action="store_true", help="measure the limits of this machine first"
    )
    parser.add_argument(
        "--calibrate-calls",
        action="store_true",
        help="measure what calls cost first: on this runtime, of --toolchain, or on a --device",
    )
    add_toolchain(parser, "has the calls that are measured")
    parser.add_argument(
        "--device", metavar="NAME", default="", help="with --calibrate-calls: on a device"
    )
    add_timeout(parser)


def run(options: Namespace) -> Answer:
    """Return the operators of every method held against the limits of this machine."""
    session = open_files(options)
    issues: list[Issue] = []
    calibration = _measured(options) if options.calibrate else _calibration(issues)
    if options.calibrate_calls:
        _measure_calls(options)
    costs = list(known_costs())
    limits = limits_of(session, calibration, options.threads)
    found = {name: roofline(session, name, limits) for name in methods(session, options)}
    lines = [_limits_line(calibration, limits.threads)]
    lines += [limits.note] if limits.note else []
    lines += [f"calls on {one.described}" for one in costs]
    lines += [line for one in found.values() for line in _lines(one)]
    data = {
        "methods": {name: roofline_json(one) for name, one in found.items()},
        "limits": {
            "threads": limits.threads,
            "note": limits.note or None,
            "calibration": None if calibration is None else calibration_json(calibration),
            "calls": [costs_json(one) for one in costs],
        },
    }
    return Answer(data, lines=lines, tables=[_table(one) for one in found.values()], issues=issues)


def _measured(options: Namespace) -> Calibration:
    """Return the limits of this machine, measured now, in a worker process."""
    running = JobRun(usual_job(options.threads), timeout=options.timeout)
    progress = Progress(sys.stderr, verbose=options.verbose)
    finished(running, progress, verbose=options.verbose)
    return running.result


def _measure_calls(options: Namespace) -> None:
    """Measure the costs of calls on a target, in a worker process."""
    if options.device:
        check_known(options.device)
    job = CallCostsJob(options.toolchain, toolchain_python(options), options.device)
    if not toolchain_named(options.toolchain).has_interpreter:
        job = replace(job, toolchain="")
    running = JobRun(job, timeout=options.timeout)
    finished(running, Progress(sys.stderr, verbose=options.verbose), verbose=options.verbose)


def costs_json(one: CallCosts) -> dict[str, Any]:
    """Return the JSON of the costs of calls on a target, in nanoseconds."""
    return {
        "target": one.target,
        "release": one.release,
        "date": one.date,
        "stale": one.stale,
        "run_ns": one.run,
        "instruction_ns": one.instruction,
        "call_ns": one.call,
        "byte_ns": one.byte,
        "fewest_nodes": one.fewest_nodes,
        "least_work": one.least_work,
    }


def _calibration(issues: list[Issue]) -> Calibration | None:
    """Return the calibration of this machine; one that cannot be used is an issue."""
    try:
        return load_calibration()
    except (FormatError, OSError) as error:
        issues.append(Issue(Severity.WARNING, "calibration", f"{error}; calibrate again"))
        return None


def _table(one: Roofline) -> Shown:
    return shown(roofline_table(one.rows, one.method.label, AUTOMATIC), one.method.label)


def _limits_line(calibration: Calibration | None, threads: int) -> str:
    if calibration is None:
        return _ADVICE
    peaks = [
        f"{one.what} {format_quantity(one.median, Quantity.OPERATION_RATE)}"
        for one in calibration.compute
        if one.threads == threads
    ]
    bandwidth = calibration.bandwidth(threads)
    if bandwidth is not None:
        peaks.append(f"memory {format_quantity(bandwidth.median, Quantity.BANDWIDTH)}")
    with_threads = f"{plural(threads, 'thread')}: {', '.join(peaks) or 'not measured'}"
    return f"{calibration.described}; {with_threads}"


def _lines(one: Roofline) -> list[str]:
    whole = one.method
    words = f"method {whole.label}: {work_text(whole.work)}"
    if whole.time_ns is not None and whole.flops_per_s is not None:
        words += f" in {format_time(whole.time_ns)}: {rate_text(whole)}"
    if whole.share is not None:
        words += f", {format_share(whole.share)} of the limit"
    lines = [words]
    if one.unknown:
        names = ", ".join(sorted({f"{label} ({why})" for label, why in one.unknown})[:5])
        lines.append(f"  {plural(len(one.unknown), 'operator')} without FLOPs or bytes: {names}")
    return lines


def roofline_json(one: Roofline) -> dict[str, Any]:
    """Return the JSON of one method."""
    return {
        "total": _row_json(one.method),
        "operators": [_row_json(row) for row in one.rows],
        "unknown": [{"operator": label, "reason": why} for label, why in one.unknown],
    }


def _row_json(row: RooflineRow) -> dict[str, Any]:
    return {
        "operator": row.label,
        "module": row.module or None,
        "delegate": row.delegate or None,
        "instruction": row.instruction,
        "node": row.node or None,
        "passes": row.passes,
        "time_ns": row.time_ns,
        **work_json(row.work),
        "flops_per_s": row.flops_per_s,
        "bytes_per_s": row.bytes_per_s,
        "share": row.share,
        "limit": row.bound.value or None,
        "note": note(row) or None,
    }


def calibration_json(found: Calibration) -> dict[str, Any]:
    """Return the JSON of a calibration."""
    return {
        "cpu": found.machine.cpu,
        "cores": found.machine.cores,
        "torch": found.torch,
        "date": found.date,
        "stale": found.stale,
        "compute": [_ceiling_json(one) for one in found.compute],
        "memory": [_ceiling_json(one) for one in found.memory],
        "missing": list(found.missing),
    }


def _ceiling_json(one: Ceiling) -> dict[str, Any]:
    return {
        "what": one.what,
        "threads": one.threads,
        "median": one.median,
        "p10": one.low,
        "p90": one.high,
        "blocks": one.blocks,
    }
