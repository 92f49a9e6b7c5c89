"""One comparison of a run with its recorded program in the worker."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from inspector.files.load import load_session
from inspector.files.run_calls import CALLS
from inspector.files.session import Session
from inspector.jobs.gap import REPORT, GapJob
from inspector.jobs.run_folder import kept_inputs, kept_method, run_folder
from inspector.numerics.metrics import Tolerance
from inspector.numerics.replay.analysis import Options, analyse_gap
from inspector.numerics.replay.references import MappedReference
from inspector.rebuild.serde_rewrite import RebuildError
from inspector.worker import exporter
from inspector.worker.exporter import Say, timed_stage
from inspector.worker.libraries import load_libraries
from inspector.worker.tasks import Task
from schema.errors import FormatError

_STEP_SECONDS = 0.1  # progress messages at most ten times a second


class InputsError(ValueError):
    """A file that holds no inputs."""


def known_names() -> dict[str, list[str]]:
    """Return the names a job may use: none."""
    return {}


def work(job: GapJob, task: Task) -> dict[str, Any]:
    """Compare into the folder of a task; see ``compare``."""
    return compare(job, task.folder, task.notify)


def compare(job: GapJob, folder: Path, notify: Say) -> dict[str, Any]:
    """Compare and write the report, and tensors to keep, into a folder.

    Raises: FormatError, RebuildError, InputsError, OSError
    """
    with timed_stage(notify, "load"):
        load_libraries(job.libraries)
        session = load_session(list(job.files))
    inputs = job.inputs or kept_inputs(session)
    options = Options(
        method=job.method,
        assumed=kept_method(session),
        reference=job.reference,
        float_program=_float_programs(session, notify),
        tolerance=Tolerance(job.relative, job.absolute),
        inputs=_inputs(inputs) if inputs else None,
        call_inputs=_call_inputs(session),
        runs=job.runs,
        folder=folder,
        keep=job.keep,
    )
    last = 0.0

    def report_progress(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _STEP_SECONDS or done == total:
            last = now
            notify("counted", done=done, total=total)

    with timed_stage(notify, "compare"):
        report = analyse_gap(session, options, report_progress)
    if inputs and not job.inputs:
        told_so = f"the inputs are those of {Path(inputs).name} next to the trace"
        report = replace(report, notes=(told_so, *report.notes))
    with timed_stage(notify, "write"):
        text = json.dumps(report.content(), ensure_ascii=False)
        (folder / REPORT).write_text(text, "utf-8")
    return {"runs": len(report.runs)}


def _float_programs(session: Session, notify: Say) -> Callable[[str], MappedReference | str]:
    """Return the function that finds the float program of a method, which few jobs need."""

    def of(method: str) -> MappedReference | str:
        from inspector.worker.float_reference import float_reference

        return float_reference(session, method, notify)

    return of


def failure(error: BaseException) -> dict[str, Any]:
    """Return an error as the content of a message."""
    found = exporter.failure(error)
    if isinstance(error, (FormatError, InputsError)):
        return {**found, "sentence": str(error), "blame": "unreadable"}
    if isinstance(error, RebuildError):
        return {**found, "sentence": str(error), "blame": "failed"}
    if isinstance(error, OSError) and error.strerror:  # what is full has no name when it is
        where = error.filename or f"temporary files in {tempfile.gettempdir()}"
        return {**found, "sentence": f"{where}: {error.strerror}"}
    return found


def _call_inputs(session: Session) -> Callable[[int], Any]:
    """Return the function that reads the inputs of a call of a sequence beside the trace."""
    folder = run_folder(session)

    def of(call: int) -> Any:  # noqa: ANN401 - a list of tensors
        path = folder / CALLS / f"{call:05}.pt" if folder is not None else None
        return _inputs(str(path))["inputs"] if path is not None and path.is_file() else None

    return of


def _inputs(path: str) -> Any:  # noqa: ANN401 - a tree of tensors
    try:
        return torch.load(path, weights_only=True)
    except OSError:
        raise
    except Exception as error:
        raise InputsError(f"{path}: expected inputs that torch.save wrote, {error}") from error
