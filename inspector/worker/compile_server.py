"""The warm worker: answers one request after the other about one source, the newest first."""

from __future__ import annotations

import shutil
import threading
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inspector.jobs.table import kind_named, resolved
from inspector.worker.channel import Channel
from inspector.worker.exporter import Say
from inspector.worker.interrupting import InterruptedTaskError
from inspector.worker.tasks import Task, perform
from inspector.worker.warm import StaleError, Warm

COMPILE, PREVIEW = "compile", "preview"


class RequestCancelledError(InterruptedTaskError):
    """The request was cancelled."""


@dataclass
class _Inbox:
    """Received requests, and which of them are cancelled."""

    waiting: deque[dict[str, Any]] = field(default_factory=deque[dict[str, Any]])
    cancelled: set[int] = field(default_factory=set[int])
    changed: threading.Condition = field(default_factory=threading.Condition)

    def put(self, message: dict[str, Any]) -> None:
        """Handle a message of the parent."""
        with self.changed:
            if "cancel" in message:
                self.cancelled.add(message["cancel"])
            else:
                self.waiting.append(message)
            self.changed.notify()

    def take(self) -> dict[str, Any]:
        """Return the next request, waiting for it."""
        with self.changed:
            while not self.waiting:
                self.changed.wait()
            return self.waiting.popleft()

    def take_preview(self) -> dict[str, Any] | None:
        """Return a waiting request that is answered immediately, or None."""
        with self.changed:
            for request in self.waiting:
                if request["kind"] == PREVIEW:
                    self.waiting.remove(request)
                    return request
        return None

    def is_cancelled(self, number: int) -> bool:
        """Return whether a request was cancelled."""
        with self.changed:
            return number in self.cancelled


class Loop:
    """Executes requests, reusing caches of earlier ones."""

    def __init__(self, channel: Channel) -> None:
        """Receive requests from a channel until the parent exits."""
        self._channel = channel
        self._inbox = _Inbox()
        self._warm = Warm()
        self._deep = False
        self._folders: set[str] = set()

    def run(self) -> int:
        """Answer requests until a file of the source has changed, which needs a new process."""
        for name in (COMPILE, PREVIEW):
            resolved(kind_named(name).entry)  # imported ahead of the first request
        self._channel.follow(self._inbox.put, self._leave)
        while self._answer(self._inbox.take()):
            pass
        return 0

    def _leave(self) -> None:
        """Remove files that will not be moved to the target."""
        waiting = {request.get("folder", "") for request in self._inbox.waiting}
        for folder in filter(None, self._folders | waiting):
            shutil.rmtree(folder, ignore_errors=True)

    def _answer(self, request: dict[str, Any]) -> bool:
        """Answer a request; return whether to continue."""
        number, kind = request["request"], request["kind"]
        notify = self._saying(number, quick=kind == PREVIEW)
        self._folders = {request["folder"]} if kind == COMPILE else self._folders
        task = Task(Path(request["folder"]), notify, request["options"], self._warm)
        try:
            notify("stage", stage="begin")
            perform(request, task)
        except StaleError:
            self._send(number, "stale")
            return False
        except RequestCancelledError:
            self._send(number, "failed", sentence="cancelled", blame="cancelled")
        return True

    def _send(self, number: int, kind: str, **content: Any) -> None:  # noqa: ANN401 - JSON
        self._channel.send(kind, request=number, **content)

    def _saying(self, number: int, *, quick: bool) -> Say:
        """Return the message callback of a request; it may cancel between two stages."""

        def notify(kind: str, **content: Any) -> None:  # noqa: ANN401 - JSON
            begins = kind == "stage" and content.get("seconds") is None
            if begins and self._inbox.is_cancelled(number):
                raise RequestCancelledError
            self._send(number, kind, **content)
            if begins and not quick:
                self._between()

        return notify

    def _between(self) -> None:
        """Answer previews received while a compile runs, between two of its stages."""
        request = None if self._deep else self._inbox.take_preview()
        if request is None:
            return
        if not self._warm.knows(kind_named(PREVIEW).read(request["job"]).compile):
            with self._inbox.changed:
                self._inbox.waiting.appendleft(request)
            return
        self._deep = True
        try:
            self._answer(request)
        finally:
            self._deep = False
