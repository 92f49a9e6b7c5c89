"""Workers that are no processes: for tests of what is done, not of how it is survived."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from inspector.jobs.messages import Ended, Message, Outcome, message_from
from inspector.worker.tasks import Task, perform


class Scripted:
    """A worker that reports what it is given.

    Attributes:
        request: the last one
        said: what it reports next
        outcome: how it ended
    """

    def __init__(self, said: Iterable[Message] = (), outcome: Outcome | None = None) -> None:
        self.said = list(said)
        self._then = outcome
        self.outcome: Outcome | None = None
        self.request: dict[str, Any] = {}
        self.ready = None
        self.pid = 0

    def send(self, request: dict[str, Any]) -> None:
        self.request = json.loads(json.dumps(request))
        self.outcome = self._then

    def take(self, _timeout: float = 0.0) -> list[Message]:
        said, self.said = self.said, []
        return said

    def stop(self, ended: Ended = Ended.CANCELLED) -> None:
        self.outcome = self.outcome or Outcome(ended, "cancelled in stage measure")

    def wait(self, _timeout: float | None = None) -> Outcome | None:
        return self.outcome

    def when_released(self, action: Callable[[], object]) -> None:
        action()

    def close(self) -> None:
        self.stop()


class Here(Scripted):
    """Does what a worker does as soon as it is sent a job."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def send(self, request: dict[str, Any]) -> None:
        self.request = json.loads(json.dumps(request))
        perform(self.request, Task(Path(request["folder"]), self._hear, self.request["options"]))

    def _hear(self, kind: str, **content: Any) -> None:
        found = message_from({"type": kind, **json.loads(json.dumps(content))})
        if isinstance(found, Outcome):
            self.outcome = found
        elif found is not None:
            self.said.append(found)
