"""Which comparisons and evaluations would supply the missing inputs of gates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from devtools_app.state.state import OpenSession
from inspector.experiments.evaluate.request import has_program, workspace_name
from inspector.experiments.gates.requirement import Kind, own_metric

if TYPE_CHECKING:
    from inspector.experiments.gates.several import JudgedGate


class StepKind(str, Enum):
    """The action of a step."""

    LOG = "log"
    COMPARE = "compare"
    EVALUATE = "evaluate"


_ACTIVITIES = {
    StepKind.LOG: "Running {} with all values logged",
    StepKind.COMPARE: "Comparing {} with its recorded program",
    StepKind.EVALUATE: "Evaluating {} on the data set",
}
_INTENTS = {
    StepKind.LOG: "run {} with all values logged",
    StepKind.COMPARE: "compare {} with its recorded program",
    StepKind.EVALUATE: "evaluate {} on a data set",
}


@dataclass(frozen=True, slots=True)
class GateStep:
    """A job that supplies something.

    Attributes:
        kind: what it does
        sessions: ids of its sessions
        names: of the sessions, as gates name them
    """

    kind: StepKind
    sessions: tuple[str, ...]
    names: tuple[str, ...]

    @property
    def intent(self) -> str:
        """Return what it will do."""
        return _INTENTS[self.kind].format(", ".join(self.names))

    @property
    def activity(self) -> str:
        """Return what it is doing."""
        return _ACTIVITIES[self.kind].format(", ".join(self.names))


@dataclass(frozen=True, slots=True)
class GatePlan:
    """What can be computed for gates.

    Attributes:
        steps: jobs, in their order
        refused: sentences on what cannot be computed
        metrics: names of the user's metrics that gates require
    """

    steps: tuple[GateStep, ...] = ()
    refused: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()

    @property
    def evaluates(self) -> bool:
        """Return whether a data set is needed."""
        return any(one.kind is StepKind.EVALUATE for one in self.steps)


def gate_name(one: OpenSession) -> str:
    """Return the name of a session in gates."""
    return workspace_name(one.id, one.session)


def gate_plan(rows: Sequence[JudgedGate], sessions: Sequence[OpenSession]) -> GatePlan:
    """Return the jobs that supply what judged gates lack."""
    lacks = dict.fromkeys(one for row in rows for one in row.lacks)
    compared = [name for kind, name in lacks if kind is Kind.GAP]
    evaluated = [name for kind, name in lacks if kind is Kind.EVAL]
    by_name = {gate_name(one): one for one in sessions}
    steps: list[GateStep] = []
    refused: list[str] = []
    for name in compared:
        found, why = _comparison(name, by_name)
        steps += found
        refused += [why] if why else []
    if evaluated:
        able = [one for one in sessions if has_program(one.session)]
        without = [name for name in evaluated if not _has_program(name, by_name)]
        refused += [f"{name} has no program (.pte) to evaluate" for name in without]
        if len(without) < len(
            evaluated
        ):  # the last evaluation replaces the one before: all of them
            ids, names = tuple(one.id for one in able), tuple(map(gate_name, able))
            steps.append(GateStep(StepKind.EVALUATE, ids, names))
    own = (own_metric(row.requirement.metric) for row in rows)
    return GatePlan(tuple(steps), tuple(refused), tuple(dict.fromkeys(filter(None, own))))


def _comparison(name: str, by_name: Mapping[str, OpenSession]) -> tuple[tuple[GateStep, ...], str]:
    """Return the steps that compare the values of a session, or why it cannot be done."""
    one = by_name.get(name)
    if one is None:
        return (), ""
    session = one.session
    if session.record is None:
        return (), f"{name} has no ETRecord to compare its values with"
    compare = GateStep(StepKind.COMPARE, (one.id,), (name,))
    if session.program is None or not has_program(session):
        return (), f"{name} has no program (.pte), whose values could be compared"
    if session.dumps and session.debug_buffer is not None:
        return (compare,), ""
    return (GateStep(StepKind.LOG, (one.id,), (name,)), compare), ""


def _has_program(name: str, by_name: Mapping[str, OpenSession]) -> bool:
    one = by_name.get(name)
    return one is not None and has_program(one.session)
