"""What a worker tells while it works, and how its work ended."""

from __future__ import annotations

from collections.abc import Mapping
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
        library: whether torch logged it; the user's code printed it otherwise
    """

    text: str
    library: bool = False


@dataclass(frozen=True, slots=True)
class Ready:
    """The worker has loaded what it needs.

    Attributes:
        partitioners: names that are known
        planners: names of the memory planners
    """

    partitioners: tuple[str, ...] = ()
    planners: tuple[str, ...] = ()


Message: TypeAlias = Stage | Counted | Warned | Log | Ready


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
    kind = content.get("type")
    if kind == "stage":
        return Stage(
            str(content.get("stage", "")),
            str(content.get("method", "")),
            content.get("seconds"),
            content.get("nodes"),
        )
    if kind == "counted":
        return Counted(int(content["done"]), int(content["total"]))
    if kind == "warning":
        return Warned(content["text"], content.get("file", ""), content.get("line", 0))
    if kind == "log":
        return Log(str(content["text"]), library=True)
    if kind == "ready":
        return Ready(tuple(content.get("partitioners", ())), tuple(content.get("planners", ())))
    if kind == "finished":
        return Outcome(Ended.FINISHED, result=content["result"])
    if kind == "failed":
        return Outcome(
            Ended.FAILED,
            content["sentence"],
            content.get("blame", "failed"),
            content.get("file", ""),
            content.get("line", 0),
            content.get("details", ""),
        )
    return None
