"""Messages of a worker while it works, and how its work ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias

import msgspec

from inspector.jobs.bisect_trials import Node, Trial


class Stage(msgspec.Struct, frozen=True, tag="stage"):
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


class Counted(msgspec.Struct, frozen=True, tag="counted"):
    """How far the stage that runs has come.

    Attributes:
        done: how many of its parts are done
        total: how many there are
    """

    done: int
    total: int


class Warned(msgspec.Struct, frozen=True, tag="warning"):
    """Something to know about the user's program.

    Attributes:
        text: a sentence
        file: the user's file, empty when unknown
        line: its line, 0 when unknown
    """

    text: str
    file: str = ""
    line: int = 0


class Log(msgspec.Struct, frozen=True, tag="log"):
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


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The worker has loaded what it needs.

    Attributes:
        partitioners: names that are known
        planners: names of the memory planners
    """

    partitioners: tuple[str, ...] = ()
    planners: tuple[str, ...] = ()


class Measured(msgspec.Struct, frozen=True, tag="measured"):
    """Times of one program in one block.

    Attributes:
        program: its number in the job
        block: number of the block
        run_ms: each run; empty when the block begins
        facts: how it was run, sent once
    """

    program: int
    block: int
    run_ms: tuple[float, ...] = ()
    facts: Mapping[str, Any] = msgspec.field(default_factory=dict[str, Any])


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """A program that cannot be measured; the others go on.

    Attributes:
        program: its number in the job
        sentence: why
        blame: usage, unreadable or failed
    """

    program: int
    sentence: str
    blame: str = "failed"


class Found(msgspec.Struct, frozen=True, tag="candidates"):
    """The nodes that a bisection can take out of delegates.

    Attributes:
        nodes: in the order of the graph
    """

    nodes: tuple[Node, ...]


class Trying(msgspec.Struct, frozen=True, tag="trying"):
    """A program of a bisection is about to be made.

    Attributes:
        removed: ranges of nodes that are taken out, as [first, behind the last)
    """

    removed: tuple[tuple[int, int], ...]


class Tried(msgspec.Struct, frozen=True, tag="tried"):
    """A program of a bisection was made and looked at.

    Attributes:
        trial: what it came to
    """

    trial: Trial


class Stepped(msgspec.Struct, frozen=True, tag="stepped"):
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
        result: the report of a finished job
    """

    ended: Ended
    sentence: str = ""
    blame: str = "failed"
    file: str = ""
    line: int = 0
    details: str = ""
    result: Mapping[str, Any] = field(default_factory=dict[str, Any])


class _Finished(msgspec.Struct, tag="finished"):
    result: dict[str, Any]


class _Failed(msgspec.Struct, tag="failed"):
    sentence: str
    blame: str = "failed"
    file: str = ""
    line: int = 0
    details: str = ""


def message_from(content: Mapping[str, Any]) -> Message | Outcome | None:
    """Return the message in a JSON object of the worker, None for one of unknown type or shape."""
    try:
        found: Any = msgspec.convert(content, Message | _Finished | _Failed)
    except msgspec.ValidationError:
        return None  # the user's code found the channel, or the worker is of another release
    if isinstance(found, _Finished):
        return Outcome(Ended.FINISHED, result=found.result)
    if isinstance(found, _Failed):
        place = found.file, found.line
        return Outcome(Ended.FAILED, found.sentence, found.blame, *place, found.details)
    return msgspec.structs.replace(found, library=True) if isinstance(found, Log) else found
