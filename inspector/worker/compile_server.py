"""The warm worker: answers one request after the other about one source, the newest first."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inspector.jobs.preview import preview_content
from inspector.recipes.compile_job import CompileJob, job_from
from inspector.recipes.suggestions import suggestion_content, suggestions_of
from inspector.worker import compile_job, exporter, lowering
from inspector.worker.channel import Channel
from inspector.worker.compile_job import Heard
from inspector.worker.exporter import Exported, Say
from inspector.worker.previewing import preview_of
from inspector.worker.warm import StaleError, Warm
from schema.errors import FormatError

COMPILE, PREVIEW, SUGGEST = "compile", "preview", "suggest"


class CancelledError(Exception):
    """Nobody waits for the answer any more."""


@dataclass
class _Inbox:
    """Requests that have come, and which of them nobody waits for any more."""

    waiting: deque[dict[str, Any]] = field(default_factory=deque[dict[str, Any]])
    cancelled: set[int] = field(default_factory=set[int])
    changed: threading.Condition = field(default_factory=threading.Condition)

    def put(self, message: dict[str, Any]) -> None:
        """Take a message of the parent."""
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
        """Return a waiting request that is answered in no time, None if there is none."""
        with self.changed:
            for request in self.waiting:
                if request["verb"] == PREVIEW:
                    self.waiting.remove(request)
                    return request
        return None

    def is_cancelled(self, number: int) -> bool:
        """Return whether nobody waits for an answer."""
        with self.changed:
            return number in self.cancelled


class Loop:
    """Does what is asked for, with what earlier requests have left."""

    def __init__(self, channel: Channel) -> None:
        """Take requests from a channel until the parent is gone."""
        self._channel = channel
        self._inbox = _Inbox()
        self._warm = Warm()
        self._deep = False
        self._folders: set[str] = set()

    def run(self) -> int:
        """Answer until a file of the source has changed: only another process reads that anew."""
        self._channel.follow(self._inbox.put, self._leave)
        while self._answer(self._inbox.take()):
            pass
        return 0

    def _leave(self) -> None:
        """Remove what nobody will move to its place any more."""
        waiting = {request.get("folder", "") for request in self._inbox.waiting}
        for folder in filter(None, self._folders | waiting):
            shutil.rmtree(folder, ignore_errors=True)

    def _answer(self, request: dict[str, Any]) -> bool:
        """Answer a request; return whether to go on."""
        number = request["request"]
        say = self._saying(number, quick=request["verb"] == PREVIEW)
        try:
            say("stage", stage="begin")
            job = job_from(request["job"])
            lowering.check_words(job)
            result = _VERBS[request["verb"]](self, job, request, say)
        except StaleError:
            self._send(number, "stale")
            return False
        except CancelledError:
            self._send(number, "failed", sentence="cancelled", blame="cancelled")
        except compile_job.ReportedError:
            pass
        except (compile_job.UnreadableError, FormatError) as error:
            content = {**exporter.failure(error), "blame": "unreadable"}
            self._send(number, "failed", **content)
        except BaseException as error:  # noqa: BLE001 - whatever the user's code raises
            self._send(number, "failed", **exporter.failure(error))
        else:
            self._send(number, "finished", result=result)
        return True

    def _send(self, number: int, kind: str, **content: Any) -> None:  # noqa: ANN401 - JSON
        self._channel.send(kind, request=number, **content)

    def _saying(self, number: int, *, quick: bool) -> Say:
        """Return what takes the messages of a request; between two stages it may end."""

        def say(kind: str, **content: Any) -> None:  # noqa: ANN401 - JSON
            begins = kind == "stage" and content.get("seconds") is None
            if begins and self._inbox.is_cancelled(number):
                raise CancelledError
            self._send(number, kind, **content)
            if begins and not quick:
                self._between()

        return say

    def _between(self) -> None:
        """Answer previews that have come while a compile runs, between two of its stages."""
        request = None if self._deep else self._inbox.take_preview()
        if request is None:
            return
        if not self._warm.knows(job_from(request["job"])):
            with self._inbox.changed:
                self._inbox.waiting.appendleft(request)
            return
        self._deep = True
        try:
            self._answer(request)
        finally:
            self._deep = False

    def _programs(self, job: CompileJob, heard: Heard) -> Exported:
        if not self._warm.knows(job):
            exporter.tell_what_is_said(heard)
        with tempfile.TemporaryDirectory() as folder:
            source = self._warm.source(
                job, lambda: compile_job.source_of(job, Path(folder), heard), heard
            )
        return self._warm.quantised(job.quantising, source, heard)

    def compile(self, job: CompileJob, request: dict[str, Any], say: Say) -> dict[str, Any]:
        """Write files into a folder and return what ``compile.json`` says."""
        folder = request["folder"]
        self._folders = {folder}
        stages = bool(request.get("stages"))
        return compile_job.compile_into(
            job, Path(folder), say, request["guard"], self._warm, stages=stages
        )

    def preview(self, job: CompileJob, request: dict[str, Any], say: Say) -> dict[str, Any]:
        """Return what would be delegated."""
        del request
        heard = Heard(say)
        source = self._programs(job, heard)
        return preview_content(preview_of(job, source, self._warm, heard.observe))

    def suggest(self, job: CompileJob, request: dict[str, Any], say: Say) -> dict[str, Any]:
        """Return changes that make boundaries fewer."""
        del request
        heard = Heard(say)
        source = self._programs(job, heard)

        def preview(changed: CompileJob) -> Any:  # noqa: ANN401 - a Preview
            say("stage", stage="try a suggestion")
            return preview_of(changed, source, self._warm, heard.observe)

        found = suggestions_of(job, preview)
        return {"suggestions": [suggestion_content(one) for one in found]}


_Verb = Callable[[Loop, CompileJob, dict[str, Any], Say], dict[str, Any]]
_VERBS: dict[str, _Verb] = {
    COMPILE: Loop.compile,
    PREVIEW: Loop.preview,
    SUGGEST: Loop.suggest,
}
