"""The delegate call that the window steps through: a worker that waits between two nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from PySide6.QtCore import QObject
from typing_extensions import override

from devtools_app.jobs.follower import Follower, Progress

if TYPE_CHECKING:  # the window is on the screen before anything of the inspector is loaded
    from inspector.jobs.executing import StepJob
    from inspector.jobs.messages import Message, Stepped
    from inspector.jobs.run import JobRun


@dataclass(frozen=True, slots=True)
class Walk(Progress):
    """A call as it stands.

    Attributes:
        job: which call, and how
        session: id of the session it is of
        delegate: index of the delegate that is called
        facts: what was said when it began: nodes, engine; empty before
        position: the node that runs next
        values: those that are there, by id
        looked: numbers of the value that was looked at last, None before
        refused: why the last command was not done, empty when it was
        waiting: whether a command is being done
    """

    job: StepJob
    session: str
    delegate: int
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    position: int = 0
    values: Mapping[int, Mapping[str, Any]] = field(default_factory=dict[int, Mapping[str, Any]])
    looked: Mapping[str, Any] | None = None
    refused: str = ""
    waiting: bool = True

    @property
    def nodes(self) -> list[Mapping[str, Any]]:
        """Return the nodes, none before the call is reached."""
        return self.facts.get("nodes", [])

    @property
    def ready(self) -> bool:
        """Return whether it waits for a command."""
        return self.running and bool(self.nodes) and not self.waiting


class Stepping(Follower[Walk]):
    """Steps through one call at a time; beginning another ends it."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._live: JobRun | None = None

    def start(self, job: StepJob, session: str, delegate: int) -> None:
        """Run a method up to a delegate call.

        Args:
            job: which call, and how
            session: id of the session it is of
            delegate: index of the delegate that is called
        """
        from inspector.jobs.run import JobRun

        self.end_run()
        self._live = JobRun(job, live=True)
        self._follow(self._live, Walk(job, session, delegate))

    @property
    def pid(self) -> int:
        """Return the id of the process, 0 while there is none."""
        return self._live.pid if self._live is not None else 0

    def run_to(self, node: int) -> None:
        """Run all nodes before a node."""
        self._ask("run_to", node)

    def look(self, value: int) -> None:
        """Ask for the numbers of a value."""
        self._ask("look", value)

    def put(self, value: int, what: str) -> None:
        """Let a value hold something else: ``zeros``, ``ones``, a number or a file."""
        self._ask("replace", value, what)

    def finish(self) -> None:
        """Run what is left."""
        self._ask("finish")

    def _ask(self, command: str, *args: int | str) -> None:
        """Send a command of ``live_steps`` if the call waits for one."""
        from inspector.jobs import live_steps

        current = self._current
        if current is None or not current.ready or self._live is None:
            return
        self._current = replace(current, waiting=True, refused="")
        self.changed.emit()
        self._live.send(getattr(live_steps, command)(*args))

    @override
    def _heard(self, current: Walk, messages: list[Message]) -> Walk:
        from inspector.jobs.messages import Stepped

        current = super()._heard(current, messages)
        for message in messages:
            if isinstance(message, Stepped):
                current = _stepped(current, message)
        return current


def _stepped(current: Walk, message: Stepped) -> Walk:
    state = message.state
    values = {int(value["value"]): value for value in cast("list[Any]", state["values"])}
    return replace(
        current,
        facts=state if "nodes" in state else current.facts,
        position=int(state["position"]),
        values={**current.values, **values},
        looked=state.get("looked") or current.looked,
        refused=str(state.get("refused", "")),
        waiting=False,
    )
