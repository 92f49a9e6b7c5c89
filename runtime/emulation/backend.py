"""Emulates a backend: runs the recorded graph that a partition was lowered from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import torch

from runtime.delegates.interface import (
    BackendExecutionContext,
    BackendInitContext,
    BackendInterface,
    PartitionEngine,
)
from runtime.emulation.graph import GraphRun
from runtime.emulation.recorded import RecordedGraph, Scope, Sides
from runtime.errors import ErrorCode, ExecutionError
from schema import etdump
from schema.origins import ValueOrigin

EMULATED = "emulated"


class EmulatedBackend(BackendInterface):
    """Runs recorded graphs; its handles come from `Emulation`, not from payloads.

    Args:
        why: predicate of a sentence whose subject is the backend's name: why it does not run the
            payload
    """

    def __init__(self, why: str = "is not available") -> None:
        self._why = why

    def init(
        self,
        context: BackendInitContext,
        processed: memoryview,
        compile_specs: Mapping[str, bytes],
    ) -> Any:  # noqa: ANN401 - never returns
        """Raise: a payload does not describe a graph.

        Raises: ExecutionError DelegateInvalidCompatibility
        """
        raise ExecutionError(
            ErrorCode.DelegateInvalidCompatibility, "a payload alone cannot be emulated"
        )

    def measurement(self, name: str, handle: Any) -> PartitionEngine:  # noqa: ANN401
        """Return that the partition is emulated."""
        note = f"{name} {self._why}"
        return PartitionEngine(
            name, EMULATED, ValueOrigin.EMULATED.words, note, ValueOrigin.EMULATED
        )

    def execute(
        self,
        context: BackendExecutionContext,
        handle: Any,  # noqa: ANN401 - a RecordedGraph
        args: Sequence[Any],
    ) -> None:
        """Run the graph; each operator is logged by the name of its node.

        Integer ids would be mistaken for those of the backend's own debug handle map.
        """
        graph: RecordedGraph = handle
        count = len(args) - len(graph.outputs)
        tracer = context.tracer
        last, metadata = tracer.start(), etdump.EMULATED

        def log(_scope: Scope, name: str, results: Sides, _times: int) -> None:
            nonlocal last
            now = tracer.start()
            tracer.log(name, last, now, metadata)
            (result,) = results
            if tracer.logs_values and isinstance(result, torch.Tensor):
                tracer.log_value(name, result.contiguous())
            elif tracer.logs_values and isinstance(result, (list, tuple)):
                several = cast("Sequence[Any]", result)
                if all(isinstance(one, torch.Tensor) for one in several):
                    tracer.log_value(name, [one.contiguous() for one in several])
            last = tracer.start()

        run = GraphRun(graph, log, strict=True)
        results = run.run([[value] for value in args[:count]])
        for argument, (result,) in zip(args[count:], results, strict=True):
            context.store(argument, result)
