"""Runs recorded graphs on torch's kernels: one run, or several side by side.

Runs side by side go through the graph together, a node at a time, so that their values can be
compared while they are there. Values are freed after their last use: no more than the live tensors
of all runs are in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from runtime.emulation.control import NESTED
from runtime.emulation.recorded import (
    UNKNOWN,
    GraphCall,
    NestedCall,
    RecordedGraph,
    Scope,
    Sides,
    on_sides,
)

Observer = Callable[[Scope, str, Sides, int], object]
_SHOWN = 200  # characters of an error


class GraphRun:
    """Runs a recorded graph any number of times.

    Attributes:
        state: buffers that keep their content from one run to the next, by name
        errors: nested graphs and name of a node -> error of its kernel on the first side
    """

    def __init__(
        self,
        graph: RecordedGraph,
        observe: Observer,
        *,
        sides: int = 1,
        state: dict[str, Sides] | None = None,
        strict: bool = False,
    ) -> None:
        """Take the graph.

        Args:
            graph: is not changed
            observe: called with the nested graphs around a node, its name, its result on each
                side (what it puts there is what this side continues with), and how often the last
                side has been in this nested graph before
            sides: number of concurrent runs
            state: buffers of runs before; starts from the initial content if None
            strict: let errors of kernels pass; otherwise they are kept and the result is unknown
        """
        self.state: dict[str, Sides] = {} if state is None else state
        self.errors: dict[tuple[Scope, str], str] = {}
        self.sides = sides
        self._graph = graph
        self._observe = observe
        self._strict = strict
        self._visits: dict[Scope, int] = {}

    def run(self, inputs: Sequence[Sides]) -> list[Sides]:
        """Return the outputs on each side; state is changed.

        Args:
            inputs: tensors and scalars on each side, in order; those left out are unknown
        """
        self._visits = {}
        with torch.no_grad():
            return self.inner(self._graph, inputs, ())

    def inner(
        self, graph: RecordedGraph, given: Sequence[Sides], scope: Scope, *, counted: bool = True
    ) -> list[Sides]:
        """Return the outputs of a nested graph.

        Args:
            graph: is not changed
            given: its inputs
            scope: with its own name
            counted: whether the last side went through it
        """
        times = self._visits.get(scope, 0)
        if counted:
            self._visits[scope] = times + 1
        values = self._entered(graph, given, scope, times)
        for call, done in zip(graph.calls, graph.done, strict=True):
            self._step(call, values, scope, times)
            for side in values:
                for name in done:
                    side.pop(name, None)
        for name, item in graph.updates.items():
            self.state[_buffer(scope, name)] = on_sides(item, values)
        return [on_sides(item, values) for item in graph.outputs]

    def _entered(
        self, graph: RecordedGraph, given: Sequence[Sides], scope: Scope, times: int
    ) -> list[dict[str, Any]]:
        """Return the values by name that each side begins with."""
        values = [dict(graph.constants) for _ in range(self.sides)]
        for place, name in enumerate(graph.inputs):
            if name in graph.constants:
                continue
            entry = [*given[place]] if place < len(given) else [UNKNOWN] * self.sides
            if scope:
                self._observe(scope, name, entry, times)
            _put(values, name, entry)
        for name, (buffer, initial) in graph.buffers.items():
            key = _buffer(scope, buffer)
            if key not in self.state:
                self.state[key] = [initial.detach().clone() for _ in values]
            _put(values, name, self.state[key])
        return values

    def _step(
        self,
        call: GraphCall | NestedCall,
        values: Sequence[dict[str, Any]],
        scope: Scope,
        times: int,
    ) -> None:
        if isinstance(call, NestedCall):
            results = NESTED[call.kind](self, call, values, scope)
        else:
            results = [
                self._called(call, side, scope, first=not place)
                for place, side in enumerate(values)
            ]
        if call.observed:
            self._observe(scope, call.name, results, times)
        for side, result in zip(values, results, strict=True):
            call.store(side, result)

    def _called(
        self, call: GraphCall, values: Mapping[str, Any], scope: Scope, *, first: bool
    ) -> Any:  # noqa: ANN401 - one or several
        if any(values[name] is UNKNOWN for name in call.reads):
            return UNKNOWN
        if self._strict:
            return call.run(values)
        try:
            return call.run(values)
        except Exception as error:  # noqa: BLE001 - whatever a kernel raises on odd values
            if first:
                lines = str(error).strip().splitlines() or [""]
                reason = f"{type(error).__name__}: {lines[0][:_SHOWN]}"
                self.errors.setdefault((scope, call.name), reason)
            return UNKNOWN


def _put(values: Sequence[dict[str, Any]], name: str, entry: Sides) -> None:
    for side, value in zip(values, entry, strict=True):
        side[name] = value


def _buffer(scope: Scope, name: str) -> str:
    """Return the key of a buffer: delegates have buffers of their own."""
    return "/".join((*scope, name))
