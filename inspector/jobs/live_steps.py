"""Commands to a delegate call that is stepped through: ``JobRun(StepJob(...), live=True)``.

The call stops before its first node. Its messages are ``Stepped``, one at the beginning and one for
each command, and its outcome is that of a ``StepJob``; ``stop`` and ``replacements`` of the request
are ignored. ``JobRun.send`` takes a command.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from dataclasses import replace as changed
from typing import Any

from typing_extensions import override

from inspector.jobs.executing import StepJob
from inspector.jobs.messages import Message, Stepped
from inspector.jobs.supervisor import Setup, Supervisor

RUN_TO, LOOK, REPLACE, FINISH = "run to", "look", "replace", "finish"


def run_to(node: int) -> dict[str, Any]:
    """Return the command that runs all nodes before a node; behind the last is the end."""
    return {"do": RUN_TO, "node": node}


def look(value: int) -> dict[str, Any]:
    """Return the command that requests the elements of a computed value."""
    return {"do": LOOK, "value": value}


def replace(value: int, what: str) -> dict[str, Any]:
    """Return the command that replaces a value for all nodes that have not run yet.

    Args:
        value: id of a computed value
        what: ``zeros``, ``ones``, a scalar, or a file of one tensor
    """
    return {"do": REPLACE, "value": value, "what": what}


def finish() -> dict[str, Any]:
    """Return the command that runs the rest of the call and of the method."""
    return {"do": FINISH}


@dataclass(frozen=True, slots=True)
class SteppedCall:
    """The state of a stepped delegate call.

    Attributes:
        facts: reported at its start: nodes, engine; empty before
        position: the node that runs next
        values: computed values by id
        looked: elements of the last requested value, None before
        refused: why the last command failed, empty on success
        waiting: whether a command is pending
    """

    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    position: int = 0
    values: Mapping[int, Mapping[str, Any]] = field(default_factory=dict[int, Mapping[str, Any]])
    looked: Mapping[str, Any] | None = None
    refused: str = ""
    waiting: bool = True

    @property
    def nodes(self) -> list[Mapping[str, Any]]:
        """Return the nodes, empty before the call is reached."""
        return self.facts.get("nodes", [])

    @property
    def ready(self) -> bool:
        """Return whether a command may be sent while the job runs."""
        return bool(self.nodes) and not self.waiting


class StepSupervisor(Supervisor[SteppedCall]):
    """Tracks the state of a call; accepts a command while it waits for one."""

    def __init__(self, job: StepJob, setup: Setup) -> None:
        super().__init__(job, setup)
        self.state = SteppedCall()

    @override
    def note(self, message: Message) -> Message:
        if isinstance(message, Stepped):
            self.state = _stepped(self.state, message.state)
        return message

    @override
    def may_send(self, command: Mapping[str, Any]) -> bool:
        if not self.state.ready:
            return False
        self.state = changed(self.state, waiting=True, refused="")
        return True


def _stepped(walk: SteppedCall, state: Mapping[str, Any]) -> SteppedCall:
    values = {int(value["value"]): value for value in state["values"]}
    return SteppedCall(
        state if "nodes" in state else walk.facts,
        int(state["position"]),
        {**walk.values, **values},
        state.get("looked") or walk.looked,
        str(state.get("refused", "")),
        waiting=False,
    )
