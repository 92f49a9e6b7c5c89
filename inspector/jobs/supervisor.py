"""Supervisors: the state of a running job, and whether it continues after losing its worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from typing_extensions import override

from inspector.jobs.messages import STOP, Message, Outcome, StageProgress

State = TypeVar("State")


@dataclass(frozen=True, slots=True)
class Setup:
    """How a job was started.

    Attributes:
        target: folder or file of the job, or None
        force: replace existing files
        folder: of the worker's files, or None
        options: for the worker, in addition to the request
    """

    target: Path | None = None
    force: bool = False
    folder: Path | None = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Supervisor(Generic[State]):
    """Supervises one job; the default has no state, and a lost worker ends the job.

    Attributes:
        job: the request
        setup: how it was started
        state: of the job so far
        added: messages of the supervisor itself, returned and cleared by ``JobRun.take``
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
        """Update the state from a message; return the message to pass on, or None.

        Raises: FolderError if the state cannot be stored
        """
        return message

    def may_send(self, command: Mapping[str, Any]) -> bool:
        """Return whether a command may be sent now; most jobs accept none."""
        del command
        return False

    def ended(self, outcome: Outcome, *, cancelled: bool) -> Outcome | None:
        """Return the outcome of the job, None to continue with another worker.

        Args:
            outcome: of the worker
            cancelled: whether the end of the job was requested
        """
        del cancelled
        return outcome


class RunSupervisor(Supervisor[bool]):
    """Ends a run early: once its first inference has begun it accepts ``STOP``, once.

    Its state is whether it is ending.
    """

    def __init__(self, job: Any, setup: Setup) -> None:  # noqa: ANN401
        super().__init__(job, setup)
        self.state = self._may_stop = False

    @override
    def request(self) -> tuple[Any, Mapping[str, Any]]:
        return self.job, {**self.setup.options, "live": True}

    @override
    def note(self, message: Message) -> Message:
        if isinstance(message, StageProgress) and message.stage == "run":
            self._may_stop = True
        return message

    @override
    def may_send(self, command: Mapping[str, Any]) -> bool:
        accepted = command == STOP and self._may_stop and not self.state
        self.state |= accepted
        return accepted
