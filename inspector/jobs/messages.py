"""What a worker tells while it works, and how its work ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage that begins or has ended.

    Attributes:
        stage: its name
        method: the method worked on, empty for all
        seconds: how long it took, None when it begins
        nodes: calls in the graph it left, None where it leaves no graph
    """

    stage: str
    method: str = ""
    seconds: float | None = None
    nodes: int | None = None


@dataclass(frozen=True, slots=True)
class Counted:
    """How far the stage that runs has come.

    Attributes:
        done: how many of its parts are done
        total: how many there are
    """

    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Warned:
    """Something to know about the user's program.

    Attributes:
        text: a sentence
        file: the user's file, empty when unknown
        line: its line, 0 when unknown
    """

    text: str
    file: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Log:
    """A line that was printed.

    Attributes:
        text: without the end of the line
        library: whether torch or the runtime logged it; the user's code printed it otherwise
        logger: who logged it, as in ``runtime``; empty where that is unknown
        level: of Python's logging
    """

    text: str
    library: bool = False
    logger: str = ""
    level: int = 20


@dataclass(frozen=True, slots=True)
class Ready:
    """The worker has loaded what it needs.

    Attributes:
        partitioners: names that are known
        planners: names of the memory planners
    """

    partitioners: tuple[str, ...] = ()
    planners: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Measured:
    """Times of one program in one block.

    Attributes:
        program: its number in the job
        block: number of the block
        run_ms: each run; empty when the block begins
        facts: how it was run, said once
    """

    program: int
    block: int
    run_ms: tuple[float, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Refused:
    """A program that cannot be measured; the others go on.

    Attributes:
        program: its number in the job
        sentence: why
        blame: usage, unreadable or failed
    """

    program: int
    sentence: str
    blame: str = "failed"


@dataclass(frozen=True, slots=True)
class Found:
    """The nodes that a bisection can take out of delegates.

    Attributes:
        nodes: as JSON objects, in the order of the graph
    """

    nodes: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Trying:
    """A program of a bisection is about to be made.

    Attributes:
        removed: ranges of nodes that are taken out, as [first, behind the last)
    """

    removed: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Tried:
    """A program of a bisection was made and looked at.

    Attributes:
        trial: as a JSON object
    """

    trial: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Stepped:
    """A delegate call that is stepped through stands before a node.

    Attributes:
        state: as a JSON object: position, values that are new; the nodes when it begins; numbers
            of a value, or a refusal, where that was the answer to a command
    """

    state: Mapping[str, Any]


Message: TypeAlias = (
    Stage | Counted | Warned | Log | Ready | Measured | Refused | Found | Trying | Tried | Stepped
)


class Ended(str, Enum):
    """How a job ended."""

    FINISHED = "finished"
    FAILED = "failed"
    CRASHED = "crashed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed out"
    NOT_STARTED = "not started"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job ended.

    Attributes:
        ended: the way
        sentence: for the user; empty when it finished
        blame: usage, unreadable or failed: what a failure is due to
        file: the user's file, empty when unknown
        line: its line, 0 when unknown
        details: more to copy, such as a traceback
        result: what a finished job says about what it made
    """

    ended: Ended
    sentence: str = ""
    blame: str = "failed"
    file: str = ""
    line: int = 0
    details: str = ""
    result: Mapping[str, Any] = field(default_factory=dict[str, Any])


def message_from(content: Mapping[str, Any]) -> Message | Outcome | None:
    """Return the message in a JSON object of the worker, None for one of no known type."""
    make = _KINDS.get(content.get("type", ""))
    return None if make is None else make(content)


def _stage(content: Mapping[str, Any]) -> Stage:
    name, method = str(content.get("stage", "")), str(content.get("method", ""))
    return Stage(name, method, content.get("seconds"), content.get("nodes"))


def _measured(content: Mapping[str, Any]) -> Measured:
    times = tuple(float(time) for time in content["run_ms"])
    return Measured(content["program"], content["block"], times, content.get("facts", {}))


def _failed(content: Mapping[str, Any]) -> Outcome:
    return Outcome(
        Ended.FAILED,
        content["sentence"],
        content.get("blame", "failed"),
        content.get("file", ""),
        content.get("line", 0),
        content.get("details", ""),
    )


_KINDS: Mapping[str, Callable[[Mapping[str, Any]], Message | Outcome]] = {
    "stage": _stage,
    "counted": lambda c: Counted(int(c["done"]), int(c["total"])),
    "measured": _measured,
    "refused": lambda c: Refused(c["program"], c["sentence"], c.get("blame", "failed")),
    "candidates": lambda c: Found(tuple(c["nodes"])),
    "trying": lambda c: Trying(tuple((int(start), int(end)) for start, end in c["removed"])),
    "tried": lambda c: Tried(c["trial"]),
    "stepped": lambda c: Stepped(c["state"]),
    "warning": lambda c: Warned(c["text"], c.get("file", ""), c.get("line", 0)),
    "log": lambda c: Log(str(c["text"]), True, str(c.get("logger", "")), int(c.get("level", 20))),
    "ready": lambda c: Ready(tuple(c.get("partitioners", ())), tuple(c.get("planners", ()))),
    "finished": lambda c: Outcome(Ended.FINISHED, result=c["result"]),
    "failed": _failed,
}
