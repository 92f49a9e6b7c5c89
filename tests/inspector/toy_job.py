"""A job in one file: request, what is kept of it, and what the worker does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from inspector.jobs.messages import Counted, Message
from inspector.jobs.supervisor import Setup, Supervisor
from inspector.jobs.table import EXECUTES, JobKind, Writes
from inspector.worker.tasks import Task


@dataclass(frozen=True, slots=True)
class CountJob:
    """Count to a number."""

    to: int = 3


@dataclass(frozen=True, slots=True)
class Total:
    """What a count came to."""

    total: int


class CountSupervisor(Supervisor[int]):
    """Keeps how far a count is."""

    def __init__(self, job: CountJob, setup: Setup) -> None:
        super().__init__(job, setup)
        self.state = 0

    @override
    def note(self, message: Message) -> Message:
        self.state = message.done if isinstance(message, Counted) else self.state
        return message


def work(job: CountJob, task: Task) -> Mapping[str, Any]:
    """Count; write the total."""
    if job.to < 0:
        raise ValueError(f"expected a number from 0, found {job.to}")
    for done in range(1, job.to + 1):
        task.notify("counted", done=done, total=job.to)
    (task.folder / "total.txt").write_text(str(job.to), "utf-8")
    return {"total": job.to}


COUNT = JobKind(
    "count",
    "counting",
    f"{__name__}:CountJob",
    f"{__name__}:work",
    EXECUTES,
    Writes.FOLDER,
    f"{__name__}:Total",
    f"{__name__}:CountSupervisor",
)
