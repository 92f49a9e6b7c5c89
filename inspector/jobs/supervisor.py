"""What is kept of a job while it runs, and whether it goes on when its worker is lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from inspector.jobs.messages import Message, Outcome

State = TypeVar("State")


@dataclass(frozen=True, slots=True)
class Setup:
    """How a job was started.

    Attributes:
        target: folder or file of the job, None for none
        force: replace what exists there
        folder: in which the worker writes, None for none
        options: for the worker, beside the request
    """

    target: Path | None = None
    force: bool = False
    folder: Path | None = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Supervisor(Generic[State]):
    """Watches over one job; this one keeps nothing, and a lost worker is the end of the job.

    Attributes:
        job: the request
        setup: how it was started
        state: what is kept so far
        added: messages of the supervisor itself, which ``JobRun.take`` hands over and empties
    """

    state: State

    def __init__(self, job: Any, setup: Setup) -> None:  # noqa: ANN401 - each kind has its own
        """Begin.

        Raises: FolderError if the target cannot be used
        """
        self.job = job
        self.setup = setup
        self.added: list[Message] = []

    def request(self) -> tuple[Any, Mapping[str, Any]]:
        """Return the request and the options for the next worker."""
        return self.job, self.setup.options

    def note(self, message: Message) -> Message | None:
        """Keep what a message brings; return the message to hand over, None for none.

        Raises: FolderError if it cannot be kept
        """
        return message

    def may_send(self, command: Mapping[str, Any]) -> bool:
        """Return whether a command may be sent now; most jobs take none."""
        del command
        return False

    def ended(self, outcome: Outcome, *, cancelled: bool) -> Outcome | None:
        """Return how the job has ended, None to go on with another worker.

        Args:
            outcome: of the worker
            cancelled: whether the end of the job was requested
        """
        del cancelled
        return outcome
