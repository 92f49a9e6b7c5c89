"""The calls of a sequence, as the report of a run has them."""

from __future__ import annotations

from dataclasses import dataclass

GENERATION = "generation.json"  # the report of generated text
CALLS = "calls"  # folder with the values of each call, beside the report


@dataclass(frozen=True, slots=True)
class StateTensor:
    """A tensor that a program carries from call to call, such as a KV cache.

    Attributes:
        name: qualified name, or ``v<index>`` of the value
        dtype: of its elements
        shape: of the tensor
        bytes: that it takes
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int


@dataclass(frozen=True, slots=True)
class StateChange:
    """What one call did to a state tensor.

    Attributes:
        changed: bytes of the elements that differ from those before the call
        used: bytes of the elements that differ from those after loading
        largest: largest absolute change of an element, None if it is not finite
        region: smallest range of each dimension with all changes: its begin, and its end, which is
            not included; empty where nothing changed, and in reports of older versions
    """

    changed: int
    used: int
    largest: float | None = None
    region: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class SequenceCall:
    """One call of a sequence.

    Attributes:
        call: number, from 0
        ms: its time
        tokens: that it was given; None for inputs that are not tokens
        state: what it did to each state tensor; empty where that is unknown
        method: that it ran, empty in reports of older versions: that of the run
    """

    call: int
    ms: float
    tokens: int | None = None
    state: tuple[StateChange, ...] = ()
    method: str = ""

    @property
    def changed_bytes(self) -> int:
        """Return the bytes of the state that the call changed."""
        return sum(one.changed for one in self.state)

    @property
    def used_bytes(self) -> int:
        """Return the bytes of the state that differ from those after loading."""
        return sum(one.used for one in self.state)
