"""A delegate call that is stepped through by commands: a worker that waits for them."""

from __future__ import annotations

from inspector.jobs.executing import StepJob, executing_content
from inspector.jobs.process import EXECUTES, Worker
from inspector.jobs.run import JobRun

RUN_TO, LOOK, REPLACE, FINISH = "run to", "look", "replace", "finish"


class LiveSteps(JobRun):
    """One delegate call in a worker; it stops before its first node.

    What it says are ``Stepped`` messages, one at the beginning and one for each command, and at the
    end an outcome as that of a ``StepJob``.

    Attributes:
        job: which call, and how
    """

    def __init__(self, job: StepJob, *, worker: Worker | None = None) -> None:
        """Start.

        Args:
            job: which call, and how; its ``stop`` and ``replacements`` mean nothing here
            worker: one that was started ahead and has no job yet
        """
        self.job = job
        content = executing_content(job)
        super().__init__(content, None, kind=EXECUTES, worker=worker, how={"live": True})

    @property
    def pid(self) -> int:
        """Return the id of the process, 0 where none could be started."""
        return self._worker.pid if self._worker is not None else 0

    def run_to(self, node: int) -> None:
        """Run all nodes before a node; those behind the last one are the end of the call."""
        self._ask({"do": RUN_TO, "node": node})

    def look(self, value: int) -> None:
        """Ask for the numbers of a value that is there."""
        self._ask({"do": LOOK, "value": value})

    def replace(self, value: int, what: str) -> None:
        """Let a value hold something else for the nodes that run from now on.

        Args:
            value: its id, of one that is there
            what: ``zeros``, ``ones``, a number, or a file of one tensor
        """
        self._ask({"do": REPLACE, "value": value, "what": what})

    def finish(self) -> None:
        """Run what is left of the call and of the method."""
        self._ask({"do": FINISH})

    def _ask(self, command: dict[str, object]) -> None:
        if self._worker is not None and self._worker.outcome is None:
            self._worker.send(command)
