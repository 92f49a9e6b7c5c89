"""A worker that answers many requests, and one request to it as a connection of a ``JobRun``."""

from __future__ import annotations

import itertools
import json
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from inspector.jobs.messages import Ended, Log, Message, Outcome, StageProgress, message_from
from inspector.jobs.process import GRACE_SECONDS, Worker
from inspector.jobs.table import SERVER
from inspector.recipes.compile_job import CompileJob

_numbers = itertools.count(1)
_KEPT = 2_000  # unread messages of a request; older ones are dropped, not the outcome
_TOO_LONG = "stopped: timed out"


class Turn:
    """One request to a warm worker, usable from any thread.

    Cancelling ends it immediately; the worker may continue for a while, and is killed if it
    does not release the request soon.

    Attributes:
        job: of the request, which determines the worker
        number: id of the request
    """

    def __init__(self, job: CompileJob, ask: Callable[[Turn], object]) -> None:
        """Create a request that ``send`` starts.

        Args:
            job: of the request
            ask: sends it to a worker
        """
        self.job = job
        self.number = next(_numbers)
        self.request: dict[str, Any] = {}
        self._ask = ask
        self._changed = threading.Condition()
        self._messages: deque[Message] = deque(maxlen=_KEPT)
        self._stage = "start"
        self._outcome: Outcome | None = None
        self._worker: WarmWorker | None = None
        self._released = False
        self._afterwards: list[Callable[[], object]] = []

    @property
    def pid(self) -> int:
        """Return the id of the worker's process, 0 before it is assigned."""
        return self._worker.pid if self._worker is not None else 0

    @property
    def outcome(self) -> Outcome | None:
        """Return the outcome, None while it runs."""
        with self._changed:
            return self._outcome

    def send(self, request: dict[str, Any]) -> None:
        """Hand the job over.

        Raises: OSError if no worker can be started
        """
        self.request = {**request, "request": self.number}
        if self.outcome is None:
            self._ask(self)

    def take(self, timeout: float = 0.0) -> list[Message]:
        """Return the messages since the last call, waiting for the first one."""
        with self._changed:
            if not self._messages and self._outcome is None:
                self._changed.wait(timeout)
            found = list(self._messages)
            self._messages.clear()
            return found

    def wait(self, timeout: float | None = None) -> Outcome | None:
        """Return the outcome, None after a timeout."""
        with self._changed:
            self._changed.wait_for(lambda: self._outcome is not None, timeout)
        return self.outcome

    def wait_released(self, timeout: float | None = None) -> bool:
        """Wait until the worker has released it, as after it was cancelled; False: not in time."""
        with self._changed:
            return self._changed.wait_for(lambda: self._released, timeout)

    def when_released(self, action: Callable[[], object]) -> None:
        """Call back as soon as the folder of the job is not written any more."""
        with self._changed:
            if not self._released and self._worker is not None:
                self._afterwards.append(action)
                return
        action()

    def stop(self, ended: Ended = Ended.CANCELLED) -> None:
        """End it; a worker that does not release it soon is killed."""
        words = "cancelled" if ended is Ended.CANCELLED else _TOO_LONG
        if self.give_up(Outcome(ended, f"{words} in stage {self._stage}")):
            threading.Thread(target=self._end_worker, name="turn end", daemon=True).start()

    def close(self) -> None:
        """Cancel it if it runs."""
        if self.outcome is None:
            self.stop()

    def give_up(self, outcome: Outcome) -> bool:
        """End it in a way unless it has ended; the worker stops at its next stage."""
        if not self._end(outcome):
            return False
        if self._worker is not None:
            self._worker.send({"cancel": self.number})
        return True

    # -- called by the worker's threads --------------------------------------------------------

    def taken_by(self, worker: WarmWorker) -> None:
        """Store the worker that runs it."""
        self._worker = worker

    def report(self, message: Message) -> None:
        """Receive a message."""
        with self._changed:
            if isinstance(message, StageProgress) and message.seconds is None:
                if message.stage == "begin":
                    return
                self._stage = message.stage
            self._messages.append(message)
            self._changed.notify_all()

    def answered(self, outcome: Outcome) -> None:
        """Receive the result; the worker has released the request."""
        self._end(outcome)
        with self._changed:
            actions, self._afterwards = self._afterwards, []
            self._worker = None
        for action in actions:
            action()
        with self._changed:
            self._released = True
            self._changed.notify_all()

    def _end(self, outcome: Outcome) -> bool:
        with self._changed:
            if self._outcome is not None:
                return False
            self._outcome = outcome
            self._changed.notify_all()
            return True

    def _end_worker(self) -> None:
        worker = self._worker
        if not self.wait_released(GRACE_SECONDS) and worker is not None:
            worker.kill()


class WarmWorker(Worker):
    """A worker that answers many requests."""

    def __init__(
        self, stale: Callable[[WarmWorker, list[Turn]], None], *, threads: int = 0
    ) -> None:
        """Start the process.

        Args:
            stale: called with the requests for another worker when the source has changed
            threads: of its libraries, 0 for their default

        Raises: OSError if it cannot be started
        """
        self._turns: dict[int, Turn] = {}
        self._begun: set[int] = set()
        self._closing = False
        self._busy = threading.Lock()
        self._when_stale = stale
        super().__init__(SERVER, threads=threads)

    def close(self) -> None:
        """End the process; pending requests are cancelled."""
        self._closing = True
        super().close()

    def ask(self, turn: Turn) -> None:
        """Send a request."""
        turn.taken_by(self)
        with self._busy:
            self._turns[turn.number] = turn
        self.send(turn.request)
        if self.outcome is not None:
            self._end_all(self.outcome)

    def _take_message(self, line: str) -> None:
        try:
            content = json.loads(line)
            number = content.get("request")
        except (ValueError, AttributeError, RecursionError):
            return
        if number is None:
            super()._take_message(line)
        elif content.get("type") == "stale":
            with self._busy:
                turns, self._turns = list(self._turns.values()), {}
            self._when_stale(self, [turn for turn in turns if turn.outcome is None])
        else:
            self._pass_on(number, message_from(content))

    def _pass_on(self, number: int, message: Message | Outcome | None) -> None:
        with self._busy:
            self._begun.add(number)
            turn = self._turns.get(number)
            if isinstance(message, Outcome):
                self._turns.pop(number, None)
        if turn is None or message is None:
            return
        if isinstance(message, Outcome):
            turn.answered(message)
        else:
            if isinstance(message, StageProgress) and message.seconds is None:
                self._stage = message.stage
            turn.report(message)

    def _take_line(self, line: str) -> None:
        with self._busy:
            turns = list(self._turns.values())
        for turn in turns[:1]:
            turn.report(Log(line))

    def _over(self) -> None:
        super()._over()
        if self.outcome is not None:
            self._end_all(self.outcome)

    def _end_all(self, outcome: Outcome) -> None:
        """End the running request with the process; another worker runs those not begun."""
        with self._busy:
            turns, self._turns = list(self._turns.values()), {}
        waiting: list[Turn] = []
        for turn in turns:
            never_ready = self.ready is None
            if self._closing or never_ready or turn.number in self._begun:
                turn.answered(outcome)
            elif turn.outcome is None:
                waiting.append(turn)
            else:
                turn.answered(outcome)
        if waiting:
            self._when_stale(self, waiting)
