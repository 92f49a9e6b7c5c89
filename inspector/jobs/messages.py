"""Messages of a running worker, and the outcome of its job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias

import msgspec

from inspector.jobs.bisect_trials import CandidateNode, Trial
from inspector.jobs.eval_samples import EvalSample

STOP: Mapping[str, Any] = {"do": "stop"}  # command: end with partial results


class StageProgress(msgspec.Struct, frozen=True, tag="stage"):
    """A stage that begins or has ended.

    Attributes:
        stage: its name
        method: the current method, empty for all
        seconds: duration, None at its start
        nodes: calls in the resulting graph, None without a graph
    """

    stage: str
    method: str = ""
    seconds: float | None = None
    nodes: int | None = None


class Counted(msgspec.Struct, frozen=True, tag="counted"):
    """Progress of the running stage.

    Attributes:
        done: completed parts
        total: number of parts
    """

    done: int
    total: int


class Expected(msgspec.Struct, frozen=True, tag="expected"):
    """The expected duration of measuring a slow program.

    Attributes:
        run_ms: one run
        timed: runs with a trace
        bare: runs without
        seconds: all of them with those before them
    """

    run_ms: float
    timed: int
    bare: int
    seconds: float


class Warned(msgspec.Struct, frozen=True, tag="warning"):
    """A warning about the user's program.

    Attributes:
        text: a sentence
        file: the user's file, empty if unknown
        line: its line, 0 if unknown
    """

    text: str
    file: str = ""
    line: int = 0


class Log(msgspec.Struct, frozen=True, tag="log"):
    """A line that was printed.

    Attributes:
        text: without the line end
        library: whether torch or the runtime logged it, not the user's code
        logger: name, as in ``runtime``; empty if unknown
        level: of Python's logging
    """

    text: str
    library: bool = False
    logger: str = ""
    level: int = 20


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The worker has imported its libraries.

    Attributes:
        partitioners: available names
        planners: names of the memory planners
    """

    partitioners: tuple[str, ...] = ()
    planners: tuple[str, ...] = ()


class Measured(msgspec.Struct, frozen=True, tag="measured"):
    """Times of one program in one block.

    Attributes:
        program: its index in the job
        block: index of the block
        run_ms: of each run; empty at the start of the block
        facts: about the runs, sent once
    """

    program: int
    block: int
    run_ms: tuple[float, ...] = ()
    facts: Mapping[str, Any] = msgspec.field(default_factory=dict[str, Any])


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """A program that cannot be measured; the others continue.

    Attributes:
        program: its index in the job
        sentence: the reason
        blame: usage, unreadable or failed
    """

    program: int
    sentence: str
    blame: str = "failed"


class Found(msgspec.Struct, frozen=True, tag="candidates"):
    """The nodes that a bisection can remove from delegates.

    Attributes:
        nodes: in the order of the graph
    """

    nodes: tuple[CandidateNode, ...]


class Trying(msgspec.Struct, frozen=True, tag="trying"):
    """A trial of a bisection begins.

    Attributes:
        removed: half-open ranges of removed nodes
    """

    removed: tuple[tuple[int, int], ...]


class Tried(msgspec.Struct, frozen=True, tag="tried"):
    """A trial of a bisection has ended.

    Attributes:
        trial: its result
    """

    trial: Trial


class Evaluating(msgspec.Struct, frozen=True, tag="evaluating"):
    """A sample of a data set is about to run.

    Attributes:
        sample: its index
        variant: that runs it, -1 for the reference
    """

    sample: int
    variant: int


class Evaluated(msgspec.Struct, frozen=True, tag="evaluated"):
    """A sample of a data set has run on all variants.

    Attributes:
        sample: its figures
    """

    sample: EvalSample


class Generated(msgspec.Struct, frozen=True, tag="generated"):
    """A piece of generated text.

    Attributes:
        text: behind the pieces before
        calls: of the program so far
    """

    text: str
    calls: int = 0


class Stepped(msgspec.Struct, frozen=True, tag="stepped"):
    """A stepped delegate call has stopped before a node.

    Attributes:
        state: a JSON object: position and new values; the nodes at the start; elements
            of a value, or an error, in response to a command
    """

    state: Mapping[str, Any]


Message: TypeAlias = (
    StageProgress
    | Counted
    | Expected
    | Warned
    | Log
    | Ready
    | Measured
    | Refused
    | Found
    | Trying
    | Tried
    | Evaluating
    | Evaluated
    | Generated
    | Stepped
)


class Ended(str, Enum):
    """The outcome of a job."""

    FINISHED = "finished"
    FAILED = "failed"
    CRASHED = "crashed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed out"
    NOT_STARTED = "not started"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a job, with details.

    Attributes:
        ended: kind of end
        sentence: for the user; empty on success
        blame: usage, unreadable or failed: cause of a failure
        file: the user's file, empty if unknown
        line: its line, 0 if unknown
        details: further text, such as a traceback
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
    """Return the message in a JSON object of the worker, None if its type is unknown."""
    try:
        found: Any = msgspec.convert(content, Message | _Finished | _Failed)
    except msgspec.ValidationError:
        return None  # the user's code wrote to the channel, or the worker is from another release
    if isinstance(found, _Finished):
        return Outcome(Ended.FINISHED, result=found.result)
    if isinstance(found, _Failed):
        place = found.file, found.line
        return Outcome(Ended.FAILED, found.sentence, found.blame, *place, found.details)
    return msgspec.structs.replace(found, library=True) if isinstance(found, Log) else found
