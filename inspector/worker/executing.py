"""Jobs of a worker that executes programs: one of each kind, and how failures are reported."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from typing import Any

from inspector.devices.errors import DeviceError
from inspector.jobs.executing import ExecutingJob, MeasureJob, RunJob, StepJob, VerifyJob
from inspector.jobs.table import resolved
from inspector.toolchain.child import ToolchainError
from inspector.toolchain.table import toolchain_named
from inspector.worker import exporter
from inspector.worker.backend_options import set_backend_options
from inspector.worker.bundle_job import bundle_into
from inspector.worker.exporter import Say
from inspector.worker.inputs import ValuesError
from inspector.worker.kernels import with_libraries
from inspector.worker.live_steps import step_live
from inspector.worker.measure_job import measure
from inspector.worker.recording import NotWrittenError
from inspector.worker.run_job import run_into
from inspector.worker.step_job import step_through
from inspector.worker.tasks import Task, reported_failure
from inspector.worker.verify_job import verify
from runtime import ErrorCode, ExecutionError, Runtime, platform
from runtime.platform import LogLevel, LogMessage
from schema.errors import FormatError

_UNREADABLE = (ErrorCode.AccessFailed, ErrorCode.InvalidExternalData, ErrorCode.InvalidProgram)
_NAME_IT = " A library of operators (--library) is a file that registers them with torch."
_LEVELS = {
    LogLevel.DEBUG: logging.DEBUG,
    LogLevel.INFO: logging.INFO,
    LogLevel.ERROR: logging.ERROR,
    LogLevel.FATAL: logging.CRITICAL,
}
_GIVEN = (ErrorCode.InvalidArgument, ErrorCode.NotSupported, ErrorCode.InvalidType)


def known_names() -> dict[str, list[str]]:
    """Return the names of the engines available here."""
    return {"backends": Runtime.get().backend_registry.registered_backend_names}


def work(job: ExecutingJob, task: Task) -> dict[str, Any]:
    """Run an executing job; return its report.

    Raises: errors of ``execute``, ToolchainError
    """
    if isinstance(job, RunJob) and job.sweep_threads:
        return resolved("inspector.worker.thread_sweep:run_with_best_threads")(
            job, task, measured, work
        )
    if isinstance(job, RunJob) and job.device:
        return resolved("inspector.worker.device_run:work")(job, task)
    if isinstance(job, RunJob):
        return toolchain_named(job.toolchain).run(job, task)
    if isinstance(job, MeasureJob):
        return measured(job, task)
    if isinstance(job, StepJob) and task.command is not None:
        return step_live(job, task.notify, task.command)
    return execute(job, task)


def measured(job: MeasureJob, task: Task) -> dict[str, Any]:
    """Measure programs side by side, on this machine or on a device.

    Raises: ToolchainError for programs of several toolchains; errors of the one that measures
    """
    if any(one.device for one in job.programs):
        name = "inspector.worker.device_measure:measure_on_device"
        return resolved(name)(job, task.notify, task.stop.is_asked)
    chosen = [toolchain_named(one.toolchain) for one in job.programs]
    toolchains = {one.name: one for one in chosen} or {"": toolchain_named("")}
    if len(toolchains) > 1:
        words = f"programs of {' and '.join(sorted(toolchains))} cannot be measured side by side"
        raise ToolchainError(words, blame="usage")
    return next(iter(toolchains.values())).measure(job, task)


def measure_built_in(job: MeasureJob, task: Task) -> dict[str, Any]:
    """Measure on the built-in runtime; see ``execute``."""
    return execute(job, task)


def run_built_in(job: RunJob, task: Task) -> dict[str, Any]:
    """Run on the built-in runtime; see ``execute``."""
    return execute(job, task)


def execute(job: ExecutingJob, task: Task) -> dict[str, Any]:
    """Do a job; return its report.

    Raises: ExecutionError, FormatError, AnswerError, ValuesError, OSError; for user code anything
    """
    with platform.replaced(log=_sink(task.notify)):
        with_libraries(_libraries(job))
        return _done(job, task)


def _sink(notify: Say) -> Callable[[LogMessage], None]:
    """Return a log sink that turns log lines of the runtime into messages."""

    def log(message: LogMessage) -> None:
        notify("log", text=message.text, logger="runtime", level=_LEVELS[message.level])

    return log


def _done(job: ExecutingJob, task: Task) -> dict[str, Any]:
    folder, notify = task.folder, task.notify
    if isinstance(job, RunJob | VerifyJob):
        set_backend_options(job.backend_options)
    if isinstance(job, RunJob):
        return run_into(job, task)
    if isinstance(job, VerifyJob):
        return verify(job, notify)
    if isinstance(job, MeasureJob):
        return measure(job, notify, failure, task.stop.is_asked)
    if isinstance(job, StepJob):
        return step_through(job, folder, notify)
    exporter.redirect_logs(notify)
    return bundle_into(job, folder, notify)


def _libraries(job: ExecutingJob) -> tuple[str, ...]:
    if isinstance(job, MeasureJob):
        return tuple(dict.fromkeys(path for one in job.programs for path in one.libraries))
    return job.libraries


def failure(error: BaseException) -> dict[str, Any]:
    """Return an error as the content of a message."""
    details = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    if isinstance(error, DeviceError):
        return reported_failure(error)
    if isinstance(error, ExecutionError):
        file, _, line = error.source.rpartition(":")
        place = {"file": file, "line": int(line)} if file and line.isdigit() else {}
        hint = _NAME_IT if error.code is ErrorCode.OperatorMissing else ""
        return {"sentence": f"{error}{hint}", "blame": _blame(error), "details": details, **place}
    if isinstance(error, FormatError | ValuesError):
        return {"sentence": str(error), "blame": "unreadable", "details": details}
    if isinstance(error, NotWrittenError):
        return {"sentence": str(error), "blame": "failed", "details": details}
    if isinstance(error, OSError) and error.filename:
        sentence = f"{error.filename}: {error.strerror}"
        return {"sentence": sentence, "blame": "unreadable", "details": details}
    return exporter.failure(error)


def _blame(error: ExecutionError) -> str:
    """Return the cause of an error: the file before loading, the inputs before running."""
    if error.code in _UNREADABLE and not error.method:
        return "unreadable"
    asked = any(word in error.reason for word in ("input", "case"))
    if error.code in _GIVEN and error.instruction is None and asked:
        return "usage"
    return "failed"
