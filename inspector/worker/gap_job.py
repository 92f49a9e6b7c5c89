"""One comparison of a run with its recorded program in the worker."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import torch

from inspector.api.serde_rewrite import RebuildError
from inspector.jobs.gap import REPORT, GapJob
from inspector.load import load_session
from inspector.numerics.analysis import Options, analyse_gap
from inspector.numerics.metrics import Tolerance
from inspector.worker import exporter
from inspector.worker.exporter import Say, told
from schema.errors import FormatError

_STEP_SECONDS = 0.1


class InputsError(ValueError):
    """A file that holds no inputs."""


def compare(job: GapJob, folder: Path, say: Say) -> dict[str, Any]:
    """Compare and write the report, and tensors as far as they are to be kept, into a folder.

    Raises: FormatError, RebuildError, InputsError, OSError
    """
    with told(say, "load"):
        session = load_session(list(job.files))
    options = Options(
        method=job.method,
        reference=job.reference,
        tolerance=Tolerance(job.relative, job.absolute),
        inputs=_inputs(job.inputs) if job.inputs else None,
        runs=job.runs,
        folder=folder,
        keep=job.keep,
    )
    last = 0.0

    def tell(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _STEP_SECONDS or done == total:
            last = now
            say("counted", done=done, total=total)

    with told(say, "compare"):
        report = analyse_gap(session, options, tell)
    with told(say, "write"):
        text = json.dumps(report.content(), ensure_ascii=False)
        (folder / REPORT).write_text(text, "utf-8")
    return {"runs": len(report.runs)}


def failure(error: BaseException) -> dict[str, Any]:
    """Return an error as the content of a message."""
    found = exporter.failure(error)
    if isinstance(error, (FormatError, InputsError)):
        return {**found, "sentence": str(error), "blame": "unreadable"}
    if isinstance(error, RebuildError):
        return {**found, "sentence": str(error), "blame": "failed"}
    return found


def _inputs(path: str) -> Any:  # noqa: ANN401 - a tree of tensors
    try:
        return torch.load(path, weights_only=True)
    except OSError:
        raise
    except Exception as error:
        raise InputsError(f"{path}: expected inputs that torch.save wrote, {error}") from error
