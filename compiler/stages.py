"""Stages of a compile: each is timed, reported to an observer, and may be cancelled before."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from compiler.errors import CancelledError


@dataclass(frozen=True, slots=True)
class StageEvent:
    """The start or end of a stage.

    Attributes:
        stage: its name: edge, verify, plan, emit, record
        method: the current method, empty for all
        seconds: duration; None at the start
        nodes: calls in the resulting graph; None without a graph
        snapshot: returns a copy of that graph; only set in events for observers,
            to be called before the observer returns
        modules: resulting graph modules by method; only set in events for observers, read-only and
            not to be used after the observer has returned
    """

    stage: str
    method: str
    seconds: float | None
    nodes: int | None = None
    snapshot: Callable[[], Any] | None = field(default=None, compare=False, repr=False)
    modules: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)


Observer = Callable[[StageEvent], None]


@dataclass
class Stages:
    """Runs stages in sequence.

    Attributes:
        observer: called when a stage begins and when it ends
        cancelled: called before each stage; True cancels the compile
        events: completed stages
    """

    observer: Observer | None = None
    cancelled: Callable[[], bool] | None = None
    events: list[StageEvent] = field(default_factory=list[StageEvent])

    @contextmanager
    def stage(self, name: str, method: str = "") -> Generator[StageResult, None, None]:
        """Time a stage; its result holds the facts that the observer receives.

        Raises: CancelledError if the compile was cancelled before it
        """
        if self.cancelled is not None and self.cancelled():
            raise CancelledError(f"cancelled before stage {name} of method {method or 'all'}")
        self._notify(StageEvent(name, method, None))
        result = StageResult()
        start = time.perf_counter()
        yield result
        seconds = time.perf_counter() - start
        self.events.append(StageEvent(name, method, seconds, result.calls()))
        left = result.snapshot()
        self._notify(StageEvent(name, method, seconds, result.calls(), left, result.modules))

    def _notify(self, event: StageEvent) -> None:
        if self.observer is not None:
            self.observer(event)


@dataclass
class StageResult:
    """The facts of a stage for its observer.

    Attributes:
        nodes: calls in the resulting graph
        graph: the resulting torch graph; its calls are counted if ``nodes`` is not given
        modules: resulting graph modules by method
    """

    nodes: int | None = None
    graph: Any = None
    modules: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def calls(self) -> int | None:
        """Return the number of calls in the resulting graph."""
        if self.nodes is not None or self.graph is None:
            return self.nodes
        return sum(node.op == "call_function" for node in self.graph.nodes)

    def snapshot(self) -> Callable[[], Any] | None:
        """Return a function that copies the stage's graph, None if it has no graph."""
        if self.graph is None:
            return None
        graph = self.graph

        def copied() -> Any:  # noqa: ANN401
            from compiler.dialect.copies import copied_graph  # torch, which stages do not need

            return copied_graph(graph)

        return copied
