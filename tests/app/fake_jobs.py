"""Jobs that a test ends when it likes: no process, the messages it puts in."""

from __future__ import annotations

from typing import Any

from inspector.jobs.messages import Ended, Message, Outcome


class FakeRun:
    """What a ``JobFollower`` follows, without a worker."""

    def __init__(self, job: Any) -> None:
        self.job = job
        self.scratch = None
        self.state: Any = None
        self.result: Any = None
        self.pid = 0
        self.outcome: Outcome | None = None
        self.messages: list[Message] = []
        self.closed = False

    def take(self) -> list[Message]:
        """Return the messages put in since the last call."""
        found, self.messages = self.messages, []
        return found

    def cancel(self) -> None:
        """End as a cancelled worker does."""
        self.outcome = Outcome(Ended.CANCELLED, "cancelled in stage export")

    def close(self) -> None:
        """Remember that it was released."""
        self.closed = True

    def send(self, _command: object) -> bool:
        """Accept no commands."""
        return False
