"""One job in the worker: the request is read, its function called, its end reported."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inspector.devices.errors import DeviceError
from inspector.jobs.table import JobKind, kind_named, resolved
from inspector.toolchain.child import ReportedError, ToolchainError
from inspector.worker.interrupting import InterruptedTaskError, StopSignal

if TYPE_CHECKING:  # they import torch, which not every worker needs
    from inspector.worker.warm import Warm

Say = Callable[..., None]


@dataclass(frozen=True, slots=True)
class Task:
    """Context of the function of a job, in addition to the request.

    Attributes:
        folder: for the files
        notify: called with messages
        options: that are not part of the job
        warm: caches of earlier jobs of the same source, None for the first
        command: waits for and returns the next command of the parent
        stop: asks for an early end
    """

    folder: Path
    notify: Say
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    warm: Warm | None = None
    command: Callable[[], Mapping[str, Any]] | None = None
    stop: StopSignal = field(default_factory=StopSignal)


def perform(request: Mapping[str, Any], task: Task) -> bool:
    """Run a job and report its outcome; return whether it succeeded.

    Args:
        request: of the parent: kind and job
        task: its context

    Raises: InterruptedTaskError
    """
    kind = kind_named(str(request["kind"]))
    try:
        result = resolved(kind.entry)(kind.read(request["job"]), task)
    except ReportedError:
        return False
    except InterruptedTaskError:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever kernels and the user's code raise
        task.notify("failed", **failure_of(kind, error))
        return False
    task.notify("finished", result=result)
    return True


def failure_of(kind: JobKind, error: BaseException) -> dict[str, Any]:
    """Return an error as the content of a message, as the module of the job's function has it."""
    from inspector.worker import exporter

    if isinstance(error, ToolchainError | DeviceError):
        return reported_failure(error)
    home = sys.modules[kind.entry.partition(":")[0]]
    found: dict[str, Any] = getattr(home, "failure", exporter.failure)(error)
    return found


def reported_failure(error: ToolchainError | DeviceError) -> dict[str, Any]:
    """Return an error that knows its cause as the content of a message."""
    return {"sentence": str(error), "blame": error.blame, "details": error.details}
