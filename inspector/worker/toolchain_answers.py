"""What a worker answers to a job that the other toolchain is to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from inspector.jobs.bisect import bisect_from
from inspector.jobs.executing import RunJob, executing_from
from inspector.recipes.compile_job import job_from
from inspector.toolchain.child import Say, ToldError, ToolchainError
from inspector.worker import executing
from inspector.worker.toolchain_compile import compile_with_executorch


def compile_elsewhere(say: Say, request: Mapping[str, Any]) -> int:
    """Compile by ``executorch``; return the exit code of the worker."""
    folder = Path(request["folder"])
    return _answered(say, lambda: compile_with_executorch(job_from(request["job"]), folder, say))


def run_elsewhere(say: Say, request: Mapping[str, Any]) -> int:
    """Run on the runtime of ``executorch``; return the exit code of the worker."""
    from inspector.worker.toolchain_run import run_with_executorch

    job = executing_from(request["job"])
    assert isinstance(job, RunJob)
    return _answered(say, lambda: run_with_executorch(job, Path(request["folder"]), say))


def bisect_elsewhere(say: Say, request: Mapping[str, Any]) -> int:
    """Bisect programs of ``executorch``; return the exit code of the worker."""
    from inspector.worker.toolchain_bisect import bisect_with_executorch

    job, folder = bisect_from(request["job"]), Path(request["folder"])
    return _answered(say, lambda: bisect_with_executorch(job, folder, say, request))


def _answered(say: Say, work: Callable[[], dict[str, Any]]) -> int:
    try:
        result = work()
    except ToldError:
        return 1  # by the other interpreter
    except ToolchainError as error:
        say("failed", sentence=str(error), blame=error.blame, details=error.details)
        return 1
    except BaseException as error:  # noqa: BLE001 - whatever files and numbers there are
        say("failed", **executing.failure(error))
        return 1
    say("finished", result=result)
    return 0
