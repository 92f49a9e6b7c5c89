"""A bisection as a job: workers that try programs, and a state on disk that outlives them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from typing_extensions import override

from inspector.jobs.bisect_trials import STATE, BisectState, Trial, read_state
from inspector.jobs.messages import Ended, Found, Message, Outcome, Tried, Trying
from inspector.jobs.output_folder import FolderError
from inspector.jobs.supervisor import Setup, Supervisor
from inspector.recipes.compile_job import CompileJob
from schema.objects.atomic_file import write_atomically
from schema.objects.codec import to_json

_MOST_CRASHES = 5  # each crash costs a new start of the worker


@dataclass(frozen=True, slots=True)
class BisectJob:
    """A bisection request.

    Attributes:
        compile: the program, and how it is built
        bound: the requirement, as a string
        method: to run, whose nodes are candidates; empty for ``forward`` or the only one
        inputs: file of tensors; empty for the example inputs
        engine: for delegates whose backend has several engines
        runs: measured for a latency
        threads: of torch, 0 for its default
        device: that programs run on, empty for this machine
        backend_options: of backends, each ``NAME:OPTION=VALUE``
    """

    compile: CompileJob
    bound: str
    method: str = ""
    inputs: str = ""
    engine: str = "auto"
    runs: int = 20
    threads: int = 0
    device: str = ""
    backend_options: tuple[str, ...] = ()


def key_of(job: BisectJob) -> str:
    """Return the identity of a bisection; trials with a different key cannot be reused."""
    content = to_json(job)
    for name in ("device", "backend_options"):
        if not content[name]:  # keys of earlier versions stay the same
            del content[name]
    return json.dumps(content, sort_keys=True, ensure_ascii=False)


class BisectSupervisor(Supervisor[BisectState]):
    """Stores the trials of a bisection in its target folder, or resumes from them.

    Every trial is written to the state file immediately. A program that crashes the worker counts
    as not meeting the bound, and another worker continues.
    """

    def __init__(self, job: BisectJob, setup: Setup) -> None:
        """Start, or resume from the state in the folder; ``force`` starts over.

        Raises: StateError, FolderError if the folder contains another bisection or cannot be used
        """
        super().__init__(job, setup)
        assert setup.target is not None
        self._path = setup.target / STATE
        self.state = BisectState(key_of(job))
        found = None if setup.force else read_state(self._path)
        if found is not None and found.key != self.state.key:
            raise FolderError(
                f"{self._path} belongs to another bisection; --force starts over", usage=True
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
            self.state = BisectState(self.state.key, message.nodes)  # the program has changed since
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
