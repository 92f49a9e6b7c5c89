"""A bisection as a job: workers that try programs, and a state on disk that outlives them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from typing_extensions import override

from inspector.jobs.bisect_trials import STATE, State, Trial, read_state
from inspector.jobs.messages import Ended, Found, Message, Outcome, Tried, Trying
from inspector.jobs.output_folder import FolderError
from inspector.jobs.supervisor import Setup, Supervisor
from inspector.recipes.compile_job import CompileJob
from schema.objects.atomic_file import write_atomically
from schema.objects.codec import to_json

_MOST_CRASHES = 5


@dataclass(frozen=True, slots=True)
class BisectJob:
    """What to bisect.

    Attributes:
        compile: the program, and how it is made
        bound: what is wanted, as text
        method: only its nodes, and what is run; empty for ``forward`` or the only one
        inputs: file of tensors; empty for the inputs it was exported with
        engine: what runs delegates whose backend has several engines
        runs: that are measured for a latency
        threads: of torch, 0 for as many as it takes by itself
    """

    compile: CompileJob
    bound: str
    method: str = ""
    inputs: str = ""
    engine: str = "auto"
    runs: int = 20
    threads: int = 0


def key_of(job: BisectJob) -> str:
    """Return what a bisection is about; trials of one with another key are of no use to it."""
    return json.dumps(to_json(job), sort_keys=True, ensure_ascii=False)


class BisectSupervisor(Supervisor[State]):
    """Keeps the trials of a bisection in the folder that is its target, or goes on with them.

    Every trial is in the state file as soon as it is made. A program that crashes the worker counts
    as one that does not help, and another worker goes on.
    """

    def __init__(self, job: BisectJob, setup: Setup) -> None:
        """Start, or go on where the state in the folder ends; ``force`` starts over.

        Raises: StateError, FolderError if the folder holds another bisection or cannot be used
        """
        super().__init__(job, setup)
        assert setup.target is not None
        self._path = setup.target / STATE
        self.state = State(key_of(job))
        found = None if setup.force else read_state(self._path)
        if found is not None and found.key != self.state.key:
            raise FolderError(
                f"{self._path} is of another bisection; --force starts over", usage=True
            )
        self.state = found or self.state
        self._trying: Trying | None = None
        self._crashes = 0
        self._save()

    @override
    def request(self) -> tuple[BisectJob, Mapping[str, Any]]:
        known = {"candidates": self.state.candidates, "trials": self.state.trials}
        return self.job, to_json(known)

    @override
    def note(self, message: Message) -> Message:
        if isinstance(message, Trying):
            self._trying = message
        elif isinstance(message, Tried):
            self._keep(message.trial)
        elif isinstance(message, Found) and message.nodes != self.state.candidates:
            self.state = State(self.state.key, message.nodes)  # the program is another one by now
            self._save()
        return message

    @override
    def ended(self, outcome: Outcome, *, cancelled: bool) -> Outcome | None:
        lost, trying = outcome.ended is Ended.CRASHED and not cancelled, self._trying
        if not lost or trying is None or self._crashes >= _MOST_CRASHES:
            return outcome
        self._crashes += 1
        trial = Trial(trying.removed, None, False, outcome.sentence)
        self._keep(trial)
        self.added.append(Tried(trial))
        return None

    def _keep(self, trial: Trial) -> None:
        self._trying = None
        self.state = replace(self.state, trials=(*self.state.trials, trial))
        self._save()

    def _save(self) -> None:
        """Write the state atomically.

        Raises: FolderError if the disk refuses
        """
        text = self.state.text.encode("utf-8")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self._path, lambda stream: stream.write(text))
        except OSError as error:
            raise FolderError(
                f"{self._path} cannot be written: {error.strerror or error}"
            ) from error
