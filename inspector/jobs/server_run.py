"""One request to a warm worker, and that worker as a child process."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from inspector.jobs.messages import Ended, Log, Message, Outcome, Stage, message_from
from inspector.jobs.output_folder import FolderError, OutputFolder
from inspector.jobs.preview import Preview, preview_from
from inspector.jobs.process import GRACE_SECONDS, SERVER, Worker
from inspector.recipes.compile_job import CompileJob, job_content
from inspector.recipes.suggestions import Suggestion, suggestion_from

_numbers = itertools.count(1)
_KEPT = 2_000


class ServerRun:
    """One request; ask it as a ``JobRun``.

    Attributes:
        job: what it is about
        verb: what is asked for
        number: of the request
        started: when, by ``time.monotonic``
    """

    verb = ""

    def __init__(self, job: CompileJob) -> None:
        self.job = job
        self.number = next(_numbers)
        self.started = time.monotonic()
        self._changed = threading.Condition()
        self._messages: deque[Message] = deque(maxlen=_KEPT)
        self._stage = "start"
        self._found: Outcome | None = None
        self._worker: WarmWorker | None = None
        self._over = False

    @property
    def outcome(self) -> Outcome | None:
        """Return how it ended, None while it has not."""
        with self._changed:
            return self._found

    def take(self, timeout: float = 0.0) -> list[Message]:
        """Return what was said since the last call, waiting for it if there is nothing yet.

        Args:
            timeout: seconds to wait at most
        """
        with self._changed:
            if not self._messages and self._found is None:
                self._changed.wait(timeout)
            found = list(self._messages)
            self._messages.clear()
            return found

    def wait(self, timeout: float | None = None) -> Outcome | None:
        """Return the outcome, None if it has not come in time."""
        with self._changed:
            self._changed.wait_for(lambda: self._found is not None, timeout)
        return self.outcome

    def let_go(self, timeout: float | None = None) -> bool:
        """Wait until nobody works on it any more, as after it was cancelled; False: not in time."""
        with self._changed:
            return self._changed.wait_for(lambda: self._over, timeout)

    def cancel(self) -> None:
        """Wait for it no longer; a worker that does not let go of it soon is ended."""
        if self.give_up(Outcome(Ended.CANCELLED, f"cancelled in stage {self._stage}")):
            threading.Thread(target=self._end_worker, name="server end", daemon=True).start()

    def close(self) -> None:
        """Wait for it no longer."""
        if self.outcome is None:
            self.cancel()

    def request(self) -> dict[str, Any]:
        """Return what the worker is asked."""
        return {"request": self.number, "verb": self.verb, "job": job_content(self.job)}

    def give_up(self, outcome: Outcome) -> bool:
        """Let it end in a way, if it has not ended; the worker stops at its next stage."""
        if not self._end(outcome):
            return False
        worker = self._worker
        if worker is not None:
            worker.send({"cancel": self.number})
        return True

    # -- called by the worker's threads --------------------------------------------------------

    def taken_by(self, worker: WarmWorker) -> None:
        """Note who answers."""
        self._worker = worker

    def hear(self, message: Message) -> None:
        """Take what was said."""
        with self._changed:
            if isinstance(message, Stage) and message.seconds is None:
                if message.stage == "begin":
                    return
                self._stage = message.stage
            self._messages.append(message)
            self._changed.notify_all()

    def answered(self, outcome: Outcome) -> None:
        """Take the answer; nobody works on it any more."""
        with self._changed:  # until its files are in place it cannot be given up
            if self._found is None:
                self._end(self._settled(outcome))
            self._clean()
            self._over = True
            self._changed.notify_all()

    def _clean(self) -> None:
        """Remove what nobody waits for any more."""

    def _settled(self, outcome: Outcome) -> Outcome:
        return outcome

    def _end(self, outcome: Outcome) -> bool:
        with self._changed:
            if self._found is not None:
                return False
            self._found = outcome
            self._changed.notify_all()
            return True

    def _end_worker(self) -> None:
        if not self.let_go(GRACE_SECONDS) and self._worker is not None:
            self._worker.kill()


class PreviewRun(ServerRun):
    """A preview.

    Attributes:
        preview: the answer, None until it has come
    """

    verb = "preview"

    def __init__(self, job: CompileJob) -> None:
        super().__init__(job)
        self.preview: Preview | None = None

    def _settled(self, outcome: Outcome) -> Outcome:
        if outcome.ended is Ended.FINISHED:
            self.preview = preview_from(outcome.result)
        return outcome


class SuggestRun(ServerRun):
    """Suggestions.

    Attributes:
        suggestions: the answer, empty until it has come
    """

    verb = "suggest"

    def __init__(self, job: CompileJob) -> None:
        super().__init__(job)
        self.suggestions: tuple[Suggestion, ...] = ()

    def _settled(self, outcome: Outcome) -> Outcome:
        if outcome.ended is Ended.FINISHED:
            self.suggestions = tuple(map(suggestion_from, outcome.result["suggestions"]))
        return outcome


class ServerCompileRun(ServerRun):
    """A compile by a warm worker.

    Attributes:
        target: folder for the files
    """

    verb = "compile"

    def __init__(
        self,
        job: CompileJob,
        place: OutputFolder,
        target: Path,
        guard: str,
        *,
        stages: bool = False,
    ) -> None:
        super().__init__(job)
        self.target = target
        self._place = place
        self._guard = guard
        self._stages = stages

    def request(self) -> dict[str, Any]:
        """Return what the worker is asked."""
        folder = str(self._place.working)
        how = {"guard": self._guard, "stages": self._stages}
        return {**super().request(), "folder": folder, **how}

    def _clean(self) -> None:
        self._place.discard()

    def give_up(self, outcome: Outcome) -> bool:
        """Let it end in a way; its files are removed when the worker has let go of them."""
        done = super().give_up(outcome)
        if self._worker is None:
            self._place.discard()
        return done

    def _settled(self, outcome: Outcome) -> Outcome:
        if outcome.ended is not Ended.FINISHED:
            self._place.discard()  # before anybody is told
            return outcome
        try:
            self._place.commit()
        except FolderError as error:
            return Outcome(Ended.FAILED, str(error))
        return replace(outcome, result={**outcome.result, **self._place.where()})


class WarmWorker(Worker):
    """A worker that answers many requests."""

    def __init__(
        self, stale: Callable[[WarmWorker, list[ServerRun]], None], *, threads: int = 0
    ) -> None:
        """Start the process.

        Args:
            stale: given the requests that another worker has to answer, as the source has changed
            threads: how many its libraries take, 0 for what they take by themselves

        Raises: OSError if it cannot be started
        """
        self._runs: dict[int, ServerRun] = {}
        self._begun: set[int] = set()
        self._closing = False
        self._busy = threading.Lock()
        self._when_stale = stale
        super().__init__(SERVER, threads=threads)

    def close(self) -> None:
        """End the process; what it has not answered is cancelled."""
        self._closing = True
        super().close()

    def ask(self, run: ServerRun) -> None:
        """Ask for an answer."""
        run.taken_by(self)
        with self._busy:
            self._runs[run.number] = run
        self.send(run.request())
        if self.outcome is not None:
            self._give_all(self.outcome)

    def _take_message(self, line: str) -> None:
        try:
            content = json.loads(line)
            number = content.get("request")
        except (ValueError, AttributeError):
            return
        if number is None:
            super()._take_message(line)
            return
        if content.get("type") == "stale":
            with self._busy:
                runs, self._runs = list(self._runs.values()), {}
            self._when_stale(self, [run for run in runs if run.outcome is None])
            return
        try:
            found = message_from(content)
        except (KeyError, TypeError, ValueError):
            return
        with self._busy:
            self._begun.add(number)
            run = self._runs.get(number)
            if isinstance(found, Outcome):
                self._runs.pop(number, None)
        if run is None or found is None:
            return
        if isinstance(found, Outcome):
            run.answered(found)
        else:
            if isinstance(found, Stage) and found.seconds is None:
                self._stage = found.stage
            run.hear(found)

    def _heard_line(self, line: str) -> None:
        with self._busy:
            runs = list(self._runs.values())
        for run in runs[:1]:
            run.hear(Log(line))

    def _over(self) -> None:
        super()._over()
        if self.outcome is not None:
            self._give_all(self.outcome)

    def _give_all(self, outcome: Outcome) -> None:
        """Let what it worked on end with it; another worker answers what it had not begun."""
        with self._busy:
            runs, self._runs = list(self._runs.values()), {}
        waiting: list[ServerRun] = []
        for run in runs:
            never_ready = self.ready is None
            if self._closing or never_ready or run.number in self._begun:
                run.answered(outcome)
            elif run.outcome is None:
                waiting.append(run)
            else:
                run.answered(outcome)
        if waiting:
            self._when_stale(self, waiting)
