"""The buffers of references between the runs of a trace.

Each method has its own, as its graph names them. Those that the program plans into one place of
shared memory for several methods are one buffer: prefill writes the cache that decode reads.
"""

from __future__ import annotations

from collections.abc import Mapping

from inspector.files.session import Session
from inspector.memory.lifetimes import Place
from inspector.memory.plan import state_values
from inspector.numerics.replay.initial_state import empty_state
from inspector.numerics.state_names import shared_place, state_names
from runtime.emulation.recorded import RecordedGraph, Sides

_NOTE = "the program stores no content of {}: they begin with zeros, in the record with others"


class MethodStates:
    """The buffers of all methods, as the last run that has them left them."""

    def __init__(self, session: Session) -> None:
        """Take the files; nothing has run."""
        self._session = session
        self._own: dict[str, dict[str, Sides]] = {}
        self._shared: dict[Place, Sides] = {}

    def of(self, method: str) -> dict[str, Sides]:
        """Return the buffers that a run of a method begins with, by name; missing ones are new."""
        places = self._places(method)
        shared = {name: self._shared[at] for name, at in places.items() if at in self._shared}
        return self._own.get(method, {}) | shared

    def begin(self, method: str, graph: RecordedGraph) -> tuple[dict[str, Sides], list[str]]:
        """Return the buffers that a run of a method begins with, and notes on their content.

        Args:
            method: name of the method
            graph: its reference, which has two sides; missing buffers are new
        """
        found = self.of(method)
        empty = empty_state(self._session, method, graph)
        new = {name: held for name, held in empty.items() if name not in found and held.any()}
        found |= {name: [held.detach().new_zeros(held.shape)] * 2 for name, held in new.items()}
        return found, [_NOTE.format(", ".join(sorted(new)))] if new else []

    def keep(self, method: str, state: Mapping[str, Sides]) -> None:
        """Take the buffers that a run of a method has left."""
        self._own[method] = dict(state)
        places = self._places(method)
        self._shared |= {places[name]: held for name, held in state.items() if name in places}

    def sharing(self, method: str) -> frozenset[str]:
        """Return the methods that share state with one, itself included."""
        places = {*self._places(method).values()}
        others = self._session.methods if places else ()
        found = {one for one in others if not places.isdisjoint(self._places(one).values())}
        return frozenset({method, *found})

    def unknown(self, method: str) -> bool:
        """Return whether it is unknown which buffer of the graph some shared state is."""
        program = self._session.program
        if program is None or len(program.plans) < 2:
            return False
        named = state_names(self._session, method)
        return any(
            index not in named
            for index in state_values(program, method)
            if self._place(method, index)
        )

    def _places(self, method: str) -> dict[str, Place]:
        """Return name -> place of the state of a method in shared memory."""
        found: dict[str, Place] = {}
        for index, name in state_names(self._session, method).items():
            place = self._place(method, index)
            if place is not None:
                found[name] = place
        return found

    def _place(self, method: str, index: int) -> Place | None:
        program = self._session.program
        return None if program is None else shared_place(program.plan(method), index)
