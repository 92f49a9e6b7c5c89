"""A worker that is no process: for tests of what is done, not of how it is survived."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from inspector.jobs.executing import executing_from
from inspector.jobs.messages import Message, Outcome, message_from
from inspector.jobs.process import EXECUTES
from inspector.worker import executing


class Here:
    """Does what a worker does as soon as it is sent a job."""

    def __init__(self, kind: str) -> None:
        assert kind == EXECUTES
        self.outcome: Outcome | None = None
        self._said: list[Message] = []

    def send(self, request: dict[str, Any]) -> None:
        try:
            job = executing_from(json.loads(json.dumps(request["job"])))
            found = executing.execute(job, Path(request["folder"]), self._hear)
            self._hear("finished", result=json.loads(json.dumps(found)))
        except Exception as error:  # noqa: BLE001
            self._hear("failed", **executing.failure(error))

    def _hear(self, kind: str, **content: Any) -> None:
        found = message_from({"type": kind, **content})
        if isinstance(found, Outcome):
            self.outcome = found
        elif found is not None:
            self._said.append(found)

    def take(self, _timeout: float = 0.0) -> list[Message]:
        said, self._said = self._said, []
        return said

    def close(self) -> None:
        pass
