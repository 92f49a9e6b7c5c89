"""The trials of a bisection, stored so that it can be resumed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from schema.errors import FormatError
from schema.objects.codec import read_versioned, to_json

STATE = "bisect.json"
VERSION = 1
_LARGEST = 64 << 20  # bytes


class StateError(ValueError):
    """A file that holds no state of this bisection; one sentence."""


@dataclass(frozen=True, slots=True)
class CandidateNode:
    """A node that a delegate took.

    Attributes:
        method: it belongs to
        name: in the recorded edge program
        operator: as in ``aten.add.Tensor``
        rule: that accepted it
        partitioner: that took it
        source: ``file:line`` of the user's code, empty if unknown
    """

    method: str
    name: str
    operator: str
    rule: str = ""
    partitioner: str = ""
    source: str = ""

    @property
    def quantizes(self) -> bool:
        """Return whether it only quantizes or dequantizes."""
        return "quantize_" in self.operator or "choose_qparams" in self.operator


@dataclass(frozen=True, slots=True)
class Trial:
    """A program with some nodes removed from its delegates.

    Attributes:
        removed: half-open ranges of removed candidates
        value: of the metric; None if it could not be determined
        holds: whether it is within the bound
        words: details of the value, or why it is missing
        seconds: duration
    """

    removed: tuple[tuple[int, int], ...]
    value: float | None
    holds: bool
    words: str = ""
    seconds: float = 0.0

    @property
    def count(self) -> int:
        """Return how many nodes were removed."""
        return sum(end - start for start, end in self.removed)


@dataclass(frozen=True, slots=True)
class BisectState:
    """The state of a bisection.

    Attributes:
        key: identity of the bisection; trials with a different key cannot be reused
        candidates: the removable nodes, in the order of the graph
        trials: in order
    """

    key: str
    candidates: tuple[CandidateNode, ...] = ()
    trials: tuple[Trial, ...] = ()

    @property
    def text(self) -> str:
        """Return it as JSON."""
        return json.dumps({"bisect": VERSION, **to_json(self)}, ensure_ascii=False) + "\n"


def ranges_of(numbers: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Return ascending indices as ranges."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and found[-1][1] == number:
            found[-1] = (found[-1][0], number + 1)
        else:
            found.append((number, number + 1))
    return tuple(found)


def numbers_of(ranges: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    """Return the indices in ranges."""
    return tuple(number for start, end in ranges for number in range(start, end))


def read_state(path: Path) -> BisectState | None:
    """Return the state in a file, None if the file does not exist.

    Raises: StateError for an invalid file; OSError
    """
    try:
        what = "the state of a bisection"
        return read_versioned(path, BisectState, what, ("bisect", VERSION), _LARGEST)
    except FileNotFoundError:
        return None
    except FormatError as error:
        raise StateError(str(error)) from error
