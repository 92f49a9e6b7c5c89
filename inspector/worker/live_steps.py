"""A delegate call that waits at each node for a command of the parent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from inspector.jobs.executing import StepJob
from inspector.jobs.live_steps import FINISH, LOOK, REPLACE, RUN_TO
from inspector.worker.error_source import located_errors
from inspector.worker.exporter import AnswerError, Say, timed_stage
from inspector.worker.inputs import ValuesError
from inspector.worker.step_job import StepRun, StepSubject, answer, filling, subject_of
from runtime import DelegateSteps, ExecutionError

_NUMBERS = 4096  # of a value that are reported at most
Take = Callable[[], Mapping[str, Any]]


def step_live(job: StepJob, notify: Say, take: Take) -> dict[str, Any]:
    """Step through a call by commands of the parent; return the report.

    Args:
        job: the request
        notify: called with messages
        take: waits for and returns the next command

    Raises: ExecutionError, AnswerError, ValuesError, OSError
    """
    with located_errors(job.record):
        return _live(job, notify, take)


def _live(job: StepJob, notify: Say, take: Take) -> dict[str, Any]:
    with timed_stage(notify, "load"):
        subject = subject_of(job)
    walk = LiveWalk(subject, notify, take)
    outputs = walk.run()
    before: list[Any] = []
    if any(value["replaced"] for value in walk.values.values()):
        with timed_stage(notify, "run without replacements", subject.name):
            before = StepRun(subject, {}).run()
    return answer(walk, outputs, before)


class LiveWalk(StepRun):
    """A run that stops before nodes of one delegate call.

    Args:
        subject: of the run
        notify: called with its position after each command
        take: waits for and returns the next command
    """

    def __init__(self, subject: StepSubject, notify: Say, take: Take) -> None:
        super().__init__(subject, {})
        self._notify, self._take = notify, take

    def through(self, steps: DelegateSteps) -> None:
        """Execute commands until one ends the call."""
        self.begin(steps)
        self._report(steps, list(self.values), **self.report())
        going = True
        while going:
            going = self._do(steps, self._take())
        steps.finish()

    def _do(self, steps: DelegateSteps, command: Mapping[str, Any]) -> bool:
        """Execute a command; return whether to wait for another."""
        seen = set(self.values)
        looked, refused, changed = None, "", list[int]()
        what = command["do"]
        if what in (RUN_TO, FINISH):
            stop = len(steps.nodes) if what == FINISH else min(command["node"], len(steps.nodes))
            self._run_to(steps, stop)
            changed = [value for value in self.values if value not in seen]
        else:
            value = int(command["value"])
            try:
                if what == REPLACE:
                    self._put(steps, value, str(command["what"]))
                    changed = [value]
                if what in (REPLACE, LOOK):
                    looked = self._numbers(steps, value)
            except OSError as error:
                refused = f"{error.filename}: {error.strerror}" if error.filename else str(error)
            except (ExecutionError, ValuesError, AnswerError, RuntimeError) as error:
                refused = str(error)
        self._report(steps, changed, looked=looked, refused=refused)
        return what != FINISH

    def _run_to(self, steps: DelegateSteps, stop: int) -> None:
        while steps.position < stop:
            node = steps.nodes[steps.position]
            steps.step()
            self.passed(steps, node)

    def _put(self, steps: DelegateSteps, value: int, what: str) -> None:
        if value not in self.values:
            raise AnswerError(f"value {value} is not computed yet: first run past its node")
        found = filling(what)
        there = steps.value(value)
        tensor = found if isinstance(found, torch.Tensor) else torch.full_like(there, found)
        steps.replace(value, tensor)
        made_by = self.values[value]["made_by"]
        self.arrived(steps, value, made_by)
        self.values[value]["replaced"] = True

    def _numbers(self, steps: DelegateSteps, value: int) -> dict[str, Any]:
        if value not in self.values:
            raise AnswerError(f"value {value} is not computed yet: first run past its node")
        tensor = steps.value(value)
        few = tensor.flatten()[:_NUMBERS]
        numbers: Any = few.double() if few.is_floating_point() else few
        real: Any = steps.real(value)
        stands_for = None if real is None else real.flatten()[:_NUMBERS].tolist()
        return {
            "value": value,
            "total": tensor.numel(),
            "numbers": numbers.tolist(),
            "real": stands_for,
        }

    def _report(self, steps: DelegateSteps, changed: Sequence[int], **more: Any) -> None:  # noqa: ANN401
        values = [self.values[value] for value in changed]
        self._notify("stepped", state={**more, "position": steps.position, "values": values})
