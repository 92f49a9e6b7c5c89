"""Recorded graphs, ready to run: calls in order, whose values have names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

Scope = tuple[str, ...]  # names of the nested graphs around a node, outermost first
Sides = list[Any]  # one value of a graph, on each side


class UnknownValue:
    """Marks an unknown value; values computed from it are unknown as well."""

    def __repr__(self) -> str:
        return "unknown"


UNKNOWN = UnknownValue()


@dataclass(frozen=True, slots=True)
class FixedOperand:
    """An operand or result that no node computes.

    Attributes:
        value: a scalar, a string or None
    """

    value: Any


GraphOperand: TypeAlias = str | FixedOperand  # name of a value, or the value itself


@dataclass(frozen=True, slots=True, eq=False)
class GraphCall:
    """A node that calls an operator, ready to run.

    Attributes:
        name: of the node
        reads: names of the values it reads
        outputs: names of its results
        run: returns the results for values by name
        whole: whether the one output is everything that the operator returns, also several tensors
        observed: whether observers see it; False where it only takes one of several results
    """

    name: str
    reads: tuple[str, ...]
    outputs: tuple[str, ...]
    run: Callable[[Mapping[str, Any]], Any]
    whole: bool = False
    observed: bool = True

    def store(self, values: dict[str, Any], result: Any) -> None:  # noqa: ANN401 - one or several
        """Enter the results among the values of a side."""
        if self.whole:
            values[self.outputs[0]] = result
            return
        several = isinstance(result, (tuple, list))
        found: Sequence[Any] = cast("Sequence[Any]", result) if several else (result,)
        for place, name in enumerate(self.outputs):
            values[name] = found[place] if place < len(found) else UNKNOWN


@dataclass(frozen=True, slots=True, eq=False)
class NestedCall:
    """A node that runs graphs of its own: a branch, a loop, a recorded delegate.

    Attributes:
        name: of the node, and of the tuple of its results
        kind: key of ``control.NESTED``
        graphs: those it runs
        operands: its arguments but the graphs, each as a flat list
    """

    name: str
    kind: str
    graphs: tuple[RecordedGraph, ...]
    operands: tuple[tuple[GraphOperand, ...], ...]
    observed = True

    @property
    def reads(self) -> tuple[str, ...]:
        """Return the names of the values it reads."""
        return tuple(item for group in self.operands for item in group if isinstance(item, str))

    @property
    def outputs(self) -> tuple[str, ...]:
        """Return the name of the tuple of its results."""
        return (self.name,)

    def store(self, values: dict[str, Any], result: Any) -> None:  # noqa: ANN401 - a tuple
        """Enter the results among the values of a side."""
        values[self.name] = result


@dataclass(frozen=True, slots=True, eq=False)
class RecordedGraph:
    """A recorded graph, ready to run.

    Attributes:
        calls: its nodes, in order
        inputs: names of the values it is given, in order
        outputs: its results
        constants: values that are there from the beginning, by name
        buffers: name of a value -> buffer that it begins with, and its initial content
        updates: buffer -> value that it has after a run
        writes: whether an operator writes to its inputs
    """

    calls: tuple[GraphCall | NestedCall, ...]
    inputs: tuple[str, ...]
    outputs: tuple[GraphOperand, ...]
    constants: Mapping[str, Any]
    buffers: Mapping[str, tuple[str, Any]] = field(default_factory=dict[str, tuple[str, Any]])
    updates: Mapping[str, GraphOperand] = field(default_factory=dict[str, GraphOperand])
    writes: bool = False
    done: Sequence[Sequence[str]] = field(init=False, repr=False)  # after each call

    def __post_init__(self) -> None:
        """Compute the last use of each value once."""
        kept = {item for item in (*self.outputs, *self.updates.values()) if isinstance(item, str)}
        object.__setattr__(self, "done", _last_reads(self.calls, kept))


def _last_reads(calls: Sequence[GraphCall | NestedCall], kept: set[str]) -> list[list[str]]:
    """Return for each call the values without a later use."""
    done: list[list[str]] = []
    seen = set(kept)
    for call in reversed(calls):
        fresh = {*call.outputs, *call.reads} - seen
        done.append([*fresh])
        seen |= fresh
    return done[::-1]


def on_sides(item: GraphOperand, values: Sequence[Mapping[str, Any]]) -> Sides:
    """Return an operand on each side."""
    if isinstance(item, FixedOperand):
        return [item.value] * len(values)
    return [side[item] for side in values]
