"""Verifies cases of a bundled program: each runs on a newly loaded program and is compared."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any, TypeAlias

import torch

from inspector.jobs.executing import VerifyJob
from inspector.worker.exporter import AnswerError, Say, timed_stage
from inspector.worker.missing_data import missing_data_named
from runtime import ErrorCode, ExecutionError, Method, Program, Runtime
from runtime.program.loading import read
from runtime.verify import CaseResult, load_bundled_input, verify_method_outputs
from schema import bundled, etrecord
from schema.version import __version__

_Files: TypeAlias = tuple[bundled.BundledFile, etrecord.RecordFile | None]
PASSED, FAILED, NOT_COMPARED, ERROR = "passed", "failed", "not compared", "error"


def verify(job: VerifyJob, notify: Say) -> dict[str, Any]:
    """Run all cases; return the verdict on each.

    A case that cannot run counts as failed; the others still run. Cases share no state: each loads
    the program again.

    Raises: AnswerError for a method without cases; FormatError, ExecutionError for an invalid
        bundled program
    """
    if job.threads:
        torch.set_num_threads(job.threads)
    with timed_stage(notify, "load"):
        data, file = read(job.program)
        found = bundled.decode(data, file=file)
        record = etrecord.decode(read(job.record)[0], file=job.record) if job.record else None
    requested = [
        (suite.method_name, case)
        for suite in found.method_test_suites
        if job.method in ("", suite.method_name)
        for case in range(len(suite.test_cases))
    ]
    if not requested:
        there = ", ".join(suite.method_name for suite in found.method_test_suites) or "none"
        raise AnswerError(
            f"no cases of {job.method or 'any method'} in {job.program}; available: {there}"
        )
    rows: list[dict[str, Any]] = []
    with timed_stage(notify, "run"):
        for name, case in requested:
            rows.append(_case(job, (found, record), name, case))
            notify("counted", done=len(rows), total=len(requested))
    return _report(job, rows)


def _case(job: VerifyJob, files: _Files, name: str, case: int) -> dict[str, Any]:
    file, record = files
    row: dict[str, Any] = {"method": name, "case": case, "partitions": []}
    try:
        with missing_data_named(job.program, job.data_files):
            program = Runtime.get().load_program(file.program, data_path=list(job.data_files))
            method = _loaded(program, name, job.engine, record)
        load_bundled_input(method, file, case)
        start = time.perf_counter()
        method.run()
        row["time_ms"] = (time.perf_counter() - start) * 1e3
        row["partitions"] = [asdict(one) for one in method.measurements]
        found = verify_method_outputs(method, file, case, rtol=job.rtol, atol=job.atol)
    except ExecutionError as error:
        return {"time_ms": None, **row, "verdict": ERROR, "error": str(error), "outputs": []}
    outputs = [{**asdict(entry), "passed": entry.mismatched == 0} for entry in found.stats]
    return {**row, "verdict": _verdict(found), "error": "", "outputs": outputs}


def _loaded(program: Program, name: str, engine: str, record: etrecord.RecordFile | None) -> Method:
    try:
        return program.load_method(name, engine=engine, emulate=record)
    except KeyError as error:
        raise ExecutionError(ErrorCode.InvalidArgument, str(error.args[0])) from None


def _verdict(found: CaseResult) -> str:
    if not found.compared:
        return NOT_COMPARED
    return PASSED if found.passed else FAILED


def _report(job: VerifyJob, rows: list[dict[str, Any]]) -> dict[str, Any]:
    verdicts = [row["verdict"] for row in rows]
    return {
        "etscope": __version__,
        "program": job.program,
        "rtol": job.rtol,
        "atol": job.atol,
        "passed": verdicts.count(PASSED),
        "failed": verdicts.count(FAILED) + verdicts.count(ERROR),
        "not_compared": verdicts.count(NOT_COMPARED),
        "cases": rows,
    }
